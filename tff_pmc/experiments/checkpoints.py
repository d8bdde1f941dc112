"""Saves a process's state after every round, and finds the last that is whole."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff
from absl import logging

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
        asyncio.run(self._manager.save(state, round_num))

    def load_last(self, template: Any) -> tuple[Optional[Any], int]:
        """The last state that can be read, and the round it was saved after.

        Broken ones (a run killed while it saved) are removed, with a warning:
        they would count as saved otherwise.

        Args:
            template: a state of the same process, for the structure.

        Returns:
            (state, round), or (None, 0) when there is none.
        """
        versions = asyncio.run(self._manager.get_versions()) or []
        for version in sorted(versions, reverse=True):
            try:
                state = asyncio.run(self._manager.load(version, template))
                return _like(template, state), version
            except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
                path = os.path.join(self._folder, f"{_PREFIX}{version}")
                logging.warning(
                    "The checkpoint %s is broken (%s) and is removed; the one before "
                    "it is used.",
                    path,
                    " ".join(str(error).split())[:200],
                )
                shutil.rmtree(path, ignore_errors=True)
        return None, 0


def _like(template: Any, state: Any) -> Any:
    """The loaded values in the template's containers, with its dtypes and shapes.

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
