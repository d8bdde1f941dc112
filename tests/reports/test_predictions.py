"""The record of predictions, read back."""

import io
import os
import zipfile

import numpy as np
import pytest

from tff_pmc.record.predictions import read_predictions
from tff_pmc.record.read import read_run

Y = [0, 1, 0, 1, 1, 0]  # Three clients with two examples each.


def labels(splits, name="a"):
    return {"y": Y, "row_splits": splits, "client_ids": [name, "b", "c"]}


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        ("labels.npz", None, "is missing: was the run made with --predictions?"),
        ("round_0001.npz", None, "is missing"),
        ("round_0001.npz", b"PK broken", "cannot be read"),
        ("round_0001.npz", {"guessed": Y}, "cannot be read"),
        ("round_0001.npz", {"predicted": Y[:5]}, "has predictions of shape (5,)"),
        ("labels.npz", labels([0, 2, 6]), "row_splits does not split y"),
        ("labels.npz", labels([0, 4, 2, 6]), "row_splits does not split y"),
        ("labels.npz", labels([0, 2, 4, 6], "\ud800"), "client_ids is no text"),
    ],
)
def test_a_broken_record_of_predictions_is_named(
    tmp_path, file, content, part, fails, write_run
):
    folder = write_run(tmp_path / "DS", "DS", [[1, 1, 1, 0, 0, 0]])
    path = folder / "predictions" / file
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, **content)
    fails(lambda: read_predictions(str(folder), 1), path, part)


class Evil:
    def __reduce__(self):
        return os._exit, (3,)


def npy(array, **changes):
    """The bytes of an array's file, with some of them replaced."""
    file = io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    content = file.getvalue()
    for old, new in changes.values():
        assert old in content
        content = content.replace(old, new)
    return content


SIX = npy(np.zeros(6, np.uint8))


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (npy(np.array([Evil()] * 6, object)), "holds pickled objects"),
        (npy(np.zeros((2, 3), np.uint8)), "no array predicted of one dimension"),
        (npy(np.zeros(6)), "predicted is of float64"),
        (npy(np.array(["a"] * 6)), "predicted is of <U1"),
        (npy(np.array(6)), "no array predicted of one dimension"),
        (npy(np.full(6, 300)), "a class that is not in 0..255"),
        (npy(np.full(6, 2**63, np.uint64)), "a class that is not in 0..255"),
        (npy(np.zeros(6, np.uint8), a=(b"(6,)", b"(7,)")), "other bytes than its"),
        (SIX[:-3], "other bytes than its header says"),
        (b"\x80\x04", "cannot be read"),
    ],
)
def test_an_array_that_is_none_is_refused(tmp_path, content, part, fails, write_run):
    folder = write_run(tmp_path / "DS", "DS", [[1, 1, 1, 0, 0, 0]])
    path = folder / "predictions" / "round_0001.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("predicted.npy", content)
    fails(lambda: read_predictions(str(folder), 1), path, part)


@pytest.mark.parametrize("name", ["labels.npz", "round_0001.npz"])
def test_a_pipe_in_its_place_is_not_waited_for(tmp_path, name, fails, write_run):
    folder = write_run(tmp_path / "DS", "DS", [[1, 1, 1, 0, 0, 0]])
    path = folder / "predictions" / name
    path.unlink()
    os.mkfifo(path)
    fails(lambda: read_predictions(str(folder), 1), path, "it is no regular file")


def test_predictions_count_by_client_and_reorder(tmp_path, write_run):
    found = read_predictions(
        str(write_run(tmp_path / "DS", "DS", [[1, 0, 1, 1, 0, 0]])), 1
    )
    assert found.correct.tolist() == [1, 2, 0]
    turned = found.reordered([2, 0, 1])
    assert turned.client_ids == ("client_2", "client_0", "client_1")
    assert turned.correct.tolist() == [0, 1, 2]
    assert turned.y.tolist() == [1, 0, 0, 1, 0, 1]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("round_0002.npz", {"predicted": 1 - np.array(Y)}),
        # As many are right, of others' examples.
        ("labels.npz", {**labels([0, 1, 4, 6]), "y": [0, 1, 1, 1, 1, 0]}),
    ],
)
def test_predictions_that_clients_csv_does_not_know_are_refused(
    tmp_path, name, content, fails, write_run
):
    folder = write_run(tmp_path / "DS", "DS", [[1, 1, 1, 0, 0, 0], Y])
    run = read_run(str(folder))
    assert run.predictions(2).correct.tolist() == run.correct[1].tolist()
    np.savez(folder / "predictions" / name, **content)
    words = "does not give the counts of round 2 in clients.csv"
    fails(lambda: run.predictions(2), folder / "predictions" / "round_0002.npz", words)
