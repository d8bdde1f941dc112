"""The clients of a pack, read inside TensorFlow's graph."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tff_pmc.aggregation.tff_utils import without_autograph


@dataclasses.dataclass(frozen=True)
class PackedClients:
    """The clients of one pack, in memory; `count` is their number, a scalar int64.

    A training step takes 1.5 times as long in a loop over a dataset as in a loop over
    tensors (docs/performance.md), so the whole pack is read first.
    """

    count: tf.Tensor
    _rows: Any

    @classmethod
    @without_autograph
    def read(cls, pack: tf.data.Dataset) -> PackedClients:
        """Reads a pack, which may be empty."""
        # The empty client at the end guarantees an element to read.
        empty_client = tf.nest.map_structure(
            lambda spec: tf.zeros([size or 0 for size in spec.shape], spec.dtype),
            pack.element_spec,
        )
        pack = pack.concatenate(tf.data.Dataset.from_tensors(empty_client))
        max_clients = 2**31  # More clients than any pack has.
        rows = pack.ragged_batch(max_clients).get_single_element()
        return cls(tf.shape(rows["client"], tf.int64)[0] - 1, rows)

    def __getitem__(self, index: tf.Tensor) -> Any:
        """Returns the element of a client, at an index from 0 to `count` - 1."""
        return tf.nest.map_structure(lambda column: _dense(column[index]), self._rows)


def _dense(row: Any) -> tf.Tensor:
    # An axis of unknown size within the examples is ragged here, too, but uniform.
    return row.to_tensor() if isinstance(row, tf.RaggedTensor) else row
