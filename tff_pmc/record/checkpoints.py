"""The checkpoint of a run: the state of its process after the last round.

`checkpoint.npz` has the leaves of the state, `leaf_0` and so on, the round, and how
long each table of the record was then: `tables`, their names, and `lengths`, in bytes.
Round 0 is the initial state. Nothing in a checkpoint is code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

import numpy as np

from leaf_data.errors import error_summary
from tff_pmc._lazy import tf
from tff_pmc.record import files
from tff_pmc.record.record_error import RecordError

FILE_NAME = "checkpoint.npz"
"""The file of the checkpoint in a run's folder."""


class Checkpoint(NamedTuple):
    """What a checkpoint holds."""

    state: Any
    round_num: int  # The round after which it was saved.
    lengths: Mapping[str, int]  # Of the tables' files by name, `rounds.csv`, in bytes.


def save(folder: str, checkpoint: Checkpoint) -> None:
    """Writes the checkpoint of a folder in one step.

    Raises:
        TypeError: a leaf of the state is no array of numbers.
    """
    arrays = {}
    for number, leaf in enumerate(_leaves(checkpoint.state)):
        if leaf.dtype.kind not in "biuf":
            raise TypeError(f"a state of {leaf.dtype} cannot be saved")
        arrays[f"leaf_{number}"] = leaf
    with files.atomic_write(os.path.join(folder, FILE_NAME)) as file:
        np.savez(
            file,
            round=np.int64(checkpoint.round_num),
            tables=np.array([*checkpoint.lengths], "U"),
            lengths=np.array([*checkpoint.lengths.values()], np.int64),
            **arrays,
        )


def load(folder: str, template: Any) -> Optional[Checkpoint]:
    """Reads the checkpoint of a folder; None where there is none.

    Args:
        folder: the run's folder.
        template: any state of the process, which gives the structure of all.

    Raises:
        RecordError: it cannot be read, or is of another process; one line names it.
    """
    path, like = os.path.join(folder, FILE_NAME), _leaves(template)
    if not os.path.exists(path):
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            leaves = [archive[f"leaf_{number}"] for number in range(len(like))]
            lengths = zip(archive["tables"].tolist(), archive["lengths"].tolist())
            round_num = int(archive["round"])
    except Exception as error:  # Damaged archives raise nearly anything.
        raise RecordError(f"{path} cannot be read: {error_summary(error)}") from error
    pairs = zip(leaves, like)
    if any((a.dtype, a.shape) != (b.dtype, b.shape) for a, b in pairs):
        raise RecordError(
            f"{path} is of another state: its arrays differ in type or shape"
        )
    # A leaf without dimensions is a number, as in the states of the process.
    values = [leaf if leaf.shape else leaf[()] for leaf in leaves]
    state = tf.nest.pack_sequence_as(template, values)
    return Checkpoint(state, round_num, dict(lengths))


def _leaves(state: Any) -> list[Any]:
    leaves = tf.nest.flatten(state)
    return [np.asarray(tf.convert_to_tensor(leaf).numpy()) for leaf in leaves]
