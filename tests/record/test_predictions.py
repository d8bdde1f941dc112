"""The record of predictions, read back or refused."""

import os

import numpy as np
import pytest

from tff_pmc.record.predictions import read_predictions
from tff_pmc.record.record_error import RecordError

Y = [0, 1, 0, 1, 1, 0]  # Three clients with two examples each.
PREDICTED, LABELS = "round_0001.npz", "labels.npz"
LABELS_OF = {"y": Y, "row_splits": [0, 2, 4, 6], "client_ids": ["a", "b", "c"]}


@pytest.fixture
def folder(tmp_path):
    """A run's folder with the predictions of a round, of which four are right."""
    (tmp_path / "predictions").mkdir()
    np.savez(tmp_path / "predictions" / LABELS, **LABELS_OF)
    right = {"predicted": np.array([0, 1, 1, 1, 1, 255], np.uint8)}
    np.savez_compressed(tmp_path / "predictions" / PREDICTED, **right)
    return tmp_path


def test_predictions_are_read_by_client(folder):
    predictions = read_predictions(str(folder), 1)
    assert predictions.client_ids == ("a", "b", "c") and predictions.y.tolist() == Y
    assert predictions.right.tolist() == [True, True, False, True, True, False]
    assert predictions.correct.tolist() == [2, 1, 1]
    other = predictions.reorder([2, 0])
    assert other.client_ids == ("c", "a") and other.y.tolist() == [1, 0, 0, 1]
    assert other.predicted.tolist() == [1, 255, 0, 1]
    assert other.correct.tolist() == [1, 2]


class Evil:
    def __reduce__(self):
        return os._exit, (3,)


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        (LABELS, None, "is missing: was the run made with --predictions?"),
        (PREDICTED, None, "is missing: was the run made with --predictions?"),
        (PREDICTED, b"PK broken", "cannot be read"),
        (PREDICTED, {"guessed": Y}, "cannot be read"),
        (PREDICTED, {"predicted": Y[:5]}, "has predictions of shape (5,)"),
        (PREDICTED, {"predicted": np.array([Evil()] * 6, object)}, "cannot be read"),
    ],
    ids=["no labels", "no file", "no archive", "no array", "shorter", "code"],
)
def test_a_broken_record_of_predictions_is_named(
    folder, file, content, part, assert_one_line
):
    path = folder / "predictions" / file
    path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, **content)
    read = lambda: read_predictions(str(folder), 1)  # noqa: E731
    assert_one_line(RecordError, read, part, path)
