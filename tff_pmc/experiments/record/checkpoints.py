"""Checkpoints: a process's state after every round, and the search of the last.

    checkpoints/round_N.state   see `state_file`; the last two rounds' are kept
    checkpoints/broken_*        those that could not be used when a run was resumed

Round 0 is the initial state: a record that has rows has a state, too.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import numpy as np
from absl import logging

from tff_pmc._lazy import tf
from tff_pmc.experiments.record import state_file
from tff_pmc.experiments.record.state_file import Lengths
from tff_pmc.reports.record_error import RecordError

_KEEP = 2  # The last one, and the one before it should the last be broken.
_NAME = re.compile(r"round_(0|[1-9][0-9]{0,8})\.state")


class Last(NamedTuple):
    """The last state that can be used.

    Attributes:
        state: the state; None where there is none.
        round_num: the round that it was saved after.
        lengths: of the record's files at the end of this round.
    """

    state: Optional[Any]
    round_num: int
    lengths: Lengths


class Checkpoints:
    """A run's checkpoints."""

    def __init__(self, folder: str, template: Any) -> None:
        """Takes any state of the process, which gives the form of all."""
        self._folder = folder
        self._template = template
        tensors = [tf.convert_to_tensor(value) for value in tf.nest.flatten(template)]
        self._like: list[state_file.Array] = [tensor.numpy() for tensor in tensors]

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
        state_file.write(self._path(round_num), arrays, round_num, lengths)
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
                arrays, lengths = state_file.read(path, self._like, version)
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
