"""The checkpoint of a run: the state of its process after the last round.

`checkpoint.npz` has the leaves of the state (`leaf_0`, `leaf_1`, ...), the round, and
the length of each table of the record at that round: `tables` (names) and `lengths`
(bytes). Round 0 is the initial state. A checkpoint contains no code.
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
    """The content of a checkpoint."""

    state: Any
    round_num: int  # The round after which it was saved.
    lengths: Mapping[str, int]  # Bytes of each table's file, as `rounds.csv`.


def save(folder: str, checkpoint: Checkpoint) -> None:
    """Writes the checkpoint of a folder in one step.

    Raises:
        TypeError: a leaf of the state is not an array of numbers.
    """
    arrays = {}
    for number, leaf in enumerate(_leaves(checkpoint.state)):
        if leaf.dtype.kind not in "biuf":
            raise TypeError(
                f"a state with a leaf of {leaf.dtype} cannot be saved: only numbers can"
            )
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
    """Reads the checkpoint of a folder, or returns None if there is none.

    Args:
        folder: the run's folder.
        template: any state of the process, which has the structure of all states.

    Raises:
        RecordError: it cannot be read, or is from another process; one line names it.
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
            f"{path} is not from this process: its arrays differ in type or shape"
        )
    # A leaf without dimensions is a number, as in the states of the process.
    values = [leaf if leaf.shape else leaf[()] for leaf in leaves]
    state = tf.nest.pack_sequence_as(template, values)
    return Checkpoint(state, round_num, dict(lengths))


def _leaves(state: Any) -> list[Any]:
    leaves = tf.nest.flatten(state)
    return [np.asarray(tf.convert_to_tensor(leaf).numpy()) for leaf in leaves]
