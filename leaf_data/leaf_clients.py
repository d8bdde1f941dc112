"""Reads the clients of LEAF's JSON files: of its data sets, or of others in numbers."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from leaf_data import partition
from leaf_data.errors import DataError
from leaf_data.examples import LARGEST_LABEL, MASKED, Examples, as_labels
from leaf_data.federated import Origin
from leaf_data.formats import csv_fields, data_files, leaf_json
from leaf_data.formats.cache import Arrays, load_or_make
from leaf_data.formats.data_files import Folder
from leaf_data.store import Client
from leaf_data.text import WINDOW

TARGETS = "target_tokens"
"""The key of the labels of LEAF's Reddit: for each token of a sequence the next one."""


Convert = Callable[[list[Any], list[Any]], tuple[npt.NDArray[Any], npt.NDArray[Any]]]
"""Returns the inputs and labels of a user, arrays, from the lists `x` and `y`."""

Split = Callable[[str, int], tuple[partition.IntArray, partition.IntArray]]
"""Returns the rows of a user to train on and to test on, by name and number of rows."""

_LOG = logging.getLogger(__name__)
_BOTH = "each user trains and is tested, as with LEAF's preprocess.sh -t sample"


def load_cached(
    name: str,
    folders: Sequence[str],
    read: Callable[[Sequence[leaf_json.LeafFile]], Arrays],
    cache_dir: Folder | None,
    **parameters: Any,
) -> tuple[Arrays, Origin]:
    """Finds LEAF's files of a data set, and reads them into a cache.

    Args:
        name: the data set.
        folders: where its files are looked for.
        read: reads the files into arrays.
        cache_dir: see `cache.load_or_make`.
        **parameters: what else the arrays depend on, as JSON.

    Raises:
        DataError: the files are missing, or `read` raises it.
    """
    files = leaf_json.find(name, folders)
    folder = files[0].folder
    paths = [file.path for file in files]
    arrays, digests = load_or_make(
        name, folder, paths, lambda: read(files), cache_dir, **parameters
    )
    sub = os.path.basename(os.path.dirname(files[0].path))
    has_parts = {file.part for file in files} != {"all"}
    split = "train and test" if has_parts else f"{sub}, split here"
    names = [os.path.basename(file.path) for file in files]
    return arrays, Origin(f"LEAF JSON ({split})", tuple(zip(names, digests)), folder)


def read_arrays(files: Sequence[leaf_json.LeafFile], convert: Convert) -> Arrays:
    """Reads all users' examples, in the form that `Examples.from_arrays` takes.

    The arguments and errors are those of `read_files`, without `check_counts`.
    """
    users: list[str] = []
    columns: dict[str, list[npt.NDArray[Any]]] = {}
    parts = ("train", "test") if any(f.part == "test" for f in files) else ("all",)
    for user, *values in read_files(files, convert, check_counts=False):
        users.append(user)
        for k, part in enumerate(parts):
            for column, array in zip("xy", values[2 * k : 2 * k + 2]):
                columns.setdefault(f"{column}_{part}", []).append(array)
    arrays: Arrays = {"client_ids": np.array(users, str)}
    for name, user_arrays in columns.items():
        sizes = [len(array) for array in user_arrays]
        arrays[f"sizes_{name[2:]}"] = np.array(sizes, np.int64)
        arrays[name] = np.concatenate(user_arrays)
    return arrays


def split_examples(
    arrays: Arrays,
    folder: str,
    split_fn: Split,
) -> list[Examples]:
    """Returns the training and the test examples of `read_arrays`.

    Args:
        arrays: the arrays. Users of split files without any example are excluded.
        folder: their folder, for messages.
        split_fn: splits a user's examples, if the files are not split. Users whom it
            leaves no test example are excluded, as by LEAF's script.

    Raises:
        DataError: no training or no test example remains.
    """
    if "x_all" in arrays:
        pool = Examples.from_arrays(arrays, "all")
        splits = {
            user: [start + rows for rows in split_fn(user, int(size))]
            for user, start, size in zip(pool.client_ids, pool.row_splits, pool.sizes)
        }
        complete = {user: rows for user, rows in splits.items() if len(rows[1])}
        part_rows = zip(*complete.values())
        parts = [
            Examples.from_parts(pool.x, pool.y, rows, complete) for rows in part_rows
        ]
    else:
        parts = [Examples.from_arrays(arrays, part) for part in ("train", "test")]
        users = np.flatnonzero(parts[0].sizes + parts[1].sizes)
        if 0 < len(users) < len(parts[0].sizes):
            ids = [parts[0].client_ids[k] for k in users]
            parts = [part.subset(ids) for part in parts]
    check_usable(parts, folder)
    return parts


def check_usable(parts: Sequence[Examples], folder: str) -> None:
    """Raises a `DataError` if training or test examples, `parts`, have none."""
    counts = [part.num_examples for part in parts] or [0, 0]
    if not all(counts):
        raise DataError(
            f"{folder}: has {counts[0]} usable training and {counts[1]} usable test "
            "examples: it needs both"
        )


def is_tweet(example: Any) -> bool:
    """Returns whether an example is Sent140's: id, date, query, user, text.

    The words of a sentence, and rows of numbers and words, are not.
    """
    if not isinstance(example, list) or len(example) < 5:
        return False
    number, *others = example[:5]
    return str(number).isdigit() and all(isinstance(field, str) for field in others)


class _FirstUserError(Exception):
    """Ends the reading of a file with the first example of its first user."""


def detect_dataset(files: Sequence[leaf_json.LeafFile]) -> str:
    """Returns the data set of text that the first example comes from, else ""."""

    def stop(x: list[Any], y: list[Any]) -> None:
        if x:
            raise _FirstUserError(x[0], y[0])

    for file in files:
        try:
            leaf_json.read(file.path, stop, check_counts=False)
        except _FirstUserError as first:
            x, y = first.args
            if isinstance(x, str) and len(x) == WINDOW:
                return "shakespeare"
            if is_tweet(x):
                return "sent140"
            return "reddit" if isinstance(y, dict) and TARGETS in y else ""
    return ""


def read_clients(folder: str, label_type: str = "class") -> Iterator[Client]:
    """Reads the users of LEAF's files in a folder, and their test examples if any.

    A user's training and test examples belong together by the user's name, whatever
    the files are called. A user without any example is excluded, with a warning.

    Args:
        folder: the folder.
        label_type: "class" for whole numbers from 0, also where the files have them as
            1.0; or "number", for the values of a regression.

    Raises:
        DataError: the files are not LEAF's, do not belong together, have no examples,
            or labels of another type; the message names file and user.
    """
    files = leaf_json.find("LEAF", [data_files.check_folder(folder)])
    return read_files(files, lambda x, y: _arrays(x, y, label_type))


def read_files(
    files: Sequence[leaf_json.LeafFile], convert: Convert, *, check_counts: bool = True
) -> Iterator[Client]:
    """Reads the users of files as `read_clients` does, with the conversion `convert`.

    `check_counts` is that of `leaf_json.read`.
    """
    tests = (file for file in files if file.part == "test")
    read: list[leaf_json.LeafFile] = []
    digests: list[str] = []
    paths: dict[tuple[str, str], str] = {}  # The file of each user, by part.
    waiting: dict[str, Any] = {}  # Users' test examples, until they are trained on.
    shapes: list[Any] = []  # Of x and y of an example.

    def read_users(file: leaf_json.LeafFile) -> dict[str, Any]:
        users, digest = leaf_json.read(file.path, convert, check_counts=check_counts)
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
                        f"user {user} is in {file.path}, but in no test file: {_BOTH}"
                    )
                parts.append(waiting.pop(user))
            for client in _fill_empty_parts(user, parts, file.path):
                client_shapes = [[*values.shape[1:]] for values in client[1:3]]
                shapes = shapes or client_shapes
                if client_shapes != shapes:
                    raise DataError(
                        f"{file.path}: user {user}: an example's x and y have the "
                        f"shapes {client_shapes}, but those of earlier users {shapes}"
                    )
                yield client
    for file in tests:
        waiting.update(read_users(file))
    for user in waiting:
        path = paths[user, "test"]
        raise DataError(f"user {user} is in {path}, but in no train file: {_BOTH}")
    if not shapes:
        raise DataError(f"{files[0].folder}: no user has examples")


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
    """Returns the examples of a user: float32 inputs, int32 or float32 labels."""
    try:
        numbers = np.array(x)
        if numbers.dtype.kind not in "iuf":
            raise ValueError(f"they are {numbers.dtype}")
        with np.errstate(over="ignore"):
            inputs = numbers.astype(np.float32)
        if not np.isfinite(inputs).all():
            raise ValueError("a number is too large for float32")
        if x and not inputs.size:
            raise ValueError("they have no numbers")
    except ValueError as error:
        raise DataError(
            f"its examples are not float32 numbers of one shape: {_first_misfit(x)}"
        ) from error
    size = len(y[0]) if y and isinstance(y[0], list) else 0  # Of positions.
    for index, label in enumerate(y):
        values = label if size and isinstance(label, list) else [label]
        if not all(isinstance(value, (bool, int, float)) for value in values) or (
            size and (values is not label or len(label) != size)
        ):
            needed = f"a list of {size} numbers" if size else "a number"
            raise DataError(f"y[{index}] is {label!r:.40}, not {needed}")
    lost = inputs != numbers
    if numbers.dtype.kind == "f":  # Beyond 2^53 every float is a whole number.
        lost = (abs(numbers) < 2.0**53) & (abs(inputs - numbers) > 0.5)
    if lost.any():
        why = csv_fields.PRECISION_LOSS.format(inputs[lost][0])
        raise DataError(f"its examples have {numbers[lost][0]}: {why}")
    return inputs, _classes(y) if label_type == "class" else _values(y)


def _classes(y: list[Any]) -> npt.NDArray[np.int32]:
    """Returns labels of classes, also where they are floats, as FedProx's."""
    labels = np.array(y)
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels) & (np.rint(labels) == labels)
        if not whole.all():
            raise DataError(
                f"y has {labels[~whole][0]}: labels must be whole numbers, 0 or more; "
                "--label_type=number takes the values of a regression"
            )
    lowest = MASKED if labels.ndim > 1 else 0
    fits = (labels >= lowest) & (labels <= LARGEST_LABEL)
    if not fits.all():
        raise DataError(
            f"y has {labels[~fits][0]!s:.40}: labels must be from {lowest} to "
            f"{LARGEST_LABEL}"
        )
    return labels.astype(np.int32)


def _values(y: list[Any]) -> npt.NDArray[Any]:
    """Returns the values of a regression."""
    try:
        return as_labels(np.array(y).astype(np.float64))
    except OverflowError as error:
        raise DataError("y has a value that is too large for float32") from error


def _first_misfit(x: list[Any]) -> str:
    """Returns the first example that is not float32 numbers of the first's shape."""
    shape = np.shape(x[0]) if _is_float32(x[0]) else ()
    misfits = (
        index
        for index, example in enumerate(x)
        if not _is_float32(example) or np.shape(example) != shape
    )
    index = next(misfits, 0)
    words = f"x[{index}] is {x[index]!r:.40}"
    if _has_text(x[index]):
        words += "; of text, LEAF's Shakespeare, Sent140 and Reddit are read"
    return words


def _has_text(example: Any) -> bool:
    """Returns whether an example is a text, or has one."""
    if isinstance(example, list):
        return any(map(_has_text, example))
    return isinstance(example, str)


def _is_float32(example: Any) -> bool:
    """Returns whether an example is an array of numbers that float32 can hold."""
    try:
        numbers = np.array(example)
    except ValueError:  # Lists of different lengths.
        return False
    if numbers.dtype.kind not in "iuf":
        return False
    with np.errstate(over="ignore"):
        return bool(np.isfinite(numbers.astype(np.float32)).all())
