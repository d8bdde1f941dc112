"""Reading a pack's clients in TensorFlow, all before the first is trained."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from tff_pmc.aggregation.as_written import as_written

# More clients than any pack has.
_ALL = 2**31


@dataclasses.dataclass(frozen=True)
class PackedClients:
    """The clients of one pack, in memory.

    Training in a loop over a dataset takes 1.5 times as long for every step as in a
    loop over tensors (docs/performance.md), so a pack is read whole first.

    Attributes:
        count: the number of clients, a scalar int64.
    """

    count: tf.Tensor
    _rows: Any

    @classmethod
    @as_written
    def read(cls, pack: tf.data.Dataset) -> PackedClients:
        """Reads a pack of any number of clients, none included."""
        # With nobody at the end there is always an element to get.
        nobody = tf.nest.map_structure(
            lambda spec: tf.zeros([size or 0 for size in spec.shape], spec.dtype),
            pack.element_spec,
        )
        pack = pack.concatenate(tf.data.Dataset.from_tensors(nobody))
        rows = pack.ragged_batch(_ALL).get_single_element()
        return cls(tf.shape(rows["client"], tf.int64)[0] - 1, rows)

    def __getitem__(self, place: tf.Tensor) -> Any:
        """The element of the client at a place from 0 to `count` - 1."""
        return tf.nest.map_structure(lambda column: _dense(column[place]), self._rows)


def _dense(row: Any) -> tf.Tensor:
    # An axis of unknown size within the examples is ragged here too, and uniform.
    return row.to_tensor() if isinstance(row, tf.RaggedTensor) else row
