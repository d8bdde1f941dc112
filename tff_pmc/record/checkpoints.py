"""The checkpoints of a run: the state of its process after each of the last rounds.

    checkpoints/round_N.npz     the last two rounds' are kept
    checkpoints/broken_*        those that could not be used when the run was resumed

A checkpoint has the leaves of the state, `leaf_0` and so on, and how long each table
of the record was at its round: `tables`, their names, and `lengths`, in bytes. Round 0
is the initial state, so that a record which has rows has a state, too. Nothing in a
checkpoint is code, and its arrays must have the types and shapes of the run's state.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from absl import logging

from leaf_data.errors import one_line
from tff_pmc._lazy import tf
from tff_pmc.record import files
from tff_pmc.record.record_error import RecordError

FOLDER = "checkpoints"
"""The folder of the checkpoints in a run's folder."""

_KEEP = 2  # The last one, and the one before it should the last be broken.
_NAME = re.compile(r"round_(0|[1-9][0-9]{0,8})\.npz")

Array = npt.NDArray[Any]

Lengths = Mapping[str, int]
"""The length of each table's file by its name, `rounds.csv`, bytes."""


class Last(NamedTuple):
    """The last checkpoint that can be used."""

    state: Any  # None where there is none.
    round_num: int  # The round after which it was saved.
    lengths: Lengths  # Of the tables at the end of this round.


class Checkpoints:
    """The checkpoints in the folder of a run."""

    def __init__(self, run_folder: str, template: Any) -> None:
        """Takes any state of the process, which gives the form of all."""
        self._folder = os.path.join(run_folder, FOLDER)
        self._template = template
        tensors = [tf.convert_to_tensor(value) for value in tf.nest.flatten(template)]
        self._like: list[Array] = [np.asarray(one.numpy()) for one in tensors]

    def save(self, state: Any, round_num: int, lengths: Lengths) -> None:
        """Saves the state after a round, 0 for the initial one.

        Raises:
            ValueError: the state has other leaves than the template.
            TypeError: a leaf is no array of numbers.
        """
        values = [np.asarray(value) for value in tf.nest.flatten(state)]
        if [v.shape for v in values] != [leaf.shape for leaf in self._like]:
            raise ValueError("the state has another structure than the initial one")
        arrays: dict[str, Array] = {}
        for number, (value, like) in enumerate(zip(values, self._like)):
            if like.dtype.kind not in "biuf":
                raise TypeError(f"a state of {like.dtype} cannot be kept")
            arrays[f"leaf_{number}"] = value.astype(like.dtype, copy=False)
        arrays["tables"] = np.array([*lengths], "U")
        arrays["lengths"] = np.array([*lengths.values()], np.int64)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder)
        with files.replacing(self._path(round_num)) as file:
            np.savez(file, **arrays)
        for version in self._versions()[_KEEP:]:
            os.unlink(self._path(version))

    def load_last(self, lengths: Lengths) -> Last:
        """Returns the last checkpoint that can be used; those after it are set aside.

        One cannot be used if it is broken, or if a table is shorter than at its round.

        Args:
            lengths: how long the tables are.

        Raises:
            RecordError: something is recorded and no checkpoint can be used. To resume
                would throw the record away, so nothing is changed.
        """
        unusable: dict[int, str] = {}
        for version in self._versions():
            try:
                found = self._load(version)
                for name, length in found.lengths.items():
                    if lengths.get(name, 0) < length:
                        raise RecordError(f"{name} lacks rows of its round")
            except (RecordError, OSError) as error:
                unusable[version] = str(error)
                continue
            self._set_aside(unusable)
            return found
        if any(lengths.values()):
            why = next(iter(unusable.values()), "there is none")
            raise RecordError(
                f"--resume: rounds are recorded, and no checkpoint in {self._folder} "
                f"can be used ({why}); nothing was changed: run into another folder"
            )
        self._set_aside(unusable)
        return Last(None, 0, {})

    def _load(self, version: int) -> Last:
        path = self._path(version)
        try:
            with np.load(path, allow_pickle=False) as archive:
                leaves = [archive[f"leaf_{n}"] for n in range(len(self._like))]
                lengths = dict(
                    zip(archive["tables"].tolist(), archive["lengths"].tolist())
                )
        except Exception as error:  # Damaged archives raise nearly anything.
            raise RecordError(f"{path} cannot be read: {one_line(error)}") from error
        pairs = zip(leaves, self._like)
        if any((a.dtype, a.shape) != (b.dtype, b.shape) for a, b in pairs):
            raise RecordError(f"{path} is of another state: its arrays are others")
        # A leaf without dimensions is a number, as in the states of the process.
        values = [leaf if leaf.shape else leaf[()] for leaf in leaves]
        state = tf.nest.pack_sequence_as(self._template, values)
        return Last(state, version, lengths)

    def _versions(self) -> list[int]:
        """Returns the rounds of the checkpoints that are there, the last one first."""
        names = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        found = map(_NAME.fullmatch, names)
        return sorted((int(match[1]) for match in found if match), reverse=True)

    def _path(self, version: int) -> str:
        return os.path.join(self._folder, f"round_{version}.npz")

    def _set_aside(self, unusable: Mapping[int, str]) -> None:
        """Renames checkpoints, so that they do not count as saved any more."""
        for version, reason in unusable.items():
            name = os.path.basename(self._path(version))
            logging.warning(
                "The checkpoint %s is broken: %s. It is not used.", name, reason
            )
            aside = os.path.join(self._folder, f"broken_{name}")
            os.replace(self._path(version), aside)
