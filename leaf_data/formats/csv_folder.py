"""The CSVs of a folder: their parts and clients, and the files that are not read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Optional

from leaf_data.errors import DataError, shorten
from leaf_data.formats import data_files, file_parts
from leaf_data.formats.file_parts import TEST, TRAIN, VALIDATION, NamedFile

_ENDING = ".csv"
_WHOLE_AS_FLOAT = re.compile(r"([+-]?\d+)\.0*", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE
)


def find(folder: str) -> list[NamedFile]:
    """Returns the CSVs of a folder, training files first; `rest` names a file's client.

    A folder without CSVs may have one of training and one of test files; validation
    files are the test files if the folder has no test files.

    Raises:
        DataError: `folder` is not a folder or has no CSV, a CSV is packed, or the names
            do not tell which are the test files.
    """
    folder = data_files.check_folder(folder)
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    packed = [name for name in names if f"{_ENDING}." in name.lower()]
    if packed:
        raise DataError(f"{os.path.join(folder, packed[0])} is packed: unpack it")
    if paths := file_parts.list_files(folder, _ENDING):
        return file_parts.assign_parts(paths)
    train, test, validation = (
        file_parts.list_files(file_parts.subfolder(folder, part), _ENDING)
        for part in (TRAIN, TEST, VALIDATION)
    )
    if train and (test or validation):
        return _assign_subfolders({TRAIN: train, TEST: test or validation})
    unread = shorten(", ".join(list_unread(folder, ())), 300) if names else ""
    hint = f": these are not read: {unread}" if unread else ""
    raise DataError(f"{folder}: has no CSV{hint}")


def _assign_subfolders(parts: Mapping[str, Sequence[str]]) -> list[NamedFile]:
    """Returns the files of the subfolders of training and of test files."""
    files = []
    for part, paths in parts.items():
        for path in paths:
            named, rest = file_parts.read_name(path)
            if named in (TRAIN, TEST) and named != part:
                raise DataError(
                    f"{path}: is a {named} file by its name, in the folder of {part} "
                    "files: move or rename it"
                )
            files.append(NamedFile(path, part, rest))
    if len(files) == 2 and files[0].rest != files[1].rest:  # However they are called.
        return [file._replace(rest="") for file in files]
    return files


def list_unread(folder: str, files: Sequence[NamedFile]) -> list[str]:
    """Returns the other visible files and folders, which are not read."""
    read = [os.path.normpath(file.path) for file in files]
    parents = dict.fromkeys([os.path.normpath(folder), *map(os.path.dirname, read)])
    paths = [
        os.path.join(parent, name)
        for parent in parents
        for name in sorted(os.listdir(parent))
        if not name.startswith(".")
    ]
    expected = {*read, *parents}
    return [
        os.path.relpath(path, folder) + (os.sep if os.path.isdir(path) else "")
        for path in paths
        if path not in expected
    ]


def group_by_client(files: Sequence[NamedFile], join: bool) -> list[NamedFile]:
    """Orders files by their clients, each client's training files before its others.

    Raises:
        DataError: a client has two files of a part and `join` is False, a file names no
            client, or no client has a training and a test file.
    """
    paths: dict[str, dict[str, str]] = {}  # By client and part.
    for file in files:
        by_part = paths.setdefault(client_key(file.rest), {})
        earlier = by_part.setdefault(file.part, file.path)
        if earlier != file.path and not join:
            raise DataError(
                f"{earlier} and {file.path} are both of the client {file.rest!r:.80}: "
                "--join puts their rows together"
            )
    check_spellings(
        {key: [*by_part.values()][0] for key, by_part in paths.items()}, "the name"
    )
    if any(file.part == TEST for file in files):
        pair = f"{files[0].path} and {os.path.basename(files[-1].path)}"
        if not any(len(by_part) == 2 for by_part in paths.values()):
            raise DataError(
                f"{pair} are a training and a test file of different clients by their "
                "names: name the files of a client alike (a_train.csv, a_test.csv), or "
                "name the column of the clients with --client"
            )
        if "" in paths and len(paths) > 1:
            raise DataError(
                f"{[*paths[''].values()][0]} names no client, as other files do: "
                "rename it, or name the column of the clients with --client"
            )
    places = {key: place for place, key in enumerate(paths)}
    return sorted(files, key=lambda file: places[client_key(file.rest)])


def client_key(name: str) -> str:
    """Returns a client's name; a whole number is without the `.0` that pandas adds.

    pandas writes the ids 1 and 2 as 1.0 and 2.0 if another row has no id.
    """
    whole = _WHOLE_AS_FLOAT.fullmatch(name)
    return whole[1] if whole else name


def check_spellings(places: Mapping[str, str], column: str) -> None:
    """Raises a `DataError` if two names are one whole number, such as 7 and 007.

    Args:
        places: by client, the first place of its name, in the words of the error.
        column: the column or whatever has the names, in the words of the error.
    """
    names: dict[Decimal, str] = {}
    for name, where in places.items():
        number = _read_number(name)
        if number is not None and number == number.to_integral_value():
            other = names.setdefault(number, name)
            if other != name:
                raise DataError(
                    f"{where}: {column} is {name!r}, and {other!r} in "
                    f"{places[other]}, which is the same number: write both alike if "
                    "they are one client, or add a letter"
                )


def has_decimals(names: Iterable[str]) -> bool:
    """Returns whether a name is a number that is not whole, such as a version 1.1."""
    numbers = filter(None, map(_read_number, names))
    return any(number != number.to_integral_value() for number in numbers)


def _read_number(name: str) -> Optional[Decimal]:
    return Decimal(name) if _NUMBER.fullmatch(name) else None
