"""The published code's result folders, read as data frames.

The folders in its form are written by hand, from what its sources write; the expected
numbers are worked out by hand.
"""

import os

import pytest
from published_code import ANNA, BERT, CARL, MNIST_LINES, write_theirs

import leaf_data
from tff_pmc.record import reference_code
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import read_results
from tff_pmc.reports.statistics.rounds_to_target import rounds_to_target


def counts(results, label):
    clients = results.clients[results.clients["label"] == label]
    return clients.pivot(index="round", columns="client", values="correct").to_numpy()


def test_clients_are_followed_through_the_shuffled_lists(tmp_path):
    folder = str(write_theirs(tmp_path / "111015_21Nov2020"))
    results = read_results(folder)
    assert results.labels == ["LD,DS,MD"] and results.seeds == [0]
    # By labels: Bert (4 ...), Carl (5 ...), Anna (7 ...).
    assert counts(results, "LD,DS,MD").tolist() == [[1, 0, 2], [2, 3, 4]]
    assert results.rounds["accuracy"].tolist() == pytest.approx([3 / 12, 9 / 12])
    assert results.rounds["p50"].tolist() == pytest.approx([0.25, 0.75])
    second = results.predictions(0, "LD,DS,MD", 2)
    assert second.predicted.tolist() == [4, 1, 3, 3, 5, 9, 0, 3, 7, 2, 1, 0]
    assert second.y.tolist() == [*BERT, *CARL, *ANNA]
    assert reference_code.read_shuffled_predictions(folder, 2).y.tolist() == [
        *CARL,
        *BERT,
        *ANNA,
    ]


def test_where_labels_are_not_unique_devices_are_counted_but_not_followed(tmp_path):
    """Two clients with the labels 0, 1; one with 1, 1, 0, 1."""
    rounds = [
        [((0, 1), 2), ((1, 1, 0, 1), 1), ((0, 1), 0)],
        [((1, 1, 0, 1), 3), ((0, 1), 1), ((0, 1), 2)],
    ]
    lines = [*MNIST_LINES[1:-1], "Permutation: 1"]  # CelebA's have no first line.
    results = read_results(str(write_theirs(tmp_path / "run", lines, rounds, True)))
    assert results.labels == ["CB"]  # By what is computed, whatever its script prints.
    assert counts(results, "CB").tolist() == [[0, 2, 1], [1, 2, 3]]
    # 70 %: one of the three in round 1 (2 of 2), two in round 2 (3 of 4, too).
    reached = rounds_to_target(results, [70], [30, 60, 90])["rounds"]
    assert reached.tolist()[:2] == [1, 2] and reached.isna().tolist()[2]
    with pytest.raises(RecordError, match="same test labels, so the clients"):
        results.predictions(0, "CB", 1)


def test_runs_come_in_the_order_of_their_indices(tmp_path):
    for name, index in (("a", 8), ("b", 0), ("c", 5)):
        write_theirs(tmp_path / name, [*MNIST_LINES[:-1], f"Permutation: {index}"])
    (tmp_path / "notes").mkdir()
    results = read_results(str(tmp_path))
    assert results.labels == ["DS", "LD,DS,MD", "MD,LD,DS"]
    assert [path[-1] for path in results.runs["path"]] == ["b", "c", "a"]


CLIENT = "round_2/client_1.csv"


def _replace(name, text):
    return lambda folder: (folder / name).write_text(text)


def _params(old, new):
    def change(folder):
        path = folder / "params.txt"
        path.write_text(path.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_params("Permutation: 5", "Permutation: 9"), "params.txt: .* from 0 to 8"),
        (_params("Permutation", "Order"), "params.txt: Permutation must be a number"),
        (lambda f: (f / "round_2").rename(f / "round_3"), "has no round_2"),
        (
            lambda f: (f / "round_2" / "client_3.csv").rename(f / "gone"),
            "round_2 has other test labels",
        ),
        (_replace(CLIENT, "y_true,y_pred\n1,1\n"), "client_1.csv must have the header"),
        (_replace(CLIENT, "y_pred,y_true\n"), "client_1.csv must have the header"),
        (_replace(CLIENT, "y_pred,y_true\n1\n"), "client_1.csv must have the header"),
        (_replace(CLIENT, "y_pred,y_true\n0.5,1\n"), "rows of class numbers"),
        (_replace(CLIENT, "y_pred,y_true\nnan,1\n"), "rows of class numbers"),
        (_replace(CLIENT, "y_pred,y_true\n1,1\n"), "round_2 has other test labels"),
    ],
)
def test_a_broken_folder_is_rejected_and_named(tmp_path, damage, words):
    folder = write_theirs(tmp_path / "run")
    damage(folder)
    with pytest.raises(RecordError, match=words) as caught:
        read_results(str(folder))
    assert str(folder) in str(caught.value) and "\n" not in str(caught.value)


def test_two_runs_of_one_ordering_are_rejected(tmp_path):
    for name in ("1", "2"):
        write_theirs(tmp_path / name)
    with pytest.raises(RecordError, match="1 and .*2 are both runs of LD,DS,MD"):
        read_results(str(tmp_path))


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
