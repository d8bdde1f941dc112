"""The recorded predictions of a run: one label per test example and round.

    predictions/labels.npz      y [N], row_splits [K + 1], client_ids [K]
    predictions/round_NNNN.npz  predicted [N], by the model of that round

The N test examples are in the federation's order, client after client. `predicted` is
255 if a score was not a number; data sets with more than 255 classes are not recorded.
With a label per position, N counts the positions that count, example after example.
A run writes these files with `--predictions`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import error_summary
from tff_pmc.record.record_error import RecordError, RecordMissingError

FOLDER = "predictions"
"""The folder of the predictions in a run's folder."""

NO_CLASS = 255
"""The recorded label if a score was not a number."""


@dataclasses.dataclass(frozen=True)
class Predictions:
    """One round's predictions on the test examples of every client.

    Attributes:
        client_ids: the K clients, in the order of their examples.
        row_splits: client k has the examples `row_splits[k]:row_splits[k + 1]`,
            int64 [K + 1].
        y: the labels, int [N].
        predicted: the predicted labels, int [N].
    """

    client_ids: tuple[str, ...]
    row_splits: npt.NDArray[np.int64]
    y: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether each example is classified correctly, [N]."""
        right: npt.NDArray[np.bool_] = self.predicted == self.y
        return right

    @property
    def correct(self) -> npt.NDArray[np.int64]:
        """The number of correctly classified examples of each client, [K]."""
        sums = np.concatenate([[0], np.cumsum(self.right)])
        counts: npt.NDArray[np.int64] = np.diff(sums[self.row_splits])
        return counts

    def reorder(self, places: Sequence[int]) -> Predictions:
        """Returns a copy with the clients in the order of these indices."""
        splits = self.row_splits
        rows = [np.arange(splits[k], splits[k + 1]) for k in places]
        chosen = np.concatenate(rows)
        return Predictions(
            tuple(self.client_ids[k] for k in places),
            np.cumsum([0, *map(len, rows)]),
            self.y[chosen],
            self.predicted[chosen],
        )


def read_predictions(run_folder: str, round_num: int) -> Predictions:
    """Reads the predictions of one round of a run.

    Raises:
        RecordError: a file is missing (then a `RecordMissingError`) or broken, or the
            two differ in their number of examples; one line names it.
    """
    y, splits, clients = _read(labels_path(run_folder), "y", "row_splits", "client_ids")
    path = predictions_path(run_folder, round_num)
    (predicted,) = _read(path, "predicted")
    if predicted.shape != y.shape:
        raise RecordError(
            f"{path} has predictions of shape {predicted.shape}, but there are "
            f"{len(y)} test examples"
        )
    return Predictions(
        tuple(map(str, clients)), splits, y.astype(np.int64), predicted.astype(np.int64)
    )


def labels_path(run_folder: str) -> str:
    """Returns the path of the labels of a run's test examples."""
    return os.path.join(run_folder, FOLDER, "labels.npz")


def predictions_path(run_folder: str, round_num: int) -> str:
    """Returns the path of one round's predictions."""
    return os.path.join(run_folder, FOLDER, f"round_{round_num:04d}.npz")


def _read(path: str, *names: str) -> list[npt.NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return [archive[name] for name in names]
    except FileNotFoundError as error:
        raise RecordMissingError(
            f"{path} is missing: was the run made with --predictions?"
        ) from error
    except Exception as error:  # Damaged archives raise nearly anything.
        raise RecordError(f"{path} cannot be read: {error_summary(error)}") from error
