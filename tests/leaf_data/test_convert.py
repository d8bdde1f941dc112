"""Stores made of LEAF's files and of CSVs, and what is no such file."""

import os

import numpy as np
import pytest
from leaf_documents import write_leaf

import leaf_data
from leaf_data import convert


def leaf_file(folder, part, users, number=0):
    data = {user: {"x": x, "y": y} for user, (x, y) in users.items()}
    write_leaf(folder / part / f"all_data_{number}_keep_0_{part}_9.json", data)


def test_leafs_files_and_csvs_are_converted(tmp_path, capsys):
    leaf_file(tmp_path / "leaf", "train", {"u": ([[0.5], [1]], [0, 1])})
    leaf_file(tmp_path / "leaf", "test", {"u": ([[0.25]], [1])})
    store = str(tmp_path / "of_leaf")
    assert convert.main([str(tmp_path / "leaf"), store]) == 0
    data = leaf_data.open_store(store)
    assert data.train_examples.x.tolist() == [[0.5], [1]]
    assert data.test_examples.client("u")["y"].tolist() == [1]
    csvs = tmp_path / "csvs"
    csvs.mkdir()
    for name in ("d1.csv", "d2.CSV"):
        (csvs / name).write_text("a,kind,b\n" + "1,0,2\n3,1,4\n" * 5)
    (csvs / "._d1.csv").write_text("no table")
    store = str(tmp_path / "of_csvs")
    options = ["--label=kind", "--test_fraction=0.2"]
    assert convert.main([str(csvs), store, *options]) == 0
    assert "2 clients, 2 classes" in capsys.readouterr().out
    data = leaf_data.open_store(store)
    assert data.client_ids == ("d1", "d2") and list(data.train_examples.sizes) == [8, 8]
    assert {tuple(row) for row in data.train_examples.x.tolist()} == {(1, 2), (3, 4)}
    (csvs / "d3.csv.gz").write_text("")
    assert convert.main([str(csvs), f"{store}2", *options]) == 2
    assert "d3.csv.gz has to be unpacked first" in capsys.readouterr().err


@pytest.mark.parametrize(
    "x", [*([[bad]] for bad in (10**400, {}, "1.5", None, 1e39)), [[1], [1, 2]]]
)
def test_what_leafs_files_have_instead_of_numbers_is_one_line(tmp_path, capsys, x):
    for part in ("train", "test"):
        leaf_file(tmp_path / "\x1b[31m", part, {"u": (x, [0] * len(x))})
    arguments = [str(tmp_path / "\x1b[31m"), str(tmp_path / "store")]
    assert convert.main(arguments) == 2
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert "its examples are not float32 numbers of one shape" in last
    assert "\\x1b[31m" in last and "\x1b" not in last


@pytest.mark.parametrize(("part", "other"), [("train", "test"), ("test", "train")])
def test_a_leaf_file_without_its_other_part_is_refused(tmp_path, capsys, part, other):
    """Its test examples would be trained on."""
    for label, own in enumerate(("train", "test")):
        leaf_file(tmp_path, own, {"u": ([[0.5]], [label])})
    leaf_file(tmp_path, part, {"v": ([[1]] * 10, [0] * 10)}, number=1)
    assert convert.main([str(tmp_path), str(tmp_path / "store")]) == 2
    assert f"1_keep_0_{part}_9.json has no {other} file" in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


ROWS = "a,kind,b\n1,0,2\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("," * 2_000_000 + "\n", "a line has 1,048,576 characters or more"),
        ("," * 99_999 + "\n", "it has to have kind once, and others"),
        ("kind\n1\n", "it has to have kind once, and others: ['kind']"),
        (ROWS + "\n", "row 2 has 0 fields"),
        (ROWS + "1,2\n", "row 2 has 2 fields"),
        (ROWS + "1e39,0,1\n", "a number is no float32"),
        (ROWS + "nan,0,1\n", "a number is no float32"),
        *((f"{ROWS}1,{bad},1\n", "kind has to be whole") for bad in ("nan", 0.5)),
        (ROWS + "1,x,1\n", "float: 'x' in row 2: kind has to be whole numbers"),
    ],
    ids=lambda value: value if len(value) < 99 else "long",
)
def test_a_csv_that_is_none_is_one_line(tmp_path, capsys, text, says):
    (tmp_path / "csvs").mkdir()
    if text.startswith(ROWS):  # A good one of the same columns is read before.
        (tmp_path / "csvs" / "c.csv").write_text(ROWS)
    (tmp_path / "csvs" / "d.csv").write_text(text)
    store = str(tmp_path / "store")
    assert convert.main([str(tmp_path / "csvs"), store, "--label=kind"]) == 2
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert "d.csv: cannot be read as CSV" in last and says in last and len(last) < 1000
    assert not os.path.exists(store)


def test_a_full_disk_is_named(tmp_path):
    from leaf_data.formats import npy_folder

    path, full = (
        str(tmp_path / "store"),
        pytest.raises(leaf_data.DataError, match="No spa"),
    )
    with full as error, npy_folder.Writer(path) as writer:
        writer.append("a", np.zeros(1))
        writer._files["a"] = open("/dev/full", "wb", buffering=0)
        writer.append("a", np.zeros(1))
    assert str(error.value).startswith(f"{path}: cannot be written")
    assert os.listdir(tmp_path) == []
