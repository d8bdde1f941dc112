"""Evaluation on the server's examples: confusion matrix, judge, F1, class weights."""

from __future__ import annotations

import collections
from typing import Any, Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import models
from tff_pmc.aggregation.tff_utils import federated_struct
from tff_pmc.models.functional import predicted_labels, reduce_predictions
from tff_pmc.models.positions import select_counted


def build_confusion(
    model: tff.learning.models.FunctionalModel, x: Any, y: Any, num_classes: int
) -> Callable[[Any], tf.Tensor]:
    """Builds `weights -> int32 [classes, classes]`, counts by label and prediction."""
    specs = tff.types.type_to_tf_tensor_specs(models.weights_type(model))

    @tf.function
    def confusion(*leaves):
        weights = tf.nest.pack_sequence_as(specs, leaves)
        inputs, labels = tf.constant(x), tf.constant(y, tf.int32)

        def add(counts, rows, output):
            scores, label = select_counted(output, labels[rows])
            prediction = predicted_labels(scores)
            # A missing prediction (-1), or a class beyond `num_classes`, is an error.
            outside = (prediction < 0) | (prediction >= num_classes)
            prediction = tf.where(outside, (label + 1) % num_classes, prediction)
            return counts + tf.math.confusion_matrix(label, prediction, num_classes)

        no_examples = tf.zeros([num_classes, num_classes], tf.int32)
        return reduce_predictions(model, weights, inputs, len(x), no_examples, add)

    # Traced here, because TensorFlow counts the traces of all functions of the same
    # code together: it would take the first calls in several processes for retracing
    # and warn.
    concrete = confusion.get_concrete_function(*tf.nest.flatten(specs))
    return lambda weights: concrete(
        *map(tf.convert_to_tensor, tf.nest.flatten(weights))
    )


def build_server_judge(
    model: tff.learning.models.FunctionalModel, x: Any, y: Any, num_classes: int
) -> Callable[[Any, Any], np.ndarray]:
    """Builds a judge for `build_online_adjusted_fed_avg` on the server's examples.

    The judge ignores the clients' data.

    Args:
        model: a functional model that outputs one score per class.
        x: the server's inputs, `[n, ...]`.
        y: their labels, int `[n]`, or `[n, T]` for each position.
        num_classes: the number of classes.

    Returns:
        A function `(weights, unused data) -> int`: the number of the server's examples
        that the model classifies correctly.
    """
    confusion = build_confusion(model, x, y, num_classes)

    def judge(weights, unused_clients):
        return np.trace(np.asarray(confusion(weights)))

    return judge


def f1_by_class(confusion: tf.Tensor) -> tf.Tensor:
    """Computes F1 of each class, `2 TP / (2 TP + FP + FN)`.

    The confusion matrix counts examples by label (rows) and prediction (columns). F1 is
    NaN for a class that is neither a label nor a prediction.
    """
    counts = tf.cast(confusion, tf.float32)
    label_plus_predicted = tf.reduce_sum(counts, 0) + tf.reduce_sum(counts, 1)
    f1 = tf.math.divide_no_nan(2 * tf.linalg.diag_part(counts), label_plus_predicted)
    return tf.where(label_plus_predicted > 0, f1, np.nan)


def compute_class_weights(confusion: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Computes AdaFed's class weights, `1 / (F1 + epsilon)` (section 3.1).

    A class without examples at the server, whose F1 is unknown, has the weight 1, as
    all classes in the first round.
    """
    is_there = tf.reduce_sum(confusion, 1) > 0
    return tf.where(is_there, 1.0 / (f1_by_class(confusion) + epsilon), 1.0)


def build_class_weight_distributor(
    model: tff.learning.models.FunctionalModel,
    x: Any,
    y: Any,
    num_classes: int,
    epsilon: float,
) -> tff.learning.templates.DistributionProcess:
    """Builds the broadcast of AdaFed: the model, and class weights for its loss.

    In the first round all class weights are 1. In later rounds the server computes F1
    of the model that it is about to send, the result of the previous round (AdaFed's
    Algorithm 1, lines 10 to 12), and also sends `compute_class_weights`, so that
    clients focus on the classes with a low F1. The state is the number of rounds done.
    """
    if not epsilon > 0:
        raise ValueError(f"epsilon must be above 0, got {epsilon}")
    weights_type = models.weights_type(model)
    confusion = build_confusion(model, x, y, num_classes)

    @tff.tensorflow.computation(np.int32, weights_type)
    def with_class_weights(rounds_done, weights):
        class_weights = tf.cond(
            rounds_done > 0,
            lambda: compute_class_weights(confusion(weights), epsilon),
            lambda: tf.ones([num_classes]),
        )
        message = collections.OrderedDict(weights=weights, class_weights=class_weights)
        return message, class_weights, rounds_done + 1

    @tff.federated_computation
    def initialize():
        return tff.federated_value(np.int32(0), tff.SERVER)

    @tff.federated_computation(
        initialize.type_signature.result, tff.FederatedType(weights_type, tff.SERVER)
    )
    def next_fn(state, weights):
        outputs = tff.federated_map(with_class_weights, (state, weights))
        message, class_weights, rounds_done = outputs
        return tff.templates.MeasuredProcessOutput(
            rounds_done,
            tff.federated_broadcast(message),
            federated_struct(class_weights=class_weights),
        )

    return tff.learning.templates.DistributionProcess(initialize, next_fn)


def num_weighted_classes(
    distributor: tff.learning.templates.DistributionProcess,
) -> int:
    """Returns the number of class weights that a distributor sends, or 0."""
    message_type = distributor.next.type_signature.result.result.member
    names = tff.structure.name_list(message_type)
    return message_type.class_weights.shape[0] if "class_weights" in names else 0
