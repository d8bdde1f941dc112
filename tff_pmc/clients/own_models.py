"""Clients that go on with models of their own, in the state of the client work."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class OwnModels:
    """Clients that go on with models of their own (simulation only).

    AdaFed's adversaries do (its simulation 3). TFF's clients keep nothing between
    rounds, so their models travel in the client work's state, as its `memory`.
    """

    def __init__(self, clients: Sequence[int]) -> None:
        """Raises a `ValueError` when a client is named twice or below 0."""
        self.clients = found = tuple(int(client) for client in clients)
        if len(set(found)) < len(found) or any(client < 0 for client in found):
            raise ValueError(
                f"keep_own_model must name clients by number, each once: {found}"
            )

    def initial(self, weights: Any) -> Any:
        """The memory before the first round: the initial model for each of them."""
        count = len(self.clients)
        return tf.nest.map_structure(
            lambda w: np.repeat(np.asarray(w)[np.newaxis], count, axis=0), weights
        )

    def start(self, memory: Any, client: tf.Tensor, received: Any) -> Any:
        """The weights a client starts from: its own, or those it received."""
        if not self.clients:
            return received
        place = self._place(client)
        is_own, row = tf.reduce_any(place), tf.argmax(tf.cast(place, tf.int32))
        return tf.nest.map_structure(
            lambda w, rows: tf.where(is_own, rows[row], w), received, memory
        )

    def nothing(self, memory: Any) -> Any:
        """The models that a pack remembers before its first client: none."""
        if not self.clients:
            return ()
        return collections.OrderedDict(
            rows=tf.nest.map_structure(tf.zeros_like, memory),
            present=tf.zeros([len(self.clients)]),
        )

    def remember(self, found: Any, client: tf.Tensor, trained: Any) -> Any:
        """The models that a pack remembers after one more client."""
        if not self.clients:
            return ()
        place = self._place(client)

        def put(rows, w):
            # Selected, not multiplied: a model of NaNs must not reach other rows.
            of_row = tf.reshape(place, [-1] + [1] * len(w.shape))
            return tf.where(of_row, w[tf.newaxis], rows)

        return collections.OrderedDict(
            rows=tf.nest.map_structure(put, found["rows"], trained),
            present=found["present"] + tf.cast(place, tf.float32),
        )

    def _place(self, client: tf.Tensor) -> tf.Tensor:
        """A mask of the client among `clients`, bool [A]; all False for any other."""
        return tf.equal(tf.constant(self.clients), client)
