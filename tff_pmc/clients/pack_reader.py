"""The clients of a pack, read inside TensorFlow's graph."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tff_pmc.aggregation.tff_utils import without_autograph


@dataclasses.dataclass(frozen=True)
class PackedClients:
    """The clients of one pack, in memory; their `count` is a scalar int64.

    A step of training in a loop over a dataset takes 1.5 times as long as in a loop
    over tensors (docs/performance.md), so a pack is read whole first.
    """

    count: tf.Tensor
    _rows: Any

    @classmethod
    @without_autograph
    def read(cls, pack: tf.data.Dataset) -> PackedClients:
        """Reads a pack of any number of clients, none included."""
        # With an empty client at the end there is always an element to get.
        nobody = tf.nest.map_structure(
            lambda spec: tf.zeros([size or 0 for size in spec.shape], spec.dtype),
            pack.element_spec,
        )
        pack = pack.concatenate(tf.data.Dataset.from_tensors(nobody))
        most = 2**31  # More clients than any pack has.
        rows = pack.ragged_batch(most).get_single_element()
        return cls(tf.shape(rows["client"], tf.int64)[0] - 1, rows)

    def __getitem__(self, place: tf.Tensor) -> Any:
        """Returns the element of the client at a place from 0 to `count` - 1."""
        return tf.nest.map_structure(lambda column: _dense(column[place]), self._rows)


def _dense(row: Any) -> tf.Tensor:
    # An axis of unknown size within the examples is ragged here too, and uniform.
    return row.to_tensor() if isinstance(row, tf.RaggedTensor) else row
