"""The criteria that a client measures on its examples and its models."""

from __future__ import annotations

from typing import Any

from tff_pmc._lazy import tf
from tff_pmc.criteria.criterion import Criterion, LocalClient, register
from tff_pmc.models.functional import cast_to_common_float


def dataset_size(client: LocalClient) -> Any:
    """Counts the local training examples `|D_k|`, as the model's loss counts them.

    It counts sequences, not their positions; for these see `number_of_positions`.
    """
    if client.num_examples is not None:
        return client.num_examples
    return tf.shape(client.y)[0]


def number_of_positions(client: LocalClient) -> Any:
    """Counts the labels of the local training examples that count.

    With a label per position it counts the positions whose label is not -1; with one
    label for each example it is the number of examples.
    """
    return tf.size(_counted_labels(client))


def label_diversity(client: LocalClient) -> Any:
    """Counts the distinct labels among the local training examples.

    For sequences it counts the labels of all positions except -1, which marks one that
    does not count.
    """
    return tf.size(tf.unique(_counted_labels(client)).y)


def class_balance(client: LocalClient) -> Any:
    """Returns the size of the client's rarest class over that of its most frequent one.

    It is 0 for a client with one class. For two classes it is PMC's equation 9; the
    extension to more classes is ours and ignores classes that the client lacks. For
    sequences it counts the labels of all positions except -1.
    """
    classes, _, counts = tf.unique_with_counts(_counted_labels(client))
    counts = tf.cast(counts, tf.float32)
    ratio = tf.math.divide_no_nan(tf.reduce_min(counts), tf.reduce_max(counts))
    return tf.where(tf.size(classes) > 1, ratio, 0.0)


def _counted_labels(client: LocalClient) -> Any:
    """Returns the labels that count, [p]."""
    labels = tf.reshape(client.y, [-1])
    if tf.convert_to_tensor(client.y).shape.rank == 1:
        return labels
    return tf.boolean_mask(labels, labels >= 0)


def image_sharpness(client: LocalClient) -> Any:
    """Returns the share of sharp images among the training examples; 0 without any.

    The examples' attribute `sharp` is 1 or 0.
    """
    sharp = client.example_attributes["sharp"]
    return tf.math.divide_no_nan(
        tf.reduce_sum(sharp), tf.cast(tf.size(sharp), tf.float32)
    )


def model_divergence(client: LocalClient) -> Any:
    """Computes `1 / sqrt(||w - w_k||_2 + 1)`, one norm over all trained parameters."""
    return tf.math.rsqrt(tf.linalg.global_norm(client_update(client)) + 1.0)


def model_divergence_by_layer(client: LocalClient) -> Any:
    """Computes `1 / sqrt(mean_l ||K_l - K_kl||_2 + 1)` over the layers' kernels.

    As in the authors' published code: a norm for each layer's kernel, no
    biases (tensors of rank below 2), and the mean over the layers.
    """
    kernels = [d for d in client_update(client) if len(d.shape) >= 2]
    norms = [tf.norm(tf.reshape(d, [-1])) for d in kernels]
    return tf.math.rsqrt(tf.reduce_mean(tf.stack(norms)) + 1.0)


def received_loss(client: LocalClient) -> Any:
    """Computes `F_k(w)`: the received model's mean loss on the training examples."""
    return client.mean_on_received(_loss)


def _loss(output: Any, y: Any) -> Any:
    # One function, so that all criteria on the loss share one pass.
    return output.loss


def client_update(client: LocalClient) -> list[Any]:
    """Returns the client update `w - w_k` of the trainable weights, as tensors."""
    before = client.initial_weights.trainable
    after = client.trained_weights.trainable
    # With this sign TensorFlow computes one difference for update and criterion.
    return cast_to_common_float([b - a for a, b in zip(after, before)])


_DA_AND_PMC = "DA section 3, PMC section 5.1"
for _criterion in (
    Criterion(
        "DS", "dataset size", "DA section 3, PMC sections 5.1 and 5.2", dataset_size
    ),
    Criterion(
        "NP",
        "number of positions",
        "ours: DS where each position of an example has a label",
        number_of_positions,
        needs_classes=True,
    ),
    Criterion(
        "LD", "label diversity", _DA_AND_PMC, label_diversity, needs_classes=True
    ),
    Criterion(
        "CB",
        "class balance",
        "PMC section 5.2, eq. 9",
        class_balance,
        needs_classes=True,
    ),
    Criterion(
        "IS",
        "image sharpness",
        "PMC section 5.2",
        image_sharpness,
        example_attributes=("sharp",),
    ),
    Criterion(
        "MD", "model divergence", _DA_AND_PMC, model_divergence, needs_model=True
    ),
    Criterion(
        "MD_layers",
        "model divergence, mean over the layers' kernels",
        "the authors' published code, MNIST/Server.py",
        model_divergence_by_layer,
        needs_model=True,
    ),
    Criterion(
        "LOSS",
        "loss of the received model",
        "q-FFL, Li et al. 2020, F_k of eq. 1",
        received_loss,
        needs_model=True,
    ),
):
    register(_criterion)
