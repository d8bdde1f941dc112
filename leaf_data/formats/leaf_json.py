"""The reader of the JSON that LEAF's `preprocess.sh` writes, user by user.

A file is one object (LEAF, https://leaf.cmu.edu, `data/utils`):

    {"users": [u, ...], "num_samples": [n, ...],
     "user_data": {u: {"x": [example, ...], "y": [label, ...]}, ...}}

What LEAF's scripts really write, and how it is read:

  * `user_data` may be in another order than `users`: the order of `users` counts.
  * Users that `split_data.py` dropped stay in `user_data`, without examples: ignored.
  * `hierarchies` is not read: LEAF does not shorten it when it drops users.
  * Files may have any names: FedProx's are `train/mytrain.json`, `test/mytest.json`.
    Those of two draws of `preprocess.sh` are recognized by users who are in both.
  * A name may be in `users` twice while `user_data` can hold it only once, what came
    last: it is one user, and its last `num_samples` counts.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from leaf_data.errors import DataError, check_name, raising_data_error
from leaf_data.formats import data_files, file_parts

T = TypeVar("T")

# From the last step of `preprocess.sh` to the first.
_FOLDERS = ("train", "test", "rem_user_data", "sampled_data", "all_data")
_ENDING = ".json"
_NUMBER = re.compile(r"all_data_([0-9]{1,9})(?:_.*)?\.json", re.DOTALL)


@dataclasses.dataclass(frozen=True)
class LeafFile:
    """One file of a LEAF data set."""

    path: str
    part: str  # "train", "test", or "all" when the users are not yet split.
    number: int  # The N of `all_data_N...json`; 0 without one.
    folder: str  # The folder of the data set, which may have a subfolder of each part.


class _Converted(NamedTuple):
    """A user of a file: the number of examples, and their converted form."""

    number: int
    examples: Any


def find(name: str, folders: Sequence[str]) -> tuple[LeafFile, ...]:
    """Finds a data set's files.

    In each folder, first in its subfolder `data`, it looks for `train` and `test`
    together, then for `rem_user_data`, `sampled_data` and `all_data`; the first that
    has `.json` files counts. Only if no folder has one of these, `.json` files directly
    in a folder count. Outside of `train` and `test` a file's name may name its part
    (`file_parts`).

    Raises:
        DataError: no such files exist, the names contradict the folders, or a folder is
            the `train` next to a `test`, or the reverse.
    """
    empty = []
    bases = [
        os.path.join(f, sub).rstrip(os.sep) for f in folders for sub in ("data", "")
    ]
    for base in bases:
        paths = {sub: file_parts.subfolder(base, sub) for sub in _FOLDERS}
        files_by_folder = {
            sub: file_parts.list_files(p, _ENDING) for sub, p in paths.items()
        }
        pair = [sub for sub in ("train", "test") if files_by_folder[sub]]
        if len(pair) == 1:
            (other,) = {"train", "test"}.difference(pair)
            raise DataError(
                f"{name}: {paths[pair[0]]} has .json files but {paths[other]} has none"
            )
        if pair:
            return _order(
                [
                    _file(path, sub, base)
                    for sub in pair
                    for path in files_by_folder[sub]
                ]
            )
        for files in filter(None, files_by_folder.values()):
            return _assign_by_names(files, base)
        empty += [path for path in paths.values() if os.path.isdir(path)]
    for base in bases:
        if files := file_parts.list_files(base, _ENDING):
            _check_whole(base)
            return _assign_by_names(files, base)
    words = f"LEAF's .json files in train and test, {', '.join(_FOLDERS[2:])}, each "
    words += "also inside data" + (
        f"; without any: {', '.join(empty)}" if empty else ""
    )
    raise data_files.missing(name, folders, words)


def read(
    path: str,
    convert: Callable[[list[Any], list[Any]], T],
    *,
    check_counts: bool = True,
) -> tuple[dict[str, T], str]:
    """Reads a file, holding its text and no more than one user's lists at a time.

    Args:
        path: the file.
        convert: computes what is returned for a user from the lists `x` and `y`.
        check_counts: whether `num_samples` must be the number of examples. It is not
            for text: LEAF's `split_data.py` counts 79 more test examples of each role
            of Shakespeare than it writes, and its Reddit counts the comments of all
            parts in each.

    Returns:
        What `convert` returns for each user, by name, and the file's sha256.

    Raises:
        DataError: the file is damaged or not LEAF's, or `convert` raises it; the
            message names the file and the user.
    """

    def convert_object(pairs: list[tuple[str, Any]]) -> Any:
        """Converts each object when it ends, after the objects inside it."""
        data = dict(pairs)
        if len(data) != len(pairs):
            counts = collections.Counter(key for key, _ in pairs)
            raise DataError(
                f"{path}: has the key {counts.most_common(1)[0][0]!a:.40} twice"
            )
        x, y = data.get("x"), data.get("y")
        if not isinstance(x, list) or not isinstance(y, list):
            return data
        if len(x) != len(y):
            return DataError(f"x has {len(x)} examples, but y has {len(y)} labels")
        try:
            return _Converted(len(x), convert(x, y))
        except DataError as error:  # The outer object will tell the user's name.
            return error

    with raising_data_error(path, "truncated or not JSON", ValueError, RecursionError):
        content = data_files.read(path)
        digest = hashlib.sha256(content).hexdigest()
        text = content.decode("utf-8-sig")
        del content
        document = json.loads(text, object_pairs_hook=convert_object)
    for key in ("users", "num_samples", "user_data"):
        if not isinstance(document, dict) or key not in document:
            raise DataError(f"{path}: has no {key!r}, so it is not LEAF's")
    counts = _counts(path, document["users"], document["num_samples"])
    user_data = document["user_data"]
    if not isinstance(user_data, dict):
        raise DataError(f"{path}: user_data is not an object")
    for user, data in user_data.items():
        check_name(user, f"{path}: user")
        if not isinstance(data, _Converted):
            what = data if isinstance(data, DataError) else _describe_non_lists(data)
            raise DataError(f"{path}: user {user}: {what}")
        if data.number and user not in counts:
            raise DataError(f"{path}: user {user}: is in user_data but not in users")
    for user, count in counts.items():
        if user not in user_data:
            raise DataError(f"{path}: user {user}: is in users but not in user_data")
        if check_counts and user_data[user].number != count:
            raise DataError(
                f"{path}: user {user}: num_samples is {count}, but there are "
                f"{user_data[user].number} examples"
            )
    return {user: user_data[user].examples for user in counts}, digest


def check_apart(files: Sequence[LeafFile], digests: Sequence[str]) -> None:
    """Raises a `DataError` if a train and a test file have the same sha256."""
    train = {d: f.path for f, d in zip(files, digests) if f.part == "train"}
    for file, digest in zip(files, digests):
        if file.part == "test" and digest in train:
            raise DataError(
                f"{train[digest]} and {file.path} are the same: clients would be "
                "tested on what they trained on"
            )


def _describe_non_lists(data: Any) -> str:
    """Returns why a user's data has not the lists `x` and `y`, for messages."""
    if not isinstance(data, dict):
        return f"its user_data is {data!r:.40}, not an object with the lists x and y"
    key = next(key for key in ("x", "y") if not isinstance(data.get(key), list))
    if key not in data:
        return f"its user_data has no {key!r}"
    return f"{key} is {data[key]!r:.40}, not a list"


def _counts(path: str, users: Any, num_samples: Any) -> dict[str, int]:
    """Returns the users and their numbers of samples, in order."""
    for key, values, kind in (("users", users, str), ("num_samples", num_samples, int)):
        if not isinstance(values, list) or not all(type(v) is kind for v in values):
            raise DataError(f"{path}: {key} is not a list of {kind.__name__}")
    if len(users) != len(num_samples):
        raise DataError(
            f"{path}: {len(users)} users but {len(num_samples)} num_samples"
        )
    if "" in users:
        raise DataError(f"{path}: users has an empty name")
    for user in users:
        check_name(user, f"{path}: user")
    return dict(zip(users, num_samples))


def _file(path: str, part: str, folder: str) -> LeafFile:
    named, _ = file_parts.read_name(path)
    if part != "all" and named in ("train", "test") and named != part:
        raise DataError(
            f"{path}: is a {named} file by its name, in the folder of {part} files: "
            "move or rename it"
        )
    match = _NUMBER.fullmatch(os.path.basename(path))
    return LeafFile(path, part, int(match[1]) if match else 0, folder)


def _check_whole(folder: str) -> None:
    """Raises a `DataError` for the folder of one part with the other next to it."""
    above, name = os.path.split(os.path.abspath(folder))
    other = {"train": "test", "test": "train"}.get(name.lower())
    if other and file_parts.list_files(file_parts.subfolder(above, other), _ENDING):
        raise DataError(
            f"{folder}: has one part alone: give the folder above it, which has {other}"
            ", too"
        )


def _assign_by_names(paths: Sequence[str], folder: str) -> tuple[LeafFile, ...]:
    """Returns files whose parts only their names tell."""
    files = file_parts.assign_parts(paths)
    return _order([_file(file.path, file.part, folder) for file in files])


def _order(files: list[LeafFile]) -> tuple[LeafFile, ...]:
    """Sorts files by number, train before test."""
    return tuple(sorted(files, key=lambda f: (f.number, f.part != "train")))
