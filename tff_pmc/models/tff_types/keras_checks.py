"""Checks of a model before its first round.

`check_model` checks every model, a functional one or one from a `model_fn`, and raises
an error of one line for parts that would have no effect in training.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.models.model_folder import weight_names
from tff_pmc.models.tff_types.packed_model import (
    evaluate_initial_model,
    make_probe_array,
    split_batch,
)

MODEL_FN = "a function that returns tff.learning.models.from_keras_model(...)"
"""The name of a `model_fn` in messages."""

_MEAN = (
    "but it must be the mean of the examples' losses: use {cure}, and multiply the "
    "clients' learning rate by the size of a batch to take the same steps"
)
_checked: weakref.WeakSet[tff.learning.models.FunctionalModel] = weakref.WeakSet()


def is_keras(model: Any) -> bool:
    """Returns whether a model comes from TFF's `from_keras_model`."""
    return bool(getattr(model, "_keras_model", ()) and getattr(model, "_loss_fns", ()))


def call_with_penalties(
    keras_model: tf.keras.Model, x: Any, training: bool
) -> tuple[Any, list[tf.Tensor]]:
    """Calls a Keras model; returns its output and the penalties of this call, scalars.

    The penalties come from regularizers of weights and activities, and from `add_loss`.
    In a graph, Keras also keeps the penalties of earlier calls.

    The output is a plain tensor, as in TFF: with the mask and the logits that a layer
    attaches to its output, Keras's losses would differ from TFF's.
    """
    earlier = keras_model.losses  # Held, so that no `id` is reused.
    numbers = {id(loss) for loss in earlier}
    output = tf.nest.map_structure(tf.identity, keras_model(x, training=training))
    return output, [loss for loss in keras_model.losses if id(loss) not in numbers]


def check_model(model: Any) -> None:
    """Raises a `ValueError` if a model would not train as it is defined.

    Args:
        model: a functional model, or the result of a `model_fn`.

    Raises:
        ValueError: no weight is trainable; a weight has fewer than 32 bits, which
            cannot hold sums over clients; a weight has a constraint; the loss is not a
            scalar, or changes if the batch contains each example twice, so that it is
            not a mean over the batch; a penalty is not a scalar; or TFF's
            `functional_model_from_keras` dropped a part of the Keras model. The message
            names the layer and the cure.
    """
    if not isinstance(model, tff.learning.models.FunctionalModel):
        _check_variables(model)
    elif model not in _checked:  # Several processes may use one model.
        _check_functional(model)
        _checked.add(model)


def _check_functional(model: tff.learning.models.FunctionalModel) -> None:
    keras_model = _keras_model_of_tff(model)
    if keras_model is not None:
        _check_dropped(keras_model, model.input_spec)
    trainable, non_trainable = model.initial_weights
    arrays = map(np.asarray, (*trainable, *non_trainable))
    types = {name: a.dtype for name, a in zip(weight_names(model), arrays)}
    _check_weights(types, len(trainable))
    x, y = tf.nest.map_structure(make_probe_array, split_batch(model.input_spec))

    def measure(output: Any, labels: Any) -> list[tf.Tensor]:
        twice = _duplicate_examples((output, labels))
        return [model.loss(output, labels), model.loss(*twice)]

    try:
        ((once, twice),) = evaluate_initial_model(model, x, y, output_fn=measure)
    except Exception:  # An error on made-up examples says nothing of real ones.
        return
    _check_loss("the loss", once, twice, "tf.reduce_mean in it")


def _check_variables(model: Any) -> None:
    if is_keras(model) and not model._keras_model.built:
        raise ValueError(
            "the Keras model has no weights yet: set input_shape of its first layer"
        )
    trainable, non_trainable = model.trainable_variables, model.non_trainable_variables
    if not all(isinstance(variable, tf.Variable) for variable in non_trainable):
        raise ValueError(
            "a layer has a table that adapt() filled, which cannot be sent: set the "
            "layer's vocabulary=..., or look words up before the model"
        )
    types = {v.name: tf.as_dtype(v.dtype) for v in (*trainable, *non_trainable)}
    _check_weights(types, len(trainable))
    for variable in trainable:
        constraint = getattr(variable, "constraint", None)
        if constraint is not None:
            raise ValueError(
                f"the weight {short_name(variable)} has a constraint "
                f"({type(constraint).__name__}), which a mean of the clients' models "
                "need not satisfy: remove it, or use a regularizer"
            )
    try:
        batch = tf.nest.map_structure(
            lambda spec: tf.constant(make_probe_array(spec)), model.input_spec
        )
        with _restore_values((*trainable, *non_trainable, *model.local_variables)):
            if is_keras(model):
                checks = _keras_losses(model, *split_batch(batch))
            else:
                # The same batch twice: a random model cannot be checked.
                batches = batch, batch, _duplicate_examples(batch)
                once, again, twice = [
                    model.forward_pass(each, training=False).loss for each in batches
                ]
                fixed = np.array_equal(once, again)
                checks = [("the loss", once, twice)] if fixed else []
    except Exception:  # An error on made-up examples says nothing of real ones.
        return
    for name, once, twice in checks:
        cure = "tf.keras.losses.Reduction.SUM_OVER_BATCH_SIZE"
        _check_loss(name, once, twice, cure if is_keras(model) else "tf.reduce_mean")


def _check_weights(types: Mapping[str, Any], num_trainable: int) -> None:
    if not num_trainable:
        raise ValueError("the model has no trainable weight: unfreeze a layer")
    for name, kind in types.items():
        kind = tf.as_dtype(kind)
        if kind.is_floating and kind.size < 4:
            raise ValueError(
                f"the weight {name.partition(':')[0]} is {kind.name}, which cannot "
                "hold sums over clients: build the layer with dtype='float32'"
            )


def _check_loss(name: str, once: Any, twice: Any, cure: str) -> None:
    once, twice = (np.asarray(loss, float) for loss in (once, twice))
    words = _MEAN.format(cure=cure)
    if once.shape:
        raise ValueError(f"{name} has the shape {once.shape}, {words}")
    finite = np.isfinite(once) and np.isfinite(twice)
    # The tolerance of half a percent allows for float16.
    if finite and not np.isclose(twice, once, rtol=5e-3, atol=0):
        times = f"{twice / once:.3g} times" if once else f"{twice:.3g} and not"
        raise ValueError(
            f"{name} of a batch with each example twice is {times} that of the batch, "
            f"{words}"
        )


def _keras_losses(model: Any, x: Any, y: Any) -> list[tuple[str, Any, Any]]:
    """Returns the arguments of `_check_loss` for each loss and penalty of a model."""
    _make_callable(model._keras_model)
    output, penalties = call_with_penalties(model._keras_model, x, False)
    checks = [
        (
            f"the penalty {number} of {_penalized_layers(model._keras_model)}",
            penalty,
            penalty,
        )
        for number, penalty in enumerate(penalties)
    ]
    several = len(model._loss_fns) > 1
    for number, loss_fn in enumerate(model._loss_fns):
        part = (output[number], y[number]) if several else (output, y)
        losses = [
            loss_fn(y_true=labels, y_pred=scores)
            for scores, labels in (part, _duplicate_examples(part))
        ]
        name = loss_fn.name or type(loss_fn).__name__
        checks.append((f"the loss {name}", *losses))
    return checks


def _duplicate_examples(batch: Any) -> Any:
    return tf.nest.map_structure(lambda t: tf.concat([t, t], 0), batch)


def _keras_model_of_tff(model: tff.learning.models.FunctionalModel) -> Any:
    """Returns the Keras model of a `functional_model_from_keras`, or None."""
    function = getattr(model._predict_on_batch_fn, "python_function", None)
    if not getattr(function, "__module__", "").startswith("tensorflow_federated."):
        return None
    keras_model = inspect.getclosurevars(function).nonlocals.get("keras_model")
    if isinstance(keras_model, tf.keras.Model) or keras_model is None:
        return keras_model
    return keras_model()


def _check_dropped(keras_model: tf.keras.Model, spec: Any) -> None:
    """Raises a `ValueError` if TFF's functional model drops a part of a Keras model."""
    seen = try_out(keras_model, spec)
    trainable = {id(v) for v in keras_model.trainable_variables}
    frozen = [
        v for v in keras_model.variables if v.trainable and id(v) not in trainable
    ]
    constrained = [v for v in keras_model.trainable_variables if v.constraint]
    reasons = {
        "the penalties of the layers": [seen.penalized] if seen.num_penalties else (),
        "the frozen weights": map(short_name, frozen),
        "the constraints of": map(short_name, constrained),
        "the changes in training of": seen.changed,
    }
    for words, names in reasons.items():
        if names := ", ".join(names):
            raise ValueError(
                "TFF's functional_model_from_keras does not keep "
                f"{words} {names}: use {MODEL_FN} instead"
            )


class Trial(NamedTuple):
    """The behavior of a Keras model on made-up examples.

    Attributes:
        output: the output outside of training, or None if it is random.
        num_penalties: the number of penalties in training.
        penalized: the names of the layers that add penalties.
        changed: the names of the weights that training changes without a gradient.
    """

    output: Any
    num_penalties: int
    penalized: str
    changed: Sequence[str]


def try_out(keras_model: tf.keras.Model, spec: Any) -> Trial:
    """Calls a Keras model on made-up examples and restores its weights."""
    x = tf.nest.map_structure(
        lambda s: tf.constant(make_probe_array(s)), split_batch(spec)[0]
    )
    _make_callable(keras_model)
    variables = keras_model.variables
    values_before = [variable.numpy() for variable in variables]
    with _restore_values(variables):
        output, _ = call_with_penalties(keras_model, x, False)
        again = keras_model(x, training=False)
        _, penalties = call_with_penalties(keras_model, x, True)
        penalized = _penalized_layers(keras_model)
        changed = [
            short_name(variable)
            for variable, value in zip(variables, values_before)
            if not np.array_equal(variable.numpy(), value, equal_nan=True)
        ]
    outputs = zip(tf.nest.flatten(output), tf.nest.flatten(again))
    fixed = all(np.array_equal(a, b, equal_nan=True) for a, b in outputs)
    return Trial(output if fixed else None, len(penalties), penalized, changed)


@contextlib.contextmanager
def _restore_values(variables: Iterable[tf.Variable]) -> Iterator[None]:
    """Restores variables after the block: any call may change a layer's counter."""
    saved_values = [(variable, variable.numpy()) for variable in variables]
    try:
        yield
    finally:
        for variable, value in saved_values:
            variable.assign(value)


def _make_callable(keras_model: tf.keras.Model) -> None:
    """Makes an eagerly built Keras model callable after another was built in a graph.

    Keras exchanges the base classes of a layer's class whenever it creates a layer.
    """
    for layer in keras_model._flatten_layers():
        type(layer).__new__(type(layer))


def _penalized_layers(keras_model: tf.keras.Model) -> str:
    """Returns the names of the layers that added penalties in the last call."""
    layers = keras_model._flatten_layers()
    kinds = ("_callable_losses", "_eager_losses", "_losses")
    names = [
        layer.name for layer in layers if any(getattr(layer, k, ()) for k in kinds)
    ]
    return ", ".join(dict.fromkeys(names))


def short_name(variable: Any) -> str:
    """Returns the name of a variable without its output number."""
    return variable.name.partition(":")[0]
