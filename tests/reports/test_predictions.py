"""The record of predictions, read back."""

import numpy as np
import pytest

from tff_pmc.reports.predictions import read_predictions

Y = [0, 1, 0, 1, 1, 0]  # Three clients with two examples each.


@pytest.mark.parametrize(
    ("file", "content", "part"),
    [
        ("labels.npz", None, "is missing: was the run made with --predictions?"),
        ("round_0001.npz", None, "is missing"),
        ("round_0001.npz", b"PK broken", "cannot be read"),
        ("round_0001.npz", {"guessed": Y}, "cannot be read"),
        ("round_0001.npz", {"predicted": Y[:5]}, "has predictions of shape (5,)"),
        (
            "labels.npz",
            {"y": Y, "row_splits": [0, 2, 6], "client_ids": ["a", "b", "c"]},
            "row_splits does not split y",
        ),
        (
            "labels.npz",
            {"y": Y, "row_splits": [0, 4, 2, 6], "client_ids": ["a", "b", "c"]},
            "row_splits does not split y",
        ),
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


def test_predictions_count_by_client_and_reorder(tmp_path, write_run):
    found = read_predictions(
        str(write_run(tmp_path / "DS", "DS", [[1, 0, 1, 1, 0, 0]])), 1
    )
    assert found.correct.tolist() == [1, 2, 0]
    turned = found.reordered([2, 0, 1])
    assert turned.client_ids == ("client_2", "client_0", "client_1")
    assert turned.correct.tolist() == [0, 1, 2]
    assert turned.y.tolist() == [1, 0, 0, 1, 0, 1]
