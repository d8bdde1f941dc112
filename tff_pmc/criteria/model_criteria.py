"""Criteria that look at the model that a client has trained."""

from __future__ import annotations

from typing import Any

from tff_pmc._lazy import tf
from tff_pmc.criteria.criterion import Criterion, LocalClient, register


def model_divergence(client: LocalClient) -> Any:
    """`1 / sqrt(||w - w_k||_2 + 1)`, one norm over all trainable parameters."""
    return tf.math.rsqrt(tf.linalg.global_norm(_difference(client)) + 1.0)


def model_divergence_by_layer(client: LocalClient) -> Any:
    """`1 / sqrt(mean_l ||K_l - K_kl||_2 + 1)` over the layers' kernels.

    As the authors' published code has it: a norm for each layer's kernel, no
    biases (tensors of rank below 2), and the mean over the layers.
    """
    kernels = [d for d in _difference(client) if len(d.shape) >= 2]
    norms = [tf.norm(tf.reshape(d, [-1])) for d in kernels]
    return tf.math.rsqrt(tf.reduce_mean(tf.stack(norms)) + 1.0)


def _difference(client: LocalClient) -> list[Any]:
    before = client.initial_weights.trainable
    after = client.trained_weights.trainable
    # The update's own sign: TensorFlow then computes one difference for both.
    return [b - a for a, b in zip(after, before)]


register(
    Criterion(
        "MD",
        "model divergence",
        "DA section 3, PMC section 5.1",
        model_divergence,
        needs_model=True,
    )
)
register(
    Criterion(
        "MD_layers",
        "model divergence, mean over the layers' kernels",
        "the authors' published code, MNIST/Server.py",
        model_divergence_by_layer,
        needs_model=True,
    )
)
