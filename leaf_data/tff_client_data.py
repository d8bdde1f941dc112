"""TFF's `ClientData` as a view of `Examples` (imports TensorFlow and TFF)."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from leaf_data.errors import DataError
from leaf_data.examples import Examples

# A graph is one protocol buffer, which ends at 2 GiB; the rest is for the graph.
_GRAPH_BYTES = 2**31 - 2**24


class ExamplesClientData(tff.simulation.datasets.ClientData):
    """Clients whose elements are `OrderedDict(x=[...], y=[...])` of `Examples`.

    Everything TFF's class offers works, `preprocess` and `dataset_computation`
    included. Looking up one client eagerly costs one client. A *traced* lookup
    (`dataset_computation`, or in a `tf.function`) cannot
    see which client will be requested, so all the examples go into its graph: 47 MB
    for MNIST, where the first call takes 5 s and the others 0.4 s; more than the
    2 GB that a graph can hold raises a `DataError`.

    Examples:
        data = leaf_data.load("digits5k").train
        data.create_tf_dataset_for_client(data.client_ids[0])
        data.preprocess(lambda dataset: dataset.shuffle(40).batch(10))
    """

    def __init__(self, examples: Examples) -> None:
        """Wraps the examples; nothing is copied."""
        super().__init__()
        self._examples = examples

    @property
    def client_ids(self) -> list[str]:
        """The clients' ids, in the order of the examples."""
        return list(self._examples.client_ids)

    @property
    def element_type_structure(self) -> collections.OrderedDict:
        """The `tf.TensorSpec` of x and y of one example."""
        return collections.OrderedDict(
            x=tf.TensorSpec(self._examples.element_shape, self._examples.x.dtype),
            y=tf.TensorSpec(self._examples.y.shape[1:], self._examples.y.dtype),
        )

    @property
    def serializable_dataset_fn(self) -> Callable[..., tf.data.Dataset]:
        """A function from a client's id to its dataset, which TensorFlow can trace.

        The id is text or a string tensor. When traced with more than 2 GB of examples
        the function raises `DataError`; run on an unknown client,
        `tf.errors.InvalidArgumentError`.
        """
        return self._dataset

    def create_tf_dataset_for_client(self, client_id: str) -> tf.data.Dataset:
        """Returns one client's examples, in order.

        Raises:
            DataError: (a ValueError) the client is unknown.
        """
        if not isinstance(client_id, str):
            # `Examples` finds clients by number too, TFF by id alone.
            raise DataError(f"a client id is text, not {client_id!r}")
        return _slices(**{k: self._examples.client(client_id)[k] for k in ("x", "y")})

    def create_tf_dataset_from_all_clients(
        self, seed: int | Sequence[int] | None = None
    ) -> tf.data.Dataset:
        """Returns all examples, client after client in an order shuffled by `seed`.

        The same as TFF's, without tracing all the examples into a graph (0.2 to
        1.2 s instead of 5 for MNIST).
        """
        ids = self.client_ids
        np.random.RandomState(seed).shuffle(ids)
        examples = self._examples.subset(ids)
        return _slices(x=examples.x, y=examples.y)

    def _dataset(self, client_id: str | tf.Tensor) -> tf.data.Dataset:
        if isinstance(client_id, str):
            return self.create_tf_dataset_for_client(client_id)
        if tf.executing_eagerly():
            return self.create_tf_dataset_for_client(client_id.numpy().decode())
        examples = self._examples
        if examples.x.nbytes + examples.y.nbytes > _GRAPH_BYTES:
            raise DataError(
                f"{examples.x.nbytes / 1e9:.1f} GB of examples do not fit into a "
                "TensorFlow graph (2 GB): look clients up by name, outside of the "
                "graph, or take a subset of the clients"
            )
        place = tf.where(tf.equal(tf.constant(list(examples.client_ids)), client_id))
        is_known = tf.equal(tf.size(place), 1)
        checked = tf.debugging.Assert(is_known, ["no client with the id", client_id])
        with tf.control_dependencies([checked]):
            place = tf.identity(place)[0, 0]
        splits = tf.constant(examples.row_splits)
        start, stop = splits[place], splits[place + 1]
        # Cut first: from_tensor_slices keeps a copy of its argument.
        return _slices(
            x=tf.constant(examples.x)[start:stop], y=tf.constant(examples.y)[start:stop]
        )


def _slices(x, y) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(collections.OrderedDict(x=x, y=y))
