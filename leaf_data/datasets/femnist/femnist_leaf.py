"""FEMNIST, read from LEAF's JSON files into a few arrays of all users' examples."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tqdm

from leaf_data.datasets.femnist import femnist_values
from leaf_data.errors import DataError
from leaf_data.formats import leaf_json
from leaf_data.formats.cache import Arrays

_Examples = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]
_EMPTY: _Examples = (
    np.zeros((0, femnist_values.SIDE, femnist_values.SIDE), np.uint8),
    np.zeros(0, np.int32),
)
_LOG = logging.getLogger(__name__)


def read(files: Sequence[leaf_json.LeafFile]) -> Arrays:
    """Reads the files, one user at a time, with a progress bar on stderr.

    The users are in the order of the files and, within a file, of its `users`. A user
    that is in several files of one part is one user with all the examples, in the
    files' order; examples that are exactly those of an earlier file are left out, as
    copies. Both are logged.

    Args:
        files: the files as `leaf_json.find` returns them.

    Returns:
        For each part ("train" and "test", or "all") `x_PART` uint8 [N, 28, 28],
        `y_PART` int32 [N] and `sizes_PART` int64 [K], the K users' numbers of
        examples; `client_ids` [K]; `files` int64 [K], the number of each user's file;
        `source_names` and `source_sha256`, of each file.

    Raises:
        DataError: a file cannot be used, or is there for training and for testing;
            the message names file and user.
    """
    users: dict[str, int] = {}
    paths: dict[str, str] = {}
    parts: dict[str, dict[str, _Examples]] = {file.part: {} for file in files}
    digests = []
    try:
        total = sum(os.path.getsize(file.path) for file in files)
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read ({error})") from error
    with tqdm.tqdm(
        total=total,
        desc="FEMNIST, once",
        unit="B",
        unit_scale=True,
        delay=2,
        mininterval=1,
    ) as progress:
        for file in files:
            found, digest = leaf_json.read(
                file.path, femnist_values.examples, progress.update
            )
            digests.append(digest)
            for user, examples in found.items():
                paths.setdefault(user, file.path)
                users.setdefault(user, file.number)
                own = parts[file.part]
                own[user] = _join(file.path, user, own.get(user), examples)
    leaf_json.check_apart(files, digests)
    arrays: Arrays = {
        "client_ids": np.array(list(users), str),
        "files": np.array(list(users.values()), np.int64),
        "source_names": np.array([os.path.basename(file.path) for file in files]),
        "source_sha256": np.array(digests),
    }
    for part, of_users in parts.items():
        ordered = [of_users.pop(user, _EMPTY) for user in users]
        arrays[f"sizes_{part}"] = np.array([len(y) for _, y in ordered], np.int64)
        arrays[f"x_{part}"] = np.concatenate([_EMPTY[0], *(x for x, _ in ordered)])
        arrays[f"y_{part}"] = np.concatenate([_EMPTY[1], *(y for _, y in ordered)])
    counts = np.sum([arrays[f"sizes_{part}"] for part in parts], axis=0)
    for user, count in zip(users, counts):
        if not count and "all" not in parts:  # LEAF's split drops them.
            raise DataError(f"{paths[user]}: user {user}: has no examples in any file")
    _warn_of_halves(arrays, os.path.dirname(files[0].path))
    return arrays


def _join(
    path: str, user: str, before: _Examples | None, examples: _Examples
) -> _Examples:
    if before is None:
        return examples
    (x, y), (more_x, more_y) = before, examples
    if np.array_equal(x, more_x) and np.array_equal(y, more_y):
        _LOG.warning("%s: user %s: the same examples as before, left out", path, user)
        return before
    _LOG.warning("%s: user %s: joined to the examples before", path, user)
    return np.concatenate([x, more_x]), np.concatenate([y, more_y])


def _warn_of_halves(arrays: Arrays, folder: str) -> None:
    """Warns of users without train or test examples.

    LEAF's `-t user` makes such users, but so does a file that is missing.
    """
    if "sizes_train" not in arrays:
        return
    train, test = arrays["sizes_train"], arrays["sizes_test"]
    halves: dict[str, Any] = {
        "training": np.sum((train == 0) & (test > 0)),
        "test": np.sum((test == 0) & (train > 0)),
    }
    for part, count in halves.items():
        if count:
            _LOG.warning(
                "%s: %d of %d users have no %s examples (split by user, or a file is "
                "missing)",
                os.path.dirname(folder),
                count,
                len(train),
                part,
            )
