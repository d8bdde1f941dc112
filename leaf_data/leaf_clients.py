"""The clients of LEAF's JSON files whose inputs are numbers of one shape."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError
from leaf_data.formats import csv_fields, data_files, leaf_json
from leaf_data.store import Client

_LOG = logging.getLogger(__name__)


def read_clients(folder: str, label_type: str = "class") -> Iterator[Client]:
    """Reads the users of LEAF's files in a folder, and their test examples if any.

    A user's training and test examples belong together by the user's name, whatever
    the files are called. A user without any example is excluded, with a warning.

    Args:
        folder: the folder.
        label_type: "class" for whole numbers from 0, also where the files have them as
            1.0; or "number", for the values of a regression.

    Raises:
        DataError: the files are not LEAF's, do not belong together, or have labels of
            another type; the message names file and user.
    """
    files = leaf_json.find("LEAF", [data_files.check_folder(folder)])
    tests = (file for file in files if file.part == "test")
    read: list[leaf_json.LeafFile] = []
    digests: list[str] = []
    paths: dict[tuple[str, str], str] = {}  # The file of each user, by part.
    waiting: dict[str, Any] = {}  # Users' test examples, until they are trained on.

    def read_users(file: leaf_json.LeafFile) -> dict[str, Any]:
        users, digest = leaf_json.read(
            file.path, lambda x, y: _arrays(x, y, label_type)
        )
        read.append(file)
        digests.append(digest)
        leaf_json.check_apart(read, digests)
        for user in users:
            earlier = paths.setdefault((user, file.part), file.path)
            if earlier != file.path:
                raise DataError(
                    f"user {user}: is in {earlier} and in {file.path}: keep the files "
                    "of one run of preprocess.sh"
                )
        return users

    for file in files:
        if file.part == "test":
            continue
        for user, train in read_users(file).items():
            parts = [train]
            if file.part == "train":
                while user not in waiting and (test_file := next(tests, None)):
                    waiting.update(read_users(test_file))
                if user not in waiting:
                    raise DataError(
                        f"user {user} is in {file.path}, but in no test file"
                    )
                parts.append(waiting.pop(user))
            yield from _fill_empty_parts(user, parts, file.path)
    for file in tests:
        waiting.update(read_users(file))
    for user in waiting:
        path = paths[user, "test"]
        raise DataError(f"user {user} is in {path}, but in no train file")


def _fill_empty_parts(user: str, parts: list[Any], path: str) -> Iterator[Client]:
    """Yields a user whose parts have arrays of one shape, or warns that all are empty.

    Lists without examples have no shape: they get the shape of the other part.
    """
    full = [part for part in parts if len(part[1])]
    if not full:
        _LOG.warning("%s: user %s has no examples, and is excluded", path, user)
        return
    empty = [values[:0] for values in full[0]]
    filled = [part if len(part[1]) else empty for part in parts]
    yield (user, *(values for part in filled for values in part))


def _arrays(
    x: list[Any], y: list[Any], label_type: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns the examples of a user: float32 inputs, int64 or float64 labels."""
    try:
        numbers, labels = np.array(x), np.array(y)
        if numbers.dtype.kind not in "iuf":
            raise ValueError(f"they are {numbers.dtype}")
        with np.errstate(over="ignore"):
            inputs = numbers.astype(np.float32)
        if not np.isfinite(inputs).all():
            raise ValueError("a number is too large for float32")
    except ValueError as error:
        raise DataError("its examples are not float32 numbers of one shape") from error
    lost = inputs != numbers
    if numbers.dtype.kind == "f":  # Beyond 2^53 every float is a whole number.
        lost = (abs(numbers) < 2.0**53) & (abs(inputs - numbers) > 0.5)
    if lost.any():
        why = csv_fields.PRECISION_LOSS.format(inputs[lost][0])
        raise DataError(f"its examples have {numbers[lost][0]}: {why}")
    if label_type == "number" and labels.dtype.kind in "iu":
        labels = labels.astype(np.float64)
    elif label_type == "class" and labels.dtype.kind == "f":  # FedProx's are 3.0, say.
        whole = np.isfinite(labels) & (np.rint(labels) == labels)
        if not whole.all():
            raise DataError(
                f"y has {labels[~whole][0]}: labels must be whole numbers, 0 or more; "
                "--label_type=number takes the values of a regression"
            )
        labels = labels.astype(np.int64)
    return inputs, labels
