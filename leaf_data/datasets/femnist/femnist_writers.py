"""The choice of FEMNIST's writers as clients, and of their images for testing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.formats.cache import Arrays
from leaf_data.splits import sampling


def train_and_test(
    arrays: Arrays, fraction: float, min_samples: int, seed: int, folder: str
) -> tuple[Examples, Examples]:
    """Samples writers, removes small ones, and splits what is not yet split.

    Args:
        arrays: the examples as `femnist_leaf.read` returns them.
        fraction: the fraction to sample, see `sampling.niid`; 1 takes all.
        min_samples: writers with fewer sampled images are removed.
        seed: the seed of the sampling and of the split.
        folder: the folder the examples are from, for the message.

    Returns:
        The train and the test examples of the writers that are left.

    Raises:
        DataError: no writer is left.
    """
    names = ("all",) if "x_all" in arrays else ("train", "test")
    sizes = np.stack([arrays[f"sizes_{name}"] for name in names], axis=1)
    ids = arrays["client_ids"].tolist()
    taken = sizes.sum(axis=1)  # Of each writer.
    stays = np.ones(len(ids), bool)
    if fraction < 1:
        files = arrays.get("files", np.zeros(len(ids), np.int64))
        taken = sampling.niid(taken, files, fraction, seed)
        stays &= taken > 0
    stays &= taken >= max(min_samples, 2 if names == ("all",) else 0)
    if not stays.any():
        raise DataError(
            f"femnist: no writer in {folder} is left with sample_fraction={fraction} "
            f"and min_samples={min_samples}"
        )
    users = np.flatnonzero(stays)
    if names == ("all",):
        splits = [sampling.split(ids[k], int(taken[k]), seed) for k in users]
        train, test = zip(*splits)
        return _gather(arrays, "all", users, train), _gather(arrays, "all", users, test)
    if stays.all() and fraction == 1:
        # All of them, and no copy of them.
        return _whole(arrays, "train"), _whole(arrays, "test")
    cut = sampling.cut_parts(sizes, taken)
    rows = [[np.arange(count) for count in cut[users, part]] for part in (0, 1)]
    return (
        _gather(arrays, "train", users, rows[0]),
        _gather(arrays, "test", users, rows[1]),
    )


def _whole(arrays: Arrays, part: str) -> Examples:
    """Returns all examples of a part, as views."""
    sizes = arrays[f"sizes_{part}"]
    return Examples(
        x=arrays[f"x_{part}"],
        y=arrays[f"y_{part}"],
        row_splits=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        client_ids=tuple(arrays["client_ids"].tolist()),
    )


def _gather(
    arrays: Arrays,
    part: str,
    users: npt.NDArray[np.int64],
    rows: Sequence[npt.NDArray[np.int64]],
) -> Examples:
    """Returns these users' examples, of each the rows counted from its own first."""
    sizes = arrays[f"sizes_{part}"]
    starts = np.cumsum(sizes) - sizes
    return Examples.from_parts(
        arrays[f"x_{part}"],
        arrays[f"y_{part}"],
        [starts[k] + chosen for k, chosen in zip(users, rows)],
        arrays["client_ids"][users].tolist(),
    )
