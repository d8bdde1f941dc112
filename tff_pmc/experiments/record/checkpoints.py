"""Checkpoints: a process's state after every round, and the search of the last."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import shutil
from typing import Any, Optional

from absl import logging

from tff_pmc._lazy import tf, tff
from tff_pmc.reports.record_error import RecordError

_PREFIX = "round_"
_KEEP = 2  # The last one, and the one before it should the last be broken.


class Checkpoints:
    """A run's checkpoints, through `tff.program.FileProgramStateManager`."""

    def __init__(self, folder: str) -> None:
        """Takes the folder to keep them in; it is made when it is missing."""
        self._folder = folder
        self._manager = tff.program.FileProgramStateManager(
            folder, prefix=_PREFIX, keep_total=_KEEP, keep_first=False
        )

    def save(self, state: Any, round_num: int) -> None:
        """Saves the state after a round."""
        _run(self._manager.save(state, round_num))

    def load_last(self, template: Any, at_most: int) -> tuple[Optional[Any], int]:
        """Returns the last state that can be read, and the round it was saved after.

        Args:
            template: a state of the same process, for the structure.
            at_most: the last round whose rows are all in the record; states of
                later rounds are set aside, and so are broken ones.

        Returns:
            (state, round), or (None, 0) when there is none, or only that of the
            first round and it is broken.

        Raises:
            RecordError: there are states of later rounds and none can be used:
                going on would start anew and throw the record away.
        """
        versions = sorted(_run(self._manager.get_versions()) or [], reverse=True)
        for version in versions:
            if version > at_most:
                self._set_aside(version, "the record lacks rows of its round")
                continue
            try:
                return _like(template, _run(self._manager.load(version, template))), (
                    version
                )
            except Exception as error:  # TensorFlow raises whatever it stumbles on.
                self._set_aside(version, " ".join(str(error).split())[:200])
        if versions and versions[0] > 1:
            raise RecordError(
                f"--resume: no checkpoint in {self._folder} can be used; they are kept "
                "there as broken_*, and the record as it is: run into another folder"
            )
        return None, 0

    def _set_aside(self, version: int, reason: str) -> None:
        """Renames a checkpoint, so that it does not count as saved any more."""
        name = f"{_PREFIX}{version}"
        logging.warning(
            "The checkpoint %s is broken: %s. It is not used.", name, reason
        )
        aside = os.path.join(self._folder, f"broken_{name}")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(os.path.join(self._folder, name), aside)


def _run(coroutine: Any) -> Any:
    """Runs a manager's coroutine, inside a notebook's running loop too."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def _like(template: Any, state: Any) -> Any:
    """Puts loaded values into the template's containers, with its dtypes and shapes.

    Raises:
        ValueError: a value has another shape, or one is missing.
    """
    expected, found = tf.nest.flatten(template), tf.nest.flatten(state)
    if len(expected) != len(found):
        raise ValueError(f"{len(found)} values where there should be {len(expected)}")
    values = []
    for old, new in zip(expected, found):
        if tf.convert_to_tensor(old).shape != tf.convert_to_tensor(new).shape:
            raise ValueError("a value has another shape")
        dtype = tf.convert_to_tensor(old).dtype
        values.append(tf.cast(new, dtype).numpy())
    return tf.nest.pack_sequence_as(template, values)
