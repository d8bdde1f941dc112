"""The tables of a record: what is written is read back, and what is broken refused."""

import csv
import gzip
import importlib.util
import pathlib

import numpy as np
import pytest

from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.record.tables import NUMBER, TABLES, Column

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "extend" / "largest_weight.py"

GOOD = {
    "rounds": [
        "round,accuracy,correct,examples,p10,p50,p90,ordering,testing_rounds",
        "1,0.5,5,10,0.5,0.5,0.5,DS,1",
        "2,,,,,,,DS,1",
        '3,0.6,6,10,0.5167,0.5833,0.65,"LD,DS",2',
    ],
    "clients": [
        "round,client,correct,examples",
        *("1,a,2,4", "1,b,3,6", "3,a,2,4", "3,b,4,6"),
    ],
    "cohort": [
        "round,client,DS,LD,excluded,weight",
        *("1,a,40.0,2.0,0,1.0", "1,b,inf,nan,1,0.0", "2,b,9.0,1.0,0,1.0"),
    ],
    "candidates": [
        "round,kind,trial,ordering,rate,correct,examples,kept,worst_tenth,jain_index",
        *("1,trial,1,DS,1.0,5,10,1,,", "1,counterfactual,1,DS,1.0,5,10,1,0.1,0.9"),
    ],
    "class_f1": ["round,class,f1", "1,0,0.5", "1,1,nan"],
    "timing": ["round,train,test", "1,0.1,0.2", "2,0.1,0.0", "3,0.1,0.2"],
}


def put(folder, name, lines):
    text = lines if isinstance(lines, str) else "\n".join([*lines, ""])
    (folder / f"{name}.csv").write_bytes(text.encode("utf-8", "surrogateescape"))


def changed(name, place, line):
    """The good lines of a table, one of them replaced."""
    return [*GOOD[name][:place], line, *GOOD[name][place + 1 :]]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", [*GOOD])
def test_a_valid_table_is_read(tmp_path, name, packed):
    """By its types; a round without a test has the values of the last one."""
    put(tmp_path, name, GOOD[name])
    if packed:
        path = tmp_path / f"{name}.csv"
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    table = TABLES[name].read(str(tmp_path))
    head, *lines = csv.reader(GOOD[name])
    assert [*table] == head and len(table) == len(lines)
    expected = {
        "rounds": {"correct": [5, 5, 6], "ordering": ["DS", "DS", "LD,DS"]},
        "clients": {"correct": [2, 3, 2, 4], "client": ["a", "b", "a", "b"]},
        "cohort": {"DS": [40, np.inf, 9], "excluded": [0, 1, 0]},
        "candidates": {"trial": [1, 1], "kept": [1, 1]},
        "class_f1": {"class": [0, 1]},
        "timing": {"train": [0.1] * 3},
    }
    for column, values in expected[name].items():
        assert table[column].tolist() == values
    for column in ("correct", "trial", "class"):
        if column in table:
            assert table[column].dtype == np.int64


def test_a_nan_loss_is_not_replaced_by_that_of_another_round(tmp_path):
    """A diverged model was tested: its round has no value of the round before."""
    lines = [
        "round,test_loss,loss_sum,examples,loss_p10,train_loss",
        *("1,0.5,5.0,10,0.25,1.0", "2,nan,nan,10,nan,", "3,,,,,2.0"),
    ]
    put(tmp_path, "rounds", lines)
    rounds = TABLES["rounds"].read(str(tmp_path))
    for name in ("test_loss", "loss_sum", "loss_p10"):
        np.testing.assert_array_equal(rounds[name][1:], [np.nan, np.nan])
    assert rounds["examples"].tolist() == [10, 10, 10]


def test_metrics_of_the_model_are_those_of_the_last_test(record_of, tmp_path):
    """Of rounds without a test; a plugin's numbers stay as they are."""
    head = "round,accuracy,correct,examples,auc,top_2,mine,train_loss"
    lines = ["1,0.5,5,10,0.75,nan,3,1.0", "2,,,,,,,1.0", "3,0.5,5,10,,0.5,4,1.0"]
    put(tmp_path, "rounds", [head, *lines])
    rounds = TABLES["rounds"].read(str(tmp_path))
    np.testing.assert_array_equal(rounds["auc"], [0.75, 0.75, np.nan])
    np.testing.assert_array_equal(rounds["top_2"], [np.nan, np.nan, 0.5])
    put(tmp_path, "rounds", [head, lines[0], "2,,,,,,7,1.0", lines[2]])
    rounds = TABLES["rounds"].read(str(tmp_path))
    assert rounds["mine"].tolist() == [3, 7, 4]
    for measured, value in ((np.array([5, 30, 0]), 0.75), (None, "")):
        metrics = {"auc": value or None}
        record = record_of(model_metrics=metrics, measured=measured)
        (row,) = TABLES["rounds"].rows(record)
        assert row["auc"] == value and [*row].index("auc") < [*row].index("train_loss")


def test_names_are_text_whatever_they_look_like(tmp_path):
    """Not a missing value, a number or two rows."""
    put(tmp_path, "clients", 'round,client,correct,examples\n1,NA,1,4\n1,"1\n2",2,4\n')
    clients = TABLES["clients"].read(str(tmp_path))
    assert clients["client"].tolist() == ["NA", "1\n2"]


@pytest.mark.parametrize(
    ("name", "lines", "says"),
    [
        (
            "rounds",
            changed("rounds", 2, "1,0.7,7,10,0,0,0,DS,1"),
            "two rows of round 1",
        ),
        ("rounds", changed("rounds", 1, "0,0.5,5,10,0,0,0,DS,1"), "has round 0"),
        ("rounds", changed("rounds", 3, "5,0.5,5,10,0,0,0,DS,1"), "has round 5"),
        ("rounds", [GOOD["rounds"][0], *GOOD["rounds"][:0:-1]], "1 has round 3"),
        ("rounds", changed("rounds", 1, "1,0.5,11,10,0,0,0,DS,1"), "11 correct of 10"),
        ("rounds", changed("rounds", 1, "1,often,5,10,0,0,0,DS,1"), "often"),
        (
            "rounds",
            changed("rounds", 0, "number,accuracy"),
            "the column 'round' is missing",
        ),
        ("rounds", changed("rounds", 1, "1,0.5,5,10,0,0,0,DS,1,1"), "cannot be read"),
        ("rounds", "", "the file ends within a row"),
        ("rounds", "round\n\udcff\n", "cannot be read"),
        ("clients", changed("clients", 2, "1,a,3,6"), "rows of round 1, client a"),
        ("clients", changed("clients", 1, "1,a,5,4"), "5 correct of 4"),
        ("clients", changed("clients", 1, "1,a,-1,4"), "-1 correct of 4"),
        ("clients", "\n".join(GOOD["clients"]), "the file ends within a row"),
        ("clients", ["round,client,correct,examples", '1,"a,2,4'], "cannot be read"),
        (
            "clients",
            ["round,correct,examples", "1,2,4"],
            "the column 'client' is missing",
        ),
        ("cohort", changed("cohort", 2, "1,a,1.0,2.0,0,0.5"), "rows of round 1, cl"),
        ("cohort", changed("cohort", 1, "1,a,forty,2.0,0,1.0"), "forty"),
        ("cohort", changed("cohort", 1, "1,a,40,2.0,maybe,1.0"), "maybe"),
        ("candidates", [*GOOD["candidates"], GOOD["candidates"][1]], "kind trial, tri"),
        ("candidates", changed("candidates", 1, "1,trial,1,DS,1,11,10,1,,"), "11 corr"),
    ],
)
def test_tables_that_no_run_writes_are_rejected(
    tmp_path, name, lines, says, assert_one_line
):
    put(tmp_path, name, lines)
    read = lambda: TABLES[name].read(str(tmp_path))  # noqa: E731
    assert_one_line(RecordError, read, says, tmp_path / f"{name}.csv")


def test_a_table_that_is_missing_or_cannot_be_unpacked_is_named(tmp_path):
    with pytest.raises(RecordMissingError, match="rounds.csv is missing"):
        TABLES["rounds"].read(str(tmp_path))
    (tmp_path / "rounds.csv.gz").write_bytes(b"\x1f\x8bno archive")
    with pytest.raises(RecordError, match="rounds.csv.gz cannot be read"):
        TABLES["rounds"].read(str(tmp_path))


def test_adding_a_column_touches_one_file(record_of, tmp_path):
    """That of docs/extend.md: written, typed, read, also by who does not have it."""
    before = [*TABLES["rounds"].columns]
    spec = importlib.util.spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
        (row,) = TABLES["rounds"].rows(record_of(excluded=[0, 1, 0]))
        assert row["largest_weight"] == 0.5
        put(tmp_path, "rounds", ["round,largest_weight,word", "1,0.5,a", "2,,b"])
        rounds = TABLES["rounds"].read(str(tmp_path))
        with pytest.raises(ValueError, match="has a column largest_weight already"):
            TABLES["rounds"].add(TABLES["rounds"].columns[-1])
        for name in ("seed", "label", "weight_smallest"):  # As readers add them.
            with pytest.raises(ValueError, match=f"has a column {name} already"):
                TABLES["rounds"].add(Column(name, NUMBER, lambda record: 0.0))
    finally:
        TABLES["rounds"].columns[:] = before
    for table in (rounds, TABLES["rounds"].read(str(tmp_path))):
        assert table["largest_weight"].iloc[0] == 0.5
        assert table["largest_weight"].isna().tolist() == [False, True]
        assert table["word"].tolist() == ["a", "b"]


def test_a_column_of_another_length_removes_no_rows(record_of):
    """What `zip` would do: two values, and three clients in the cohort."""
    table = TABLES["cohort"]
    short = Column("speed", NUMBER, lambda record: record.weights[:2])
    table = table._replace(columns=[*table.columns, short])
    with pytest.raises(ValueError, match="cohort.csv: .* 'weight': 3, 'speed': 2"):
        table.rows(record_of())
