"""Per-client state that persists between rounds (simulation only).

TFF's clients are stateless: the server keeps this state in the client work and
broadcasts all of it to all clients.
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
    """The base class of per-client state, one row per client; it keeps no rows."""

    size = 0
    """The number of clients that have a row; with 0 the state has no memory."""

    def initial(self, weights: Any) -> Any:
        """Returns the first round's rows, [size, ...], from the model's weights."""
        return ()

    def start(self, memory: Any, client: tf.Tensor, received: Any) -> Any:
        """Returns the weights from which a client trains: here the received ones."""
        return received

    def read_row(self, memory: Any, client: tf.Tensor) -> Any:
        """Returns the client's row as criteria see it: `LocalClient.memory`."""
        return ()

    def correction(self, memory: Any, client: tf.Tensor) -> tuple[Any, ...]:
        """Returns the tensors to add to the gradients of the trainable weights.

        By default there are none.
        """
        return ()

    def zero_updates(self, memory: Any) -> Any:
        """Returns a pack's row updates before its first client: zeros."""
        if not self.size:
            return ()
        return collections.OrderedDict(
            # Row updates are summed over the packs, which booleans cannot be.
            rows=tf.nest.map_structure(
                lambda t: tf.zeros_like(t, "int32" if t.dtype.is_bool else None), memory
            ),
            present=tf.zeros([self.size]),
        )

    def record_client(
        self,
        row_updates: Any,
        client: tf.Tensor,
        local_client: LocalClient,
        *,
        included: tf.Tensor,
        correction: Sequence[Any] = (),
        rate: tf.Tensor | None = None,
    ) -> Any:
        """Returns the row updates with this client's added.

        Args:
            row_updates: the row updates of the pack's previous clients.
            client: the client's number.
            local_client: the client after its training.
            included: whether the client is included in the round.
            correction: the vector that was added to its gradients; see `correction`.
            rate: its learning rate in the round; None for the optimizer's.
        """
        return row_updates

    def after_round(self, memory: Any, row_updates: Any) -> Any:
        """Returns the memory with the rows of this round's clients replaced."""
        present = row_updates["present"] > 0

        def choose(new, old):
            row_mask = tf.reshape(present, [-1] + [1] * (len(new.shape) - 1))
            return tf.where(row_mask, tf.cast(new, old.dtype), old)

        return self.finalize(tf.nest.map_structure(choose, row_updates["rows"], memory))

    def finalize(self, rows: Any) -> Any:
        """Returns the rows to store, from the rows with this round's replaced."""
        return rows


class AgnosticWeights(ClientMemory):
    """The mixture weights of Agnostic Federated Learning: lambda_k per client, sum 1.

    They follow Algorithm 1 of Mohri, Sivek, Suresh 2019: after a round

        lambda <- the projection of lambda + rate * F onto the simplex

    with F_k the received model's loss on the examples of client k if it took part in
    the round, else 0. They start equal. A loss that is not finite counts as 0.
    """

    def __init__(self, num_clients: int, rate: float) -> None:
        """Raises a `ValueError` for no clients, or a rate that is not above 0."""
        if num_clients < 1 or not 0 < rate < math.inf:
            raise ValueError(
                "num_clients must be 1 or more, and rate finite and above 0, got "
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

    def record_client(
        self, row_updates: Any, client: tf.Tensor, local_client: LocalClient, **_: Any
    ) -> Any:
        """Adds the client's weight after the step, before the projection."""
        loss = received_loss(local_client)
        step = tf.where(tf.math.is_finite(loss), self._rate * loss, 0.0)
        values = {"rows": local_client.memory + step, "present": 1.0}
        return collections.OrderedDict(
            (name, tf.tensor_scatter_nd_update(row_updates[name], [[client]], [value]))
            for name, value in values.items()
        )

    def finalize(self, rows: Any) -> Any:
        """Projects the rows onto the simplex by sorting (Duchi et al. 2008, Fig. 1)."""
        descending = tf.sort(rows, direction="DESCENDING")
        above = (tf.cumsum(descending) - 1.0) / tf.range(1.0, self.size + 1.0)
        count = tf.reduce_sum(tf.cast(descending > above, tf.int32))
        return tf.maximum(rows - above[count - 1], 0.0)


class PersistentModels(ClientMemory):
    """The models of clients that ignore the server's model, as AdaFed's adversaries."""

    def __init__(self, clients: Sequence[int]) -> None:
        """Raises a `ValueError` if a client is listed twice or below 0."""
        self._clients = client_ids = tuple(int(client) for client in clients)
        self.size = len(client_ids)
        if len(set(client_ids)) < self.size or any(k < 0 for k in client_ids):
            raise ValueError(
                "keep_own_model must list client numbers, 0 or more, each once: got "
                f"{client_ids}"
            )

    def initial(self, weights: Any) -> Any:
        """Returns one copy of the initial model per client."""
        return tf.nest.map_structure(
            lambda w: np.repeat(np.asarray(w)[np.newaxis], self.size, axis=0), weights
        )

    def start(self, memory: Any, client: tf.Tensor, received: Any) -> Any:
        """Returns the weights from which a client trains: its row, if it has one."""
        mask = self._client_mask(client)
        has_row, row = tf.reduce_any(mask), tf.argmax(tf.cast(mask, tf.int32))
        return tf.nest.map_structure(
            lambda w, rows: tf.where(has_row, rows[row], w), received, memory
        )

    def record_client(
        self, row_updates: Any, client: tf.Tensor, local_client: LocalClient, **_: Any
    ) -> Any:
        """Adds the client's trained model, if the client has a row."""
        mask = self._client_mask(client)

        def put(rows, w):
            # `tf.where`, because a product would carry NaNs to other rows.
            row_mask = tf.reshape(mask, [-1] + [1] * len(w.shape))
            return tf.where(row_mask, tf.cast(w, rows.dtype)[tf.newaxis], rows)

        return collections.OrderedDict(
            rows=tf.nest.map_structure(
                put, row_updates["rows"], local_client.trained_weights
            ),
            present=row_updates["present"] + tf.cast(mask, tf.float32),
        )

    def _client_mask(self, client: tf.Tensor) -> tf.Tensor:
        """Returns a mask of the client, bool [size]; all False for any other client."""
        return tf.equal(tf.constant(self._clients), client)
