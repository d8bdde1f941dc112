"""Client memories that correct local gradients: those of SCAFFOLD and FedDyn."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_pmc.aggregation.contributions import check_client
from tff_pmc.clients.client_memory import ClientMemory
from tff_pmc.criteria import LocalClient


class GradientRows(ClientMemory):
    """One vector per client, shaped like the trainable weights; initially 0.

    The memory is `<rows=([size, ...], ...)>`, one array per trainable variable.
    """

    def __init__(self, num_clients: int) -> None:
        """Raises a `ValueError` if there are no clients."""
        if num_clients < 1:
            raise ValueError(f"num_clients must be at least 1, got {num_clients}")
        self.size = num_clients

    def initial(self, weights: Any) -> Any:
        """Returns zeros for each client."""
        arrays = map(np.asarray, weights.trainable)
        rows = tuple(np.zeros((self.size, *w.shape), w.dtype) for w in arrays)
        return collections.OrderedDict(rows=rows)

    def read_row(self, memory: Any, client: tf.Tensor) -> Any:
        """Returns the client's vector, a tuple like the trainable weights."""
        number = check_client(self.size, client)
        return tuple(rows[number] for rows in memory["rows"])

    def zero_updates(self, memory: Any) -> Any:
        """Returns a pack's row updates before its first client: zeros."""
        return collections.OrderedDict(
            rows=tuple(map(tf.zeros_like, memory["rows"])),
            present=tf.zeros([self.size]),
        )

    def after_round(self, memory: Any, row_updates: Any) -> Any:
        """Returns the memory with the new vectors of the included clients."""
        rows = super().after_round(memory["rows"], row_updates)
        return collections.OrderedDict(rows=rows)

    def put_vector(
        self,
        row_updates: Any,
        client: tf.Tensor,
        vector: Sequence[Any],
        included: tf.Tensor,
    ) -> Any:
        """Returns the row updates with a client's new vector.

        An excluded client keeps its previous vector.
        """
        vector = tuple(tf.where(included, v, tf.zeros_like(v)) for v in vector)
        return collections.OrderedDict(
            row_updates,
            rows=tuple(
                tf.tensor_scatter_nd_update(rows, [[client]], v[tf.newaxis])
                for rows, v in zip(row_updates["rows"], vector)
            ),
            present=tf.tensor_scatter_nd_update(
                row_updates["present"], [[client]], [tf.cast(included, tf.float32)]
            ),
        )


class ControlVariates(GradientRows):
    """SCAFFOLD's control variates: c_i for each client i, and c for the server.

    Karimireddy et al. 2020, Algorithm 1, option II. Each of the K steps of a client
    adds `c - c_i` to its gradient. With x the received and y_i the trained model, and
    S the round's clients of all N,

        c_i+ = c_i - c + (x - y_i) / (K rate)
        c   <- c + sum_{i in S} (c_i+ - c_i) / N

    A deployment sends c with the model, and `c_i+ - c_i` with the update.
    """

    def __init__(
        self, num_clients: int, rate: float, num_trainable: int | None = None
    ) -> None:
        """Checks the numbers of clients and the rate.

        Args:
            num_clients: the number of clients in the federation.
            rate: the learning rate of the clients' plain SGD; a
                `client_learning_rate_fn` replaces it.
            num_trainable: N, the number of clients that have training examples; by
                default all.

        Raises:
            ValueError: a number is out of range; the message names it.
        """
        super().__init__(num_clients)
        if not 0 < rate < math.inf:
            raise ValueError(f"rate must be above 0, and finite, got {rate}")
        if num_trainable is None:
            num_trainable = num_clients
        if not 1 <= num_trainable <= num_clients:
            raise ValueError(
                f"num_trainable must be from 1 to num_clients={num_clients}, got "
                f"{num_trainable}"
            )
        self._rate, self._num_trainable = rate, num_trainable

    def initial(self, weights: Any) -> Any:
        """Returns zeros for each client and, as `control`, for the server."""
        memory = super().initial(weights)
        control = tuple(np.zeros_like(rows[0]) for rows in memory["rows"])
        return collections.OrderedDict(memory, control=control)

    def zero_updates(self, memory: Any) -> Any:
        """Returns zeros for the rows, and for the sum of the control updates."""
        updates = tuple(map(tf.zeros_like, memory["control"]))
        return collections.OrderedDict(super().zero_updates(memory), updates=updates)

    def correction(self, memory: Any, client: tf.Tensor) -> tuple[Any, ...]:
        """Returns `c - c_i`."""
        client_control = self.read_row(memory, client)
        return tuple(c - c_i for c, c_i in zip(memory["control"], client_control))

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
        """Adds the client's c_i+, and its change to the sum of the control updates."""
        # Each of the K steps is the rate times the corrected gradient.
        rate = self._rate if rate is None else rate
        total_rate = rate * tf.cast(local_client.steps, tf.float32)
        received, trained = (
            weights.trainable
            for weights in (local_client.initial_weights, local_client.trained_weights)
        )
        vector = tuple(
            tf.math.divide_no_nan(x - y, tf.cast(total_rate, x.dtype)) - c
            for x, y, c in zip(received, trained, correction)
        )
        updates = tuple(
            total + tf.where(included, new - old, tf.zeros_like(new))
            for total, new, old in zip(
                row_updates["updates"], vector, local_client.memory
            )
        )
        row_updates = self.put_vector(row_updates, client, vector, included)
        return collections.OrderedDict(row_updates, updates=updates)

    def after_round(self, memory: Any, row_updates: Any) -> Any:
        """Returns the memory with the new c_i and the new c."""
        control = tuple(
            c + total / self._num_trainable
            for c, total in zip(memory["control"], row_updates["updates"])
        )
        memory = super().after_round(memory, row_updates)
        return collections.OrderedDict(memory, control=control)


class LocalGradients(GradientRows):
    """FedDyn's vectors g_k, which estimate the gradient of each client's loss.

    Acar et al. 2021, Algorithm 1. Each step of client k adds `-g_k` to its gradient.
    With the received model w and the trained one w_k,

        g_k <- g_k - alpha (w_k - w)

    This is the gradient of the client's loss at w_k, if w_k minimizes its regularized
    loss.
    """

    def __init__(self, num_clients: int, alpha: float) -> None:
        """Raises a `ValueError` for no clients, or an alpha that is not above 0."""
        super().__init__(num_clients)
        if not 0 < alpha < math.inf:
            raise ValueError(f"alpha must be above 0, and finite, got {alpha}")
        self._alpha = alpha

    def correction(self, memory: Any, client: tf.Tensor) -> tuple[Any, ...]:
        """Returns `-g_k`."""
        return tuple(map(tf.negative, self.read_row(memory, client)))

    def record_client(
        self,
        row_updates: Any,
        client: tf.Tensor,
        local_client: LocalClient,
        *,
        included: tf.Tensor,
        **_: Any,
    ) -> Any:
        """Adds the client's new g_k."""
        received, trained = local_client.initial_weights, local_client.trained_weights
        vector = tuple(
            g + tf.cast(self._alpha, w.dtype) * (w - w_k)
            for g, w, w_k in zip(
                local_client.memory, received.trainable, trained.trainable
            )
        )
        return self.put_vector(row_updates, client, vector, included)
