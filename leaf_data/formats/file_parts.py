"""Training and test files, recognized by their names.

`train.csv` and `test.csv`, `alice_train.csv` and `alice_test.csv`, `mytrain.json` and
`mytest.json`: a folder with both kinds has a training and a test set. A folder with one
kind has neither: there `test.csv` is a table as any other, and `dev_01.csv` a device.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leaf_data.errors import DataError, shorten

TRAIN, TEST, VALIDATION, ALL = "train", "test", "validation", "all"
_WORDS = {
    TRAIN: ("train", "training", "trainings", "trn"),
    TEST: ("test", "testing", "tests", "tst", "eval", "evaluation", "holdout"),
    VALIDATION: ("validation", "valid", "val", "dev"),
}
_ENDINGS = ("", "set", "data", "file", "split", "df")
_PATTERNS = {
    part: [re.compile(word + end, re.IGNORECASE) for word in words for end in _ENDINGS]
    for part, words in _WORDS.items()
}
# Part of every name of a training or a test file.
_ANY = re.compile("train|trn|test|tst|eval|holdout", re.IGNORECASE)
_SEPARATORS = " _-.()"


class NamedFile(NamedTuple):
    """A file of a folder, with the part and the rest of its name."""

    path: str
    part: str  # "train", "test", or "all" where the examples are not yet split.
    rest: str  # The name without its ending and without the word of the part.


class _Reading(NamedTuple):
    part: str
    rest: str
    is_word: bool  # Whether the part stands alone: in `my_train`, not in `mytrain`.


def assign_parts(paths: Sequence[str]) -> list[NamedFile]:
    """Returns the files of a folder with their parts, training files first.

    A validation set is the test set if there is no other.

    Raises:
        DataError: in addition to a training and a test set there is another file or a
            validation set; or one of several files is named as a training or a test
            set, and none as the other.
    """
    stems = [os.path.splitext(os.path.basename(path))[0] for path in paths]
    if not any(map(_ANY.search, stems)):  # Quick for 100,000 clients.
        return [NamedFile(path, ALL, stem) for path, stem in zip(paths, stems)]
    readings = [list(_readings(stem)) for stem in stems]
    # A word within another counts if both parts have it: mytrain and mytest.
    rests: dict[bool, set[str]] = {True: set(), False: set()}
    for reading in (reading for some in readings for reading in some):
        rests[reading.part == TRAIN].add(reading.rest.lower())
    shared_rests = rests[True] & rests[False]
    files = [
        NamedFile(path, *_choose(stem, some, shared_rests))
        for path, stem, some in zip(paths, stems, readings)
    ]
    by_part = {file.part: file for file in reversed(files)}
    test = by_part.get(TEST, by_part.get(VALIDATION))
    if TRAIN not in by_part or test is None:
        for file in files if len(files) > 1 else ():
            if file.part in (TRAIN, TEST) and not file.rest:
                other = TEST if file.part == TRAIN else TRAIN
                raise DataError(
                    f"{file.path} is a {file.part} set by its name, but no file next "
                    f"to it is a {other} set: name that one {other}, move this one to "
                    "another folder, or rename it if it is as the others"
                )
        return [NamedFile(path, ALL, stem) for path, stem in zip(paths, stems)]
    pair = f"{by_part[TRAIN].path} and {os.path.basename(test.path)}"
    if ALL in by_part:
        raise DataError(
            f"{pair} are a training and a test set, but "
            f"{os.path.basename(by_part[ALL].path)} is neither by its name: move it to "
            "another folder, or rename the two if they are not"
        )
    if TEST in by_part and VALIDATION in by_part:
        raise DataError(
            f"{pair} are a training and a test set; "
            f"{os.path.basename(by_part[VALIDATION].path)} is a validation set, which "
            "is neither: move it to another folder, or add its rows to one of the two"
        )
    files = [file._replace(part=TEST) if file.part != TRAIN else file for file in files]
    return sorted(files, key=lambda file: file.part != TRAIN)


def read_name(path: str) -> tuple[str, str]:
    """Returns the part whose word is in a file's name, and the rest of the name.

    Without such a word, or with several, it returns "" and the whole name.
    """
    stem = os.path.splitext(os.path.basename(path))[0]
    part, rest = _choose(stem, list(_readings(stem)), set())
    return ("", stem) if part == ALL else (part, rest)


def subfolder(folder: str, part: str) -> str:
    """Returns the path of a part's subfolder: `train`, or `Train`, or `training`."""
    exact = os.path.join(folder, part)
    if not os.path.isdir(exact) and os.path.isdir(folder):
        for name in sorted(os.listdir(folder)):
            is_folder = os.path.isdir(os.path.join(folder, name))
            if is_folder and name.lower() in _WORDS.get(part, (part,)):
                return os.path.join(folder, name)
    return exact


def list_files(folder: str, ending: str) -> list[str]:
    """Returns the paths of a folder's files with an ending, sorted, no hidden ones."""
    if not os.path.isdir(folder):
        return []
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    names = [name for name in names if name.lower().endswith(ending)]
    for name in names:
        if not name.isprintable():
            raise DataError(
                f"{shorten(folder)}: {ascii(name):.80} has a character that cannot be "
                "printed: rename the file"
            )
    return [os.path.join(folder, name) for name in names]


def _readings(stem: str) -> Iterator[_Reading]:
    """Yields each part whose word is in a name, with the rest of the name."""
    for part, patterns in _PATTERNS.items():
        for pattern in patterns:
            for match in pattern.finditer(stem):
                before, after = stem[: match.start()], stem[match.end() :]
                is_word = _is_border(before, match[0]) and _is_border(match[0], after)
                ends = before.strip(_SEPARATORS), after.strip(_SEPARATORS)
                yield _Reading(part, "_".join(filter(None, ends)), is_word)


def _is_border(before: str, after: str) -> bool:
    """Returns whether a word ends between two texts: at a non-letter, or `myTrain`."""
    if not before[-1:].isalpha() or not after[:1].isalpha():
        return True
    return before[-1].islower() and after[0].isupper()


def _choose(
    stem: str, readings: Sequence[_Reading], shared_rests: set[str]
) -> tuple[str, str]:
    """Returns the part and the rest of a name; `ALL` without or with several parts."""
    certain = [r for r in readings if r.is_word or r.rest.lower() in shared_rests]
    if len({reading.part for reading in certain}) != 1:
        return ALL, stem
    # What both parts have, then what is a word, then the longest word.
    best = min(
        certain,
        key=lambda r: (r.rest.lower() not in shared_rests, not r.is_word, len(r.rest)),
    )
    return best.part, best.rest
