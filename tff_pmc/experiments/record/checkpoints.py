"""Checkpoints: a process's state after every round, and the search of the last.

    checkpoints/round_N.state   see `state_file`; the last two rounds' are kept
    checkpoints/broken_*        those that could not be used when a run was resumed

Round 0 is the initial state: a record that has rows has a state, too.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, Optional

import numpy as np
from absl import logging

from tff_pmc._lazy import tf
from tff_pmc.experiments.record import state_file
from tff_pmc.reports.record_error import RecordError

_KEEP = 2  # The last one, and the one before it should the last be broken.
_NAME = re.compile(r"round_(0|[1-9][0-9]{0,8})\.state")
_OLD_NAME = re.compile(r"round_[0-9]+")


class Checkpoints:
    """A run's checkpoints."""

    def __init__(self, folder: str, template: Any) -> None:
        """Changes nothing yet.

        Args:
            folder: the folder to keep them in; it is made when it is missing.
            template: a state of the process, such as the initial one, which gives
                the structure, dtypes and shapes of all states.
        """
        self._folder = folder
        self._template = template
        tensors = [tf.convert_to_tensor(value) for value in tf.nest.flatten(template)]
        self._like: list[state_file.Array] = [tensor.numpy() for tensor in tensors]

    def save(self, state: Any, round_num: int) -> None:
        """Saves the state after a round, 0 for the initial one.

        Raises:
            ValueError: it has another structure, or other shapes, than the template.
            OSError: it cannot be written.
        """
        values = [np.asarray(value) for value in tf.nest.flatten(state)]
        if [v.shape for v in values] != [array.shape for array in self._like]:
            raise ValueError("the state has another structure than the initial one")
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder)
        arrays = [
            value.astype(array.dtype, copy=False)
            for value, array in zip(values, self._like)
        ]
        state_file.write(self._path(round_num), arrays, round_num)
        for version in self._versions()[_KEEP:]:
            os.unlink(self._path(version))

    def load_last(self, at_most: int, recorded: int) -> tuple[Optional[Any], int]:
        """Returns the last state that can be read, and the round it was saved after.

        Args:
            at_most: the last round whose rows are all in the record; states of
                later rounds are set aside, and so are broken ones.
            recorded: the last round of which the record has any row, 0 without.

        Returns:
            (state, round), or (None, 0) when there is none and nothing is recorded.

        Raises:
            RecordError: rounds are recorded and no state can be used: going on would
                start anew and throw the record away. Nothing is changed.
        """
        unusable: dict[int, str] = {}
        for version in self._versions():
            if version > at_most:
                unusable[version] = "the record lacks rows of its round"
                continue
            try:
                arrays = state_file.read(self._path(version), self._like, version)
            except (RecordError, OSError) as error:
                unusable[version] = str(error)
                continue
            self._set_aside(unusable)
            return tf.nest.pack_sequence_as(self._template, arrays), version
        if recorded:
            raise RecordError(f"--resume: {self._nothing_usable(recorded)}")
        self._set_aside(unusable)
        return None, 0

    def _nothing_usable(self, recorded: int) -> str:
        if not self._versions() and any(map(_OLD_NAME.fullmatch, self._names())):
            return (
                f"the checkpoints in {self._folder} are of an earlier version, which "
                "kept them as TensorFlow's SavedModels; these can hold code and are "
                "not loaded: run into another folder"
            )
        return (
            f"rounds up to {recorded} are recorded, and no checkpoint in "
            f"{self._folder} can be used; nothing was changed: run into another folder"
        )

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except FileNotFoundError:
            return []

    def _versions(self) -> list[int]:
        """The rounds of the states that are there, the last one first."""
        found = map(_NAME.fullmatch, self._names())
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
