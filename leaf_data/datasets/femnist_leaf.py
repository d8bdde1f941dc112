"""FEMNIST, read from LEAF's JSON files into a few arrays of all users' examples."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tqdm

from leaf_data.errors import DataError
from leaf_data.formats import leaf_json
from leaf_data.formats.cache import Arrays

SIDE = 28  # The width and height of the images, in pixels.
NUM_CLASSES = 62  # Digits, capital and small letters.
_PIXELS = SIDE * SIDE
_Examples = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]
_EMPTY: _Examples = (np.zeros((0, SIDE, SIDE), np.uint8), np.zeros(0, np.int32))
_LOG = logging.getLogger(__name__)


def read(files: Sequence[leaf_json.LeafFile]) -> Arrays:
    """Reads the files, one user at a time, with a progress bar on stderr.

    The users are in the order of the files and, within a file, of its `users`. A user
    that is in several files of one part is one user with all the examples, in the
    files' order; examples that equal those of an earlier file are dropped as copies.
    Both are logged.

    Raises:
        DataError: a file is not FEMNIST's, a user has no examples, or files are of two
            draws of `preprocess.sh`, in which a user has the same examples.
    """
    users: dict[str, int] = {}
    paths: dict[str, str] = {}
    parts: dict[str, dict[str, _Examples]] = {file.part: {} for file in files}
    digests = []
    progress = tqdm.tqdm(files, "FEMNIST, once", unit="file", delay=2, mininterval=1)
    for file in progress:
        users_of_file, digest = leaf_json.read(file.path, to_arrays)
        digests.append(digest)
        for user, examples in users_of_file.items():
            paths.setdefault(user, file.path)
            users.setdefault(user, file.number)
            examples_by_user = parts[file.part]
            examples_by_user[user] = _join(
                file.path, user, examples_by_user.get(user), examples
            )
    leaf_json.check_apart(files, digests)
    if "all" not in parts:
        for user in parts["train"].keys() & parts["test"].keys():
            pair = parts["train"][user], parts["test"][user]
            _check_one_draw(files[0].folder, user, *pair)
    arrays: Arrays = {
        "client_ids": np.array(list(users), str),
        "files": np.array(list(users.values()), np.int64),
    }
    for part, of_users in parts.items():
        examples_in_order = [of_users.pop(user, _EMPTY) for user in users]
        arrays[f"sizes_{part}"] = np.array(
            [len(y) for _, y in examples_in_order], np.int64
        )
        arrays[f"x_{part}"] = np.concatenate(
            [_EMPTY[0], *(x for x, _ in examples_in_order)]
        )
        arrays[f"y_{part}"] = np.concatenate(
            [_EMPTY[1], *(y for _, y in examples_in_order)]
        )
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
        _LOG.warning(
            "%s: user %s appears again with the same examples: they are dropped",
            path,
            user,
        )
        return before
    _check_one_draw(path, user, before, examples)
    _LOG.warning(
        "%s: user %s appears again: these examples are added to the earlier ones",
        path,
        user,
    )
    return np.concatenate([x, more_x]), np.concatenate([y, more_y])


def _check_one_draw(where: str, user: str, *draws: _Examples) -> None:
    """Raises a `DataError` if half or more of a user's examples are in two files.

    `group_by_writer.py` writes one image of each writer twice, so that one may be in
    both, and a few where `-s iid` mixes writers.
    """
    first, second = (
        {(image.tobytes(), label) for image, label in zip(x, y.tolist())}
        for x, y in draws
    )
    count = len(first & second)
    if count > 1 and 2 * count >= min(len(first), len(second)):
        raise DataError(
            f"{where}: user {user} has {count} examples in two files: they come from "
            "different runs of preprocess.sh: keep the files of one"
        )


def _warn_of_halves(arrays: Arrays, folder: str) -> None:
    """Warns of users without a part, after LEAF's `-t user` or without a file."""
    if "sizes_train" not in arrays:
        return
    train, test = arrays["sizes_train"], arrays["sizes_test"]
    for part, sizes, other_sizes in (("training", train, test), ("test", test, train)):
        count = np.sum((sizes == 0) & (other_sizes > 0))
        if count:
            _LOG.warning(
                "%s: %d of %d users have no %s examples (split by user, or a file is "
                "missing)",
                os.path.dirname(folder),
                count,
                len(train),
                part,
            )


def to_arrays(x: list[Any], y: list[Any]) -> _Examples:
    """Converts a LEAF user's lists `x` and `y` to arrays."""
    for index, image in enumerate(x):
        if not isinstance(image, list) or len(image) != _PIXELS:
            content = f"{len(image)} values" if isinstance(image, list) else repr(image)
            raise DataError(f"image {index} is {content[:40]}, not {_PIXELS} values")
    # Booleans and digits in quotes would pass for numbers in numpy.
    if not set(map(type, itertools.chain.from_iterable(x))) <= {int, float}:
        for index, image in enumerate(x):
            for value in image:
                if type(value) not in (int, float):
                    raise DataError(f"image {index} has the value {value!r:.40}")
    for index, label in enumerate(y):
        if type(label) not in (int, float) or label not in range(NUM_CLASSES):
            raise DataError(
                f"label {index} is {label!r:.40}, not one of 0 to {NUM_CLASSES - 1}"
            )
    try:
        values = np.array(x, np.float64).reshape(-1, _PIXELS)
    except OverflowError as error:  # An integer of hundreds of digits.
        raise DataError("an image has a value that is not in [0, 1]") from error
    return to_bytes(values), np.array(y, np.int32)


def to_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Converts pixels in [0, 1] to bytes by `round(255 * v)`: LEAF divided by 255."""
    in_range = (values >= 0) & (values <= 1)  # False for NaN.
    if not in_range.all():
        index, pixel = np.argwhere(~in_range)[0]
        raise DataError(
            f"image {index} has the value {values[index, pixel]:g}, not in [0, 1]"
        )
    pixels: npt.NDArray[np.uint8] = np.rint(255 * values).astype(np.uint8)
    return pixels.reshape(-1, SIDE, SIDE)
