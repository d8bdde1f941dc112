"""Values of clients that persist between rounds, in the state of the client work.

TFF's clients keep nothing, so this is for simulation: all of it travels to all.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_pmc.aggregation.contributions import check_client
from tff_pmc.criteria import LocalClient
from tff_pmc.criteria.client_criteria import received_loss


class ClientMemory:
    """A row for each of some clients. This one is of none, and the base of others."""

    size = 0
    """How many clients have a row; with 0 the state has no memory."""

    def initial(self, weights: Any) -> Any:
        """Returns the first round's rows, [size, ...], of the model's weights."""
        return ()

    def start(self, memory: Any, client: tf.Tensor, received: Any) -> Any:
        """Returns the weights from which a client trains: those it received."""
        return received

    def read_row(self, memory: Any, client: tf.Tensor) -> Any:
        """Returns what criteria receive of the client, as `LocalClient.memory`."""
        return ()

    def zero_updates(self, memory: Any) -> Any:
        """Returns what a pack remembers before its first client: empty rows."""
        if not self.size:
            return ()
        return collections.OrderedDict(
            # What is summed is a number: switches of layers are none.
            rows=tf.nest.map_structure(
                lambda t: tf.zeros_like(t, "int32" if t.dtype.is_bool else None), memory
            ),
            present=tf.zeros([self.size]),
        )

    def record_client(self, found: Any, client: tf.Tensor, known: LocalClient) -> Any:
        """Returns what a pack remembers after one more client."""
        return found

    def finalize(self, rows: Any) -> Any:
        """Returns all rows after a round, from those that its clients have replaced."""
        return rows


class AgnosticWeights(ClientMemory):
    """A weight lambda_k for each client of the federation, which sum to 1 (AFL).

    It is of Mohri, Sivek, Suresh 2019, Algorithm 1: after a round

        lambda <- the point of the simplex that is nearest to lambda + rate * F

    with F_k the received model's loss on the examples of each client in the round, and
    0 for the others. They begin equal. A loss that is not finite counts as 0.
    """

    def __init__(self, num_clients: int, rate: float) -> None:
        """Raises a `ValueError` for no clients, or a rate that is not above 0."""
        if num_clients < 1 or not 0 < rate < math.inf:
            raise ValueError(
                "weights of clients need some clients and a finite rate above 0, got "
                f"{num_clients} and {rate}"
            )
        self.size, self._rate = num_clients, rate

    def initial(self, weights: Any) -> Any:
        """Returns equal weights."""
        return np.full(self.size, 1 / self.size, np.float32)

    def read_row(self, memory: Any, client: tf.Tensor) -> Any:
        """Returns the client's weight, float32."""
        number = check_client(self.size, client)
        return memory[number]

    def record_client(self, found: Any, client: tf.Tensor, known: LocalClient) -> Any:
        """Puts in the client's weight after the step, not on the simplex yet."""
        loss = received_loss(known)
        step = tf.where(tf.math.is_finite(loss), self._rate * loss, 0.0)
        values = {"rows": known.memory + step, "present": 1.0}
        return collections.OrderedDict(
            (name, tf.tensor_scatter_nd_update(found[name], [[client]], [value]))
            for name, value in values.items()
        )

    def finalize(self, rows: Any) -> Any:
        """Projects onto the simplex by sorting (Duchi et al. 2008, Figure 1)."""
        falling = tf.sort(rows, direction="DESCENDING")
        above = (tf.cumsum(falling) - 1.0) / tf.range(1.0, self.size + 1.0)
        count = tf.reduce_sum(tf.cast(falling > above, tf.int32))
        return tf.maximum(rows - above[count - 1], 0.0)


class PersistentModels(ClientMemory):
    """The models of clients that ignore the server's, as AdaFed's adversaries do."""

    def __init__(self, clients: Sequence[int]) -> None:
        """Raises a `ValueError` when a client is named twice or below 0."""
        self._clients = found = tuple(int(client) for client in clients)
        self.size = len(found)
        if len(set(found)) < len(found) or any(client < 0 for client in found):
            raise ValueError(
                f"keep_own_model must name clients by number, each once: {found}"
            )

    def initial(self, weights: Any) -> Any:
        """Returns the initial model for each of them."""
        return tf.nest.map_structure(
            lambda w: np.repeat(np.asarray(w)[np.newaxis], self.size, axis=0), weights
        )

    def start(self, memory: Any, client: tf.Tensor, received: Any) -> Any:
        """Returns the weights from which a client trains: its row's, if it has one."""
        place = self._place(client)
        is_own, row = tf.reduce_any(place), tf.argmax(tf.cast(place, tf.int32))
        return tf.nest.map_structure(
            lambda w, rows: tf.where(is_own, rows[row], w), received, memory
        )

    def record_client(self, found: Any, client: tf.Tensor, known: LocalClient) -> Any:
        """Puts in the client's trained model, if the client has a row."""
        place = self._place(client)

        def put(rows, w):
            # Selected, not multiplied: a model of NaNs must not reach other rows.
            of_row = tf.reshape(place, [-1] + [1] * len(w.shape))
            return tf.where(of_row, tf.cast(w, rows.dtype)[tf.newaxis], rows)

        return collections.OrderedDict(
            rows=tf.nest.map_structure(put, found["rows"], known.trained_weights),
            present=found["present"] + tf.cast(place, tf.float32),
        )

    def _place(self, client: tf.Tensor) -> tf.Tensor:
        """Returns a mask of the client, bool [size]; all False for any other client."""
        return tf.equal(tf.constant(self._clients), client)
