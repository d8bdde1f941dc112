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


class Evil:
    def __reduce__(self):
        return os._exit, (3,)


def npy(array, old=b"", new=b""):
    """A file of predictions whose array has some bytes replaced."""
    file, archive = io.BytesIO(), io.BytesIO()
    np.save(file, np.asarray(array), allow_pickle=True)
    assert old in file.getvalue()
    with zipfile.ZipFile(archive, "w") as whole:
        whole.writestr("predicted.npy", file.getvalue().replace(old, new))
    return archive.getvalue()


SIX = np.zeros(6, np.uint8)
PREDICTED = "round_0001.npz"


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        ("labels.npz", None, "is missing: was the run made with --predictions?"),
        (PREDICTED, None, "is missing"),
        *((name, os.mkfifo, "no regular file") for name in ("labels.npz", PREDICTED)),
        (PREDICTED, b"PK broken", "cannot be read"),
        (PREDICTED, {"guessed": Y}, "cannot be read"),
        (PREDICTED, {"predicted": Y[:5]}, "has predictions of shape (5,)"),
        ("labels.npz", labels([0, 2, 6]), "row_splits does not split y"),
        ("labels.npz", labels([0, 4, 2, 6]), "row_splits does not split y"),
        ("labels.npz", labels([0, 2, 4, 6], "\ud800"), "client_ids is no text"),
        (PREDICTED, npy(np.array([Evil()] * 6, object)), "holds pickled objects"),
        (PREDICTED, npy([SIX[:3], SIX[3:]]), "no array predicted of one dimension"),
        (PREDICTED, npy(6), "no array predicted of one dimension"),
        (PREDICTED, npy(np.zeros(6)), "predicted is of float64"),
        (PREDICTED, npy(["a"] * 6), "predicted is of <U1"),
        (PREDICTED, npy([300] * 6), "a class that is not in 0..255"),
        (PREDICTED, npy(np.full(6, 2**63, np.uint64)), "class that is not in 0..255"),
        (PREDICTED, npy(SIX, b"(6,)", b"(7,)"), "other bytes than its header says"),
        (PREDICTED, npy(SIX, bytes(6), bytes(3)), "other bytes than its header says"),
        (PREDICTED, npy(SIX, b"\x93NUMPY", b"\x80\x04"), "cannot be read"),
    ],
    # Archives have a time in them, and names of tests must not.
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_record_of_predictions_is_named(
    tmp_path, file, content, part, fails, write_run
):
    folder = write_run(tmp_path / "DS", "DS", [[1, 1, 1, 0, 0, 0]])
    path = folder / "predictions" / file
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    elif content is not None:
        content(path)
    fails(lambda: read_predictions(str(folder), 1), path, part)


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
