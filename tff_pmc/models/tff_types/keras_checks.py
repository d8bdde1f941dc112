"""What is looked at in a model before its first round, and what is refused there.

`check_model` looks at every model that comes in, as a functional model or by a
`model_fn`: what could not act in training is refused in one line.
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
"""What a message calls a `model_fn`."""

_MEAN = (
    "but it has to be the mean of the examples' losses: use {cure}, and multiply the "
    "clients' learning rate by the size of a batch to take the same steps"
)
_checked: weakref.WeakSet[tff.learning.models.FunctionalModel] = weakref.WeakSet()


def is_keras(model: Any) -> bool:
    """Returns whether a model is what TFF's `from_keras_model` returns."""
    return bool(getattr(model, "_keras_model", ()) and getattr(model, "_loss_fns", ()))


def call_with_penalties(
    keras_model: tf.keras.Model, x: Any, training: bool
) -> tuple[Any, list[tf.Tensor]]:
    """Calls a Keras model; also returns the penalties of this call, scalars.

    They are those of regularizers of weights and activities, and of `add_loss`. In a
    graph, Keras keeps the penalties of earlier calls beside them.

    The output is a plain tensor, as in TFF: Keras's losses would read the mask and the
    logits that a layer attaches to its output, and then differ from TFF's.
    """
    earlier = keras_model.losses  # Kept, so that no `id` is used again.
    numbers = {id(loss) for loss in earlier}
    output = tf.nest.map_structure(tf.identity, keras_model(x, training=training))
    return output, [loss for loss in keras_model.losses if id(loss) not in numbers]


def check_model(model: Any) -> None:
    """Refuses a model that would not train as it says.

    Args:
        model: a functional model, or what a `model_fn` returns.

    Raises:
        ValueError: no weight is trained; weights have less than 32 bits, which cannot
            hold sums over clients; a weight has a constraint; the loss is not one
            number, or not a mean over the batch, as the loss of each example twice
            shows; a penalty is not one number; or TFF's `functional_model_from_keras`
            dropped what the Keras model has. The line names the layer and the cure.
    """
    if not isinstance(model, tff.learning.models.FunctionalModel):
        _check_variables(model)
    elif model not in _checked:  # Several processes are built of one.
        _check_functional(model)
        _checked.add(model)


def _check_functional(model: tff.learning.models.FunctionalModel) -> None:
    keras_model = _keras_model_of_tff(model)
    if keras_model is not None:
        _check_dropped(keras_model, model.input_spec)
    trainable, others = model.initial_weights
    arrays = map(np.asarray, (*trainable, *others))
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
            "the Keras model has no weights yet: give its first layer an input_shape"
        )
    trainable, others = model.trainable_variables, model.non_trainable_variables
    if not all(isinstance(variable, tf.Variable) for variable in others):
        raise ValueError(
            "a layer has a table that adapt() filled, which cannot be sent: give the "
            "layer its vocabulary=..., or look words up before the model"
        )
    types = {v.name: tf.as_dtype(v.dtype) for v in (*trainable, *others)}
    _check_weights(types, len(trainable))
    for variable in trainable:
        constraint = getattr(variable, "constraint", None)
        if constraint is not None:
            raise ValueError(
                f"the weight {short_name(variable)} has a constraint "
                f"({type(constraint).__name__}), which a mean of the clients' models "
                "need not satisfy: leave it out, or use a regularizer"
            )
    try:
        batch = tf.nest.map_structure(
            lambda spec: tf.constant(make_probe_array(spec)), model.input_spec
        )
        with _restore_values((*trainable, *others, *model.local_variables)):
            if is_keras(model):
                checks = _keras_losses(model, *split_batch(batch))
            else:
                # The same batch twice: of a random model nothing can be said.
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
        raise ValueError("the model has no weight to train: all layers are frozen")
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
    # Half a percent: of float16.
    if finite and not np.isclose(twice, once, rtol=5e-3, atol=0):
        times = f"{twice / once:.3g} times" if once else f"{twice:.3g} and not"
        raise ValueError(
            f"{name} of a batch with each example twice is {times} that of the batch, "
            f"{words}"
        )


def _keras_losses(model: Any, x: Any, y: Any) -> list[tuple[str, Any, Any]]:
    """Returns what `_check_loss` takes of each loss, and each penalty, of a model."""
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
    """Returns the model that `functional_model_from_keras` was given; None for none."""
    function = getattr(model._predict_on_batch_fn, "python_function", None)
    if not getattr(function, "__module__", "").startswith("tensorflow_federated."):
        return None
    keras_model = inspect.getclosurevars(function).nonlocals.get("keras_model")
    if isinstance(keras_model, tf.keras.Model) or keras_model is None:
        return keras_model
    return keras_model()


def _check_dropped(keras_model: tf.keras.Model, spec: Any) -> None:
    """Refuses what TFF's functional models of Keras drop or get wrong."""
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
                f"{words} {names}: give {MODEL_FN} instead"
            )


class Trial(NamedTuple):
    """What a Keras model does on made-up examples."""

    output: Any  # None where it is random.
    num_penalties: int  # In training.
    penalized: str  # The layers that add them.
    changed: Sequence[str]  # The weights that training changes, without a gradient.


def try_out(keras_model: tf.keras.Model, spec: Any) -> Trial:
    """Calls a Keras model on made-up examples; its weights stay as they are."""
    x = tf.nest.map_structure(
        lambda s: tf.constant(make_probe_array(s)), split_batch(spec)[0]
    )
    _make_callable(keras_model)
    variables = keras_model.variables
    before = [variable.numpy() for variable in variables]
    with _restore_values(variables):
        output, _ = call_with_penalties(keras_model, x, False)
        again = keras_model(x, training=False)
        _, penalties = call_with_penalties(keras_model, x, True)
        penalized = _penalized_layers(keras_model)
        changed = [
            short_name(variable)
            for variable, value in zip(variables, before)
            if not np.array_equal(variable.numpy(), value, equal_nan=True)
        ]
    outputs = zip(tf.nest.flatten(output), tf.nest.flatten(again))
    fixed = all(np.array_equal(a, b, equal_nan=True) for a, b in outputs)
    return Trial(output if fixed else None, len(penalties), penalized, changed)


@contextlib.contextmanager
def _restore_values(variables: Iterable[tf.Variable]) -> Iterator[None]:
    """Restores variables: a layer may change its own in any call, as a counter does."""
    before = [(variable, variable.numpy()) for variable in variables]
    try:
        yield
    finally:
        for variable, value in before:
            variable.assign(value)


def _make_callable(keras_model: tf.keras.Model) -> None:
    """Makes a Keras model that was built eagerly callable after a graph built others.

    Keras exchanges the base classes of a layer's class whenever it makes a layer.
    """
    for layer in keras_model._flatten_layers():
        type(layer).__new__(type(layer))


def _penalized_layers(keras_model: tf.keras.Model) -> str:
    """Names the layers that add penalties, after a call."""
    layers = keras_model._flatten_layers()
    kinds = ("_callable_losses", "_eager_losses", "_losses")
    names = [one.name for one in layers if any(getattr(one, k, ()) for k in kinds)]
    return ", ".join(dict.fromkeys(names))


def short_name(variable: Any) -> str:
    """Returns the name of a variable without its number in a graph."""
    return variable.name.partition(":")[0]
