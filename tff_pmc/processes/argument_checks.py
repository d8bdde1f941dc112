"""Checks of the builders' arguments, before anything is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from declared_settings import require_sequence
from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import SumOptions
from tff_pmc.clients.training_options import Training
from tff_pmc.models.tff_types.keras_checks import check_model
from tff_pmc.models.tff_types.packed_model import split_batch
from tff_pmc.scores import Score, prioritized


def resolve_score(
    priority: Optional[Sequence[str]], score: Optional[Score], codes: Sequence[str]
) -> Score:
    """Returns the score over `codes` that `priority` or `score` names.

    Raises a `ValueError` if both are given, or one does not fit the criteria.
    """
    if score is not None:
        if priority is not None:
            raise ValueError("give either priority or score, not both")
        return scores_over("score", [score], codes)[0]
    order = codes if priority is None else require_sequence("priority", priority)
    order_codes = [c if c in codes else criteria_lib.ALIASES.get(c, c) for c in order]
    return prioritized(order_codes, codes)


def scores_over(
    name: str, scores: Iterable[Score], codes: Sequence[str]
) -> tuple[Score, ...]:
    """Returns the scores of the argument `name`, over the criteria with these codes.

    Raises:
        ValueError: the scores are a set or a dict, which have no order; a value is not
            a score; or a score weighs by a criterion that is not among the codes.
    """
    scores = require_sequence(name, scores)
    for score in scores:
        if not isinstance(score, Score):
            kind = type(score).__name__
            raise ValueError(f"{name} must be a scores.Score, got {kind}")
    return tuple(score.over(codes) for score in scores)


def as_weighted_factory(
    aggregator: Any, sums: SumOptions, replaced: Mapping[str, Any]
) -> tff.aggregators.WeightedAggregationFactory:
    """Checks the argument `aggregator` and returns it as a weighted factory.

    Raises:
        ValueError: an argument in `replaced` is not None, or an option of the sums
            other than `clip_norm` is set.
        TypeError: the aggregator is not a TFF aggregation factory.
    """
    for name, value in replaced.items():
        if value is not None:
            raise ValueError(f"give either aggregator or {name}, not both")
    if sums != SumOptions(clip_norm=sums.clip_norm):
        raise ValueError(
            "aggregator replaces the sums, whose only option it follows is clip_norm: "
            f"remove the others from {sums}"
        )
    if isinstance(aggregator, tff.aggregators.UnweightedAggregationFactory):
        return tff.aggregators.as_weighted_aggregator(aggregator)
    if not isinstance(aggregator, tff.aggregators.WeightedAggregationFactory):
        kind = type(aggregator).__name__
        raise TypeError(f"aggregator must be a factory of tff.aggregators, got {kind}")
    return aggregator


def initial_weights_and_spec(
    model_fn: Any,
) -> tuple[tff.learning.models.ModelWeights, Any]:
    """Returns a model's initial weights, as arrays, and its input spec.

    Raises:
        ValueError: it is neither a TFF model nor a function that returns one, or
            `check_model` rejects it.
    """
    if isinstance(model_fn, tff.learning.models.FunctionalModel):
        check_model(model_fn)
        trainable, non_trainable = model_fn.initial_weights
        arrays = (tuple(map(np.asarray, part)) for part in (trainable, non_trainable))
        return tff.learning.models.ModelWeights(*arrays), model_fn.input_spec
    # A Keras model is callable, too.
    is_function = callable(model_fn) and not isinstance(model_fn, tf.keras.Model)
    model = model_fn() if is_function else model_fn
    if is_function and isinstance(model, tff.learning.models.FunctionalModel):
        raise ValueError(
            "model_fn is a function that returns a FunctionalModel: pass its result, "
            "as models.mnist_cnn()"
        )
    if not is_function or not isinstance(model, tff.learning.models.VariableModel):
        raise ValueError(
            "model_fn must be a FunctionalModel, or a function that returns what "
            "tff.learning.models.from_keras_model does; it "
            f"{'returns' if is_function else 'is'} a {type(model).__name__}"
        )
    labels = split_batch(model.input_spec)[1]
    if type(model).__name__ == "_KerasModel" and isinstance(labels, Mapping):
        raise ValueError(
            f"the labels are a mapping ({', '.join(labels)}), but TFF's Keras models "
            "take the labels of several outputs as a tuple: pass them so, in the order "
            "of the outputs"
        )
    check_model(model)
    variables = tff.learning.models.ModelWeights.from_model(model)
    return tf.nest.map_structure(lambda v: v.numpy(), variables), model.input_spec


def check_step(
    name: str, optimizer: tff.learning.optimizers.Optimizer, trainable: Any
) -> None:
    """Raises a `ValueError` if an optimizer cannot step weights (arrays) of their type.

    TFF's SGD with momentum, for example, cannot step float64.
    """
    types = sorted({w.dtype.name for w in trainable})
    if types == ["float32"]:
        return
    with tf.Graph().as_default():
        weights = tuple(tf.zeros(w.shape, w.dtype) for w in trainable)
        specs = tuple(tf.TensorSpec(w.shape, w.dtype) for w in weights)
        try:
            state = optimizer.initialize(specs)
            state = tf.nest.map_structure(tf.convert_to_tensor, state)
            optimizer.next(state, weights, weights)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name}, a {type(optimizer).__name__}, cannot step weights of "
                f"{', '.join(types)}: build the layers with dtype='float32', or use "
                "another optimizer, such as SGD without momentum"
            ) from error


def check_client_optimizer(
    optimizer: tff.learning.optimizers.Optimizer, training: Training, trainable: Any
) -> None:
    """Checks the clients' optimizer and their rate by round, for weights (arrays).

    Raises a `ValueError` if the optimizer schedules its rate by local steps, or if
    `client_learning_rate_fn` cannot set its rate.
    """
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), trainable)
    with tf.Graph().as_default():
        state = optimizer.initialize(specs)
        hparams = optimizer.get_hparams(state)
    # The state of TFF's `schedule_learning_rate`.
    if isinstance(state, Mapping) and {"round_num", "optimizer"} <= {*state}:
        raise ValueError(
            "client_optimizer_fn has a learning-rate schedule by local steps, which "
            "restarts in every round: pass the optimizer without it, and a schedule by "
            "round as client_learning_rate_fn"
        )
    if training.client_learning_rate_fn and "learning_rate" not in hparams:
        raise ValueError(
            "client_learning_rate_fn: client_optimizer_fn, a "
            f"{type(optimizer).__name__}, has no learning_rate in its hparams to set: "
            "use an optimizer of tff.learning.optimizers"
        )
    rate = training.client_rate(tf.constant(0))
    if rate is not None and not (rate.shape.rank == 0 and 0 <= rate < np.inf):
        raise ValueError(
            "client_learning_rate_fn must return one finite number, 0 or more; for "
            f"round 0 it returns {np.asarray(rate)}"
        )
