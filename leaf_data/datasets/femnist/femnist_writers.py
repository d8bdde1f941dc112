"""The choice of FEMNIST's writers as clients, and of their images for testing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.formats import cache
from leaf_data.formats.cache import Arrays
from leaf_data.splits import sampling


def train_and_test(
    arrays: Arrays, fraction: float, min_samples: int, seed: int, folder: str
) -> tuple[Examples, Examples]:
    """Samples writers, removes small ones, and splits what is not yet split."""
    names: tuple[str, ...] = ("all",) if "x_all" in arrays else ("train", "test")
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
        names, rows = ("all", "all"), [list(part) for part in zip(*splits)]
    elif stays.all() and fraction == 1:
        # All of them, and no copy of them.
        train, test = (cache.clients_examples(arrays, part) for part in names)
        return train, test
    else:
        cut = sampling.cut_parts(sizes, taken)[users].T
        rows = [[np.arange(count) for count in counts] for counts in cut]
    train, test = (_gather(arrays, part, users, own) for part, own in zip(names, rows))
    return train, test


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
