"""Arguments of the processes, read and checked before anything is built."""

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

    A `ValueError` says that both are given, or what of them does not fit the criteria.
    """
    if score is not None:
        if priority is not None:
            raise ValueError("give either priority or score, not both")
        return scores_over("score", [score], codes)[0]
    order = codes if priority is None else require_sequence("priority", priority)
    declared = [c if c in codes else criteria_lib.ALIASES.get(c, c) for c in order]
    return prioritized(declared, codes)


def scores_over(
    name: str, scores: Iterable[Score], codes: Sequence[str]
) -> tuple[Score, ...]:
    """Returns the scores of an argument, over the criteria that clients measure.

    Raises:
        ValueError: they have no order, one is not a score, or it weighs by a criterion
            that is not among the codes.
    """
    scores = require_sequence(name, scores)
    for score in scores:
        if not isinstance(score, Score):
            kind = type(score).__name__
            raise ValueError(f"{name} must be a scores.Score, got {kind}")
    return tuple(score.over(codes) for score in scores)


def check_aggregator(
    aggregator: Any, sums: SumOptions, others: Mapping[str, Any]
) -> tff.aggregators.WeightedAggregationFactory:
    """Returns a factory of TFF's as a weighted one, which takes the place of `others`.

    Raises:
        ValueError: one of the others is given, or more of the sums than `clip_norm`.
        TypeError: it is no factory of TFF's.
    """
    for name, value in others.items():
        if value is not None:
            raise ValueError(f"give either aggregator or {name}, not both")
    if sums != SumOptions(clip_norm=sums.clip_norm):
        raise ValueError(
            "the aggregator takes the place of the sums: of these only clip_norm can "
            f"be given, got {sums}"
        )
    if isinstance(aggregator, tff.aggregators.UnweightedAggregationFactory):
        return tff.aggregators.as_weighted_aggregator(aggregator)
    if not isinstance(aggregator, tff.aggregators.WeightedAggregationFactory):
        kind = type(aggregator).__name__
        raise TypeError(f"aggregator must be one of tff.aggregators, got {kind}")
    return aggregator


def initial_weights(model_fn: Any) -> tuple[tff.learning.models.ModelWeights, Any]:
    """Returns a model's initial weights, as arrays, and its input spec.

    Raises:
        ValueError: it is no model of TFF's, and no function that returns one; or it
            has what `check_model` refuses.
    """
    if isinstance(model_fn, tff.learning.models.FunctionalModel):
        check_model(model_fn)
        trainable, non_trainable = model_fn.initial_weights
        arrays = (tuple(map(np.asarray, part)) for part in (trainable, non_trainable))
        return tff.learning.models.ModelWeights(*arrays), model_fn.input_spec
    # A model of Keras can also be called.
    made = callable(model_fn) and not isinstance(model_fn, tf.keras.Model)
    model = model_fn() if made else model_fn
    if made and isinstance(model, tff.learning.models.FunctionalModel):
        raise ValueError(
            "model_fn is a function that makes a functional model: give what it "
            "returns, as models.mnist_cnn()"
        )
    if not made or not isinstance(model, tff.learning.models.VariableModel):
        raise ValueError(
            "model_fn must be a FunctionalModel, or a function that returns what "
            "tff.learning.models.from_keras_model does; it "
            f"{'returns' if made else 'is'} a {type(model).__name__}"
        )
    labels = split_batch(model.input_spec)[1]
    if type(model).__name__ == "_KerasModel" and isinstance(labels, Mapping):
        raise ValueError(
            f"the labels are a mapping ({', '.join(labels)}), and TFF's Keras models "
            "take those of several outputs as a tuple, in the order of the outputs"
        )
    check_model(model)
    variables = tff.learning.models.ModelWeights.from_model(model)
    return tf.nest.map_structure(lambda v: v.numpy(), variables), model.input_spec


def check_step(
    name: str, optimizer: tff.learning.optimizers.Optimizer, trainable: Any
) -> None:
    """Raises a `ValueError` if an optimizer cannot step weights (arrays) of their type.

    TFF's SGD with momentum steps no float64.
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
                f"{', '.join(types)}: build the layers with dtype='float32', or give "
                "another optimizer, such as SGD without momentum"
            ) from error


def check_client_optimizer(
    optimizer: tff.learning.optimizers.Optimizer, training: Training, trainable: Any
) -> None:
    """Checks the clients' optimizer, and rate by round, for these weights (arrays).

    A `ValueError` reports a rate that follows a client's steps, or does not follow the
    round.
    """
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), trainable)
    with tf.Graph().as_default():
        state = optimizer.initialize(specs)
        hparams = optimizer.get_hparams(state)
    # As of TFF's `schedule_learning_rate`.
    if isinstance(state, Mapping) and {"round_num", "optimizer"} <= {*state}:
        raise ValueError(
            "client_optimizer_fn has a schedule that counts a client's steps, and "
            "begins anew in every round: give the optimizer without it, and the "
            "schedule as client_learning_rate_fn, which is of the round"
        )
    if training.client_learning_rate_fn and "learning_rate" not in hparams:
        raise ValueError(
            "client_learning_rate_fn: client_optimizer_fn, a "
            f"{type(optimizer).__name__}, has no learning_rate in its hparams"
        )
    rate = training.client_rate(tf.constant(0))
    if rate is not None and not (rate.shape.rank == 0 and 0 <= rate < np.inf):
        raise ValueError(
            "client_learning_rate_fn must give one number, 0 or more and finite, and "
            f"gives {np.asarray(rate)} for round 0"
        )
