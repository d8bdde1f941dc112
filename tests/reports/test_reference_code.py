"""The published code's result folders, read back.

The folders in its form are written here by hand, from what its sources write; the
expected tables are worked out by hand.
"""

import os
import warnings

import pandas as pd
import pytest
from folders import ANNA, BERT, CARL, MNIST_LINES

import leaf_data
from leaf_data.formats import places
from tff_pmc.reports import reference_code, tables


def test_clients_are_followed_through_the_shuffled_lists(tmp_path, write_theirs):
    run = reference_code.read_run(str(write_theirs(tmp_path / "111015_21Nov2020")))
    assert (run.index, run.label) == (5, "LD,DS,MD")
    # By labels: Bert (4 ...), Carl (5 ...), Anna (7 ...).
    assert run.client_ids == ("4 1 4 9", "5 9 0 6", "7 2 1 0")
    assert run.correct.tolist() == [[1, 0, 2], [2, 3, 4]]
    assert run.examples.tolist() == [4, 4, 4]
    assert run.rounds["accuracy"].tolist() == pytest.approx([3 / 12, 9 / 12])
    assert run.rounds["p50"].tolist() == pytest.approx([0.25, 0.75])
    second = run.predictions(2)
    assert second.client_ids == run.client_ids
    assert second.predicted.tolist() == [4, 1, 3, 3, 5, 9, 0, 3, 7, 2, 1, 0]
    assert second.y.tolist() == [*BERT, *CARL, *ANNA]
    assert run.listed(2).y.tolist() == [*CARL, *BERT, *ANNA]


def test_where_labels_are_not_unique_devices_are_counted_but_not_followed(
    tmp_path, write_theirs, fails
):
    """Two clients with the labels 0, 1; one with 1, 1, 0, 1."""
    rounds = [
        [((0, 1), 2), ((1, 1, 0, 1), 1), ((0, 1), 0)],
        [((1, 1, 0, 1), 3), ((0, 1), 1), ((0, 1), 2)],
    ]
    lines = [*MNIST_LINES[1:-1], "Permutation: 1"]  # CelebA's have no first line.
    folder = write_theirs(tmp_path / "run", lines, rounds, True)
    run = reference_code.read_run(str(folder))
    assert run.label == "CB"  # By what is computed, whatever its script prints.
    assert run.examples.tolist() == [2, 2, 4]
    assert run.correct.tolist() == [[0, 2, 1], [1, 2, 3]]
    tidy = tables.tidy_rows([run], [70])
    reached = tidy.set_index("devices")["value"]
    # 70 %: one of the three in round 1 (2 of 2), two in round 2 (3 of 4, too).
    assert reached["30%"] == 1 and reached["60%"] == 2 and pd.isna(reached["90%"])
    fails(lambda: run.predictions(1), folder, "same test labels", "cannot be aligned")
    assert run.listed(1).predicted.tolist() == [0, 1, 1, 3, 3, 3, 3, 3]


def _replace(name, text):
    return lambda folder: (folder / name).write_text(text)


CLIENT = "round_2/client_1.csv"


def _params(old, new):
    def change(folder):
        path = folder / "params.txt"
        path.write_text(path.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    ("damage", "parts"),
    [
        (lambda f: (f / "params.txt").unlink(), ["params.txt is missing"]),
        (_params("Permutation: 5", "Permutation: 9"), ["from 0 to 8, got '9'"]),
        (_params("Permutation", "Order"), ["params.txt: Permutation", "got ''"]),
        (_params("clients): 3", "clients): 4"), ["round_1 ", "(client_4.csv)"]),
        (lambda f: (f / "round_1").rename(f / "round_3"), ["has no round_1"]),
        (lambda f: (f / "round_2").rename(f / "round_3"), ["has no round_2"]),
        (
            lambda f: (f / "round_2" / "client_2.csv").unlink(),
            ["round_2 ", "(client_2.csv)", "without its last round"],
        ),
        (_replace("round_1/notes.txt", ""), ["round_1 ", "(notes.txt)"]),
        (_replace(CLIENT, "y_true,y_pred\n1,1\n"), ["client_1.csv is not y_pred,y_"]),
        *(
            (_replace(CLIENT, f"y_pred,y_true\n{rows}"), ["client_1.csv is not y_pred"])
            for rows in "|,1|0.5,1|nan,1|1,1e300|1\n1|1,inf".split("|")
        ),
        (
            _replace(CLIENT, "y_pred,y_true\n" + "1,1\n" * (1 << 18)),
            ["client_1.csv cannot be read: it has more than 1,048,576 bytes"],
        ),
        (_params("clients): 3", "clients): " + "9" * 5000), ["from 1 to 1000000"]),
        (lambda f: (f / ("round_" + "9" * 200)).mkdir(), []),
        (_replace("params.txt", "x" * (2 << 20)), ["params.txt cannot be read"]),
        (lambda f: (f / "round_3").touch(), ["round_3 cannot be read"]),
        (
            _replace(CLIENT, "y_pred,y_true\n1,1\n"),
            ["round_2 has other test labels than round_1"],
        ),
        (_params("Local dataset type: non-iid\n", ""), ["on neither MNIST nor CelebA"]),
    ],
)
def test_a_broken_folder_is_refused_by_name(
    tmp_path, damage, parts, write_theirs, fails
):
    folder = write_theirs(tmp_path / "run")
    damage(folder)
    warnings.simplefilter("error")  # Nothing is said before the one line.
    fails(lambda: reference_code.read_run(str(folder)), folder, *parts)


def test_a_round_is_read_within_one_budget(tmp_path, write_theirs, fails):
    """Each of its files is small enough; each counts for 4,096 bytes at least."""
    folder = write_theirs(tmp_path / "run")
    assert len(reference_code.read_run(str(folder)).examples) == 3
    with places.budget(2 << 12):
        words = "client_3.csv cannot be read: with it, more than 8,192 bytes"
        fails(lambda: reference_code._read_round(str(folder), 1, 3), folder, words)


def test_on_mnist_the_labels_tell_the_clients_apart():
    """And so the clients of the published code's MNIST runs can be aligned."""
    folder = os.environ.get("TFF_PMC_DATA_DIR", "")
    name = "t10k-labels-idx1-ubyte.gz"
    paths = [os.path.join(folder, sub, name) for sub in ("", "mnist")]
    if not folder or not any(map(os.path.exists, paths)):
        pytest.skip("needs MNIST's idx files: set TFF_PMC_DATA_DIR to their folder")
    test = leaf_data.load("mnist", partition="iid").test_examples
    columns = {tuple(test.client(k)["y"].tolist()) for k in range(test.num_clients)}
    assert len(columns) == test.num_clients == 100
