"""Checkpoints: a process's state after every round, and the search of the last.

    checkpoints/round_N.state   the last two rounds' are kept
    checkpoints/broken_*        those that could not be used when a run was resumed

Round 0 is the initial state: a record that has rows has a state, too. A state is one
file: a header of dtypes and shapes, then the arrays' bytes.

    tff_pmc state 2                      the form, and its version
    {"round": 7, "arrays": [...]}        a dtype and a shape for each array
    ...                                  the arrays, one after another, in C order
    {"rounds.csv": [812, "9f..."], ...}  what the record's files were at this round:
                                         their lengths, and the SHA-256 of so much
    32 bytes                             SHA-256 of everything before

Nothing in it is code, and nothing in it is believed: whoever reads knows from a state
of the same process what the header must be, to the byte, and so how large the arrays
are. The rest is small.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt
from absl import logging

from leaf_data.formats.npy_folder import memory_of
from tff_pmc._lazy import tf
from tff_pmc.record import files
from tff_pmc.record.plain_files import open_plain
from tff_pmc.record.record_error import RecordError

_KEEP = 2  # The last one, and the one before it should the last be broken.
_NAME = re.compile(r"round_(0|[1-9][0-9]{0,8})\.state")
_FORM, _VERSION = b"tff_pmc state ", 2
_KINDS = "biuf"
_MOST_LENGTHS = 1 << 14  # Bytes; a record has eight files.

Array = npt.NDArray[np.generic]


class Length(NamedTuple):
    """How long a file of the record is, and the SHA-256 of so many bytes of it."""

    size: int
    sha256: str


Lengths = Mapping[str, Length]
"""The length of each CSV of a record by its name, `rounds.csv`."""


class Last(NamedTuple):
    """The last state that can be used."""

    state: Optional[Any]  # None where there is none.
    round_num: int  # That it was saved after.
    lengths: Lengths  # Of the record's files at the end of this round.


class Checkpoints:
    """A run's checkpoints."""

    def __init__(self, folder: str, template: Any) -> None:
        """Takes any state of the process, which gives the form of all."""
        self._folder = folder
        self._template = template
        tensors = [tf.convert_to_tensor(value) for value in tf.nest.flatten(template)]
        self._like: list[Array] = [tensor.numpy() for tensor in tensors]

    def save(self, state: Any, round_num: int, lengths: Lengths) -> None:
        """Saves the state after a round, 0 for the initial one."""
        values = [np.asarray(value) for value in tf.nest.flatten(state)]
        if [v.shape for v in values] != [array.shape for array in self._like]:
            raise ValueError("the state has another structure than the initial one")
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder)
        arrays = [
            value.astype(array.dtype, copy=False)
            for value, array in zip(values, self._like)
        ]
        write_state(self._path(round_num), arrays, round_num, lengths)
        for version in self._versions()[_KEEP:]:
            os.unlink(self._path(version))

    def load_last(self, check: Callable[[Lengths], object], recorded: bool) -> Last:
        """Returns the last state that can be used; those after it are set aside.

        A state cannot be used if `check` raises a `RecordError` for its lengths. Where
        something is recorded and no state can be used, going on would throw the record
        away: that is a `RecordError`, too, and nothing is changed.
        """
        unusable: dict[int, str] = {}
        for version in self._versions():
            try:
                path = self._path(version)
                arrays, lengths = read_state(path, self._like, version)
                check(lengths)
            except (RecordError, OSError) as error:
                unusable[version] = str(error)
                continue
            self._set_aside(unusable)
            state = tf.nest.pack_sequence_as(self._template, arrays)
            return Last(state, version, lengths)
        if recorded:
            why = next(iter(unusable.values()), "there is none")
            raise RecordError(
                f"--resume: rounds are recorded, and no checkpoint in {self._folder} "
                f"can be used ({why}); nothing was changed: run into another folder"
            )
        self._set_aside(unusable)
        return Last(None, 0, {})

    def _versions(self) -> list[int]:
        """The rounds of the states that are there, the last one first."""
        names = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        found = map(_NAME.fullmatch, names)
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def _path(self, version: int) -> str:
        return os.path.join(self._folder, f"round_{version}.state")

    def _set_aside(self, unusable: dict[int, str]) -> None:
        """Renames checkpoints, so that they do not count as saved any more."""
        for version, reason in unusable.items():
            name = os.path.basename(self._path(version))
            logging.warning(
                "The checkpoint %s is broken: %s. It is not used.", name, reason
            )
            aside = os.path.join(self._folder, f"broken_{name}")
            os.replace(self._path(version), aside)


def write_state(
    path: str, arrays: Sequence[Array], round_num: int, lengths: Lengths
) -> None:
    """Writes a state; the file is in its place only when it is whole."""
    digest = hashlib.sha256()
    last = json.dumps(lengths, sort_keys=True).encode()
    with files.replacing(path) as file:
        for part in (_header(arrays, round_num), *map(memory_of, arrays), last):
            file.write(part)
            digest.update(part)
        file.write(digest.digest())


def read_state(
    path: str, like: Sequence[Array], round_num: int
) -> tuple[list[Array], Lengths]:
    """Reads the state of a round whose arrays are like these."""
    header = _header(like, round_num)
    digest = hashlib.sha256()
    with open_plain(path) as file:
        found = file.read(len(header))
        if found != header:
            raise RecordError(f"{path} {_why_not(found, header)}")
        digest.update(found)
        arrays = [np.empty(array.shape, array.dtype) for array in like]
        for array in arrays:
            part = memory_of(array)
            file.readinto(part)  # type: ignore[attr-defined]
            digest.update(part)
        rest = file.read(_MOST_LENGTHS)
        last, checksum = rest[: -digest.digest_size], rest[-digest.digest_size :]
        digest.update(last)
        if file.read(1) or checksum != digest.digest():
            raise RecordError(
                f"{path} does not end in its checksum: it was cut off or changed"
            )
    lengths = _lengths(path, last)
    return [array if array.shape else array[()] for array in arrays], lengths


def _lengths(path: str, text: bytes) -> Lengths:
    try:
        found = json.loads(text)
        if all(_is_length(name, value) for name, value in found.items()):
            return {name: Length(*value) for name, value in found.items()}
    except (ValueError, AttributeError, RecursionError):
        pass
    raise RecordError(f"{path} does not say how long the record's files are")


def _is_length(name: str, value: Any) -> bool:
    # `True` is an integer to Python and to nobody else.
    return (
        re.fullmatch(r"[a-z0-9_]+\.csv", name) is not None
        and isinstance(value, list)
        and [type(part) for part in value] == [int, str]
        and value[0] >= 0
    )


def _header(arrays: Sequence[Array], round_num: int) -> bytes:
    listed = []
    for array in arrays:
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"a state of {array.dtype} cannot be kept")
        listed.append({"dtype": array.dtype.str, "shape": list(array.shape)})
    text = json.dumps({"round": round_num, "arrays": listed})
    return b"%s%d\n%s\n" % (_FORM, _VERSION, text.encode())


def _why_not(found: bytes, header: bytes) -> str:
    first = header.split(b"\n", 1)[0]
    if not found:
        return "is empty"
    if not found.startswith(_FORM):
        return "is no state of tff_pmc"
    if found.split(b"\n", 1)[0] != first:
        return f"has another form than {first.decode()!r}"
    return "is of another state: its arrays or its round are others"
