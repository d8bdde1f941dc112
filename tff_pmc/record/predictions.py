"""The record of a run's predictions, one for each test example and round.

    predictions/labels.npz      y [N], row_splits [K + 1], client_ids [K]
    predictions/round_NNNN.npz  predicted [N], the model of that round

N test examples in the federation's order, client after client; predicted is 255 where
a score was not a number, as more classes than 255 are not recorded. A run writes the
record when it is asked to (`--predictions`).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leaf_data.errors import one_line
from leaf_data.formats import npz
from tff_pmc.record.record_error import RecordError, RecordMissingError

FOLDER = "predictions"
_LARGEST = 1 << 24  # Of a file that is read, bytes.
_MOST_CLASSES = 256  # A run writes them as uint8.
_MOST_EXAMPLES = 1 << 22


class Limit(NamedTuple):
    """What an array may be."""

    kinds: str  # `iu` for integers, `U` for text.
    items: int  # The largest number of them.
    item_bytes: int = 8  # The largest item.


_CLASSES = Limit("iu", _MOST_EXAMPLES)
_SPLITS = Limit("iu", 1 << 21)
# Names have at most 256 characters, each of four bytes.
_NAMES = Limit("U", 1 << 15, 4 * 256)


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

    def reordered(self, places: Sequence[int]) -> Predictions:
        """Returns a copy with the clients in the order of `places`."""
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
    """Reads the record of one round of one of our runs."""
    folder = os.path.join(run_folder, FOLDER)
    labels = os.path.join(folder, "labels.npz")
    found = _read(labels, y=_CLASSES, row_splits=_SPLITS, client_ids=_NAMES)
    y = found["y"].astype(np.int64, copy=False)
    splits = found["row_splits"].astype(np.int64, copy=False)
    clients = tuple(str(name) for name in found["client_ids"])
    fits = splits.shape == (len(clients) + 1,) and splits[0] == 0
    if not (fits and splits[-1] == len(y) and (np.diff(splits) >= 0).all()):
        raise RecordError(f"{labels}: row_splits does not split y among the clients")
    name = path_of(run_folder, round_num)
    predicted = _read(name, predicted=_CLASSES)["predicted"].astype(np.int64)
    if predicted.shape != y.shape:
        raise RecordError(
            f"{name} has predictions of shape {predicted.shape}, and there are "
            f"{len(y)} test examples"
        )
    for path, classes in ((labels, y), (name, predicted)):
        if ((classes < 0) | (classes >= _MOST_CLASSES)).any():
            raise RecordError(f"{path} has a class that is not in 0..255")
    return Predictions(clients, splits, y, predicted)


def path_of(run_folder: str, round_num: int) -> str:
    """Returns the file of one round's predictions."""
    return os.path.join(run_folder, FOLDER, f"round_{round_num:04d}.npz")


def _read(path: str, **limits: Limit) -> dict[str, npt.NDArray[np.generic]]:
    """Reads arrays of one dimension, each within its limit; others are passed over."""
    try:
        with npz.opened(path, _LARGEST) as found:
            return {name: _array(found, name, one) for name, one in limits.items()}
    except FileNotFoundError as error:
        raise RecordMissingError(
            f"{path} is missing: was the run made with --predictions?"
        ) from error
    except Exception as error:  # Damaged archives raise nearly anything.
        reason = getattr(error, "strerror", None) or one_line(error)
        raise RecordError(f"{path} cannot be read: {reason}") from error


def _array(
    found: Mapping[str, npz.Member], name: str, limit: Limit
) -> npt.NDArray[np.generic]:
    header = found.get(name)
    if header is None or len(header.shape) != 1:
        raise ValueError(f"there is no array {name} of one dimension")
    if header.dtype.kind not in limit.kinds or header.dtype.itemsize > limit.item_bytes:
        raise ValueError(f"{name} is of {header.dtype}")
    if header.shape[0] > limit.items:
        raise ValueError(
            f"{name} has {header.shape[0]:,} items, more than {limit.items:,}"
        )
    array = header.read()
    if header.dtype.kind == "U":
        # What is no character, or half of one, ends Python's own words for it.
        codes = np.frombuffer(array.tobytes(), header.dtype.byteorder + "u4")
        if ((codes > 0x10FFFF) | (codes >> 11 == 0xD800 >> 11)).any():
            raise ValueError(f"{name} is no text")
    return array
