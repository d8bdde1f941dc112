"""Keras models in training: functional with `--model`, or from a `model_fn`.

With `--model` a Keras model becomes a `PackedModel`; in a program, `KerasWithPenalties`
trains the model of a `model_fn`. `keras_checks` checks both before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from leaf_data.errors import error_summary, shorten
from tff_pmc.models.positions import select_counted
from tff_pmc.models.tff_types.keras_checks import (
    MODEL_FN,
    Trial,
    call_with_penalties,
    check_model,
    is_keras,
    short_name,
    try_out,
)
from tff_pmc.models.tff_types.keras_metrics import (
    metric_constructors,
    sees_counted,
    update_metric,
)
from tff_pmc.models.tff_types.packed_model import (
    PackedModel,
    evaluate_initial_model,
    make_probe_array,
    split_batch,
)


def as_functional(model: Any) -> tff.learning.models.FunctionalModel:
    """Returns a functional model as it is, or converts the Keras model of a `model_fn`.

    Raises:
        ValueError: the model is neither, cannot be converted, or fails `check_model`.
    """
    if callable(model) and not isinstance(model, tf.keras.Model):
        with warnings.catch_warnings():
            # TFF warns for its own training; here such layers are an error or frozen.
            warnings.filterwarnings("ignore", "Batch Normalization contains")
            model = model()
    if isinstance(model, tff.learning.models.FunctionalModel):
        check_model(model)
        return model
    if not is_keras(model) or len(model._loss_fns) != 1:
        raise ValueError(
            "build must return a FunctionalModel, or a function that returns either "
            "one or a from_keras_model(...) with a single loss; it returned a "
            f"{type(model).__name__}"
        )
    check_model(model)
    return _make_functional(model)


class KerasWithPenalties(tff.learning.models.VariableModel):
    """A TFF model of Keras in whose training all penalties act.

    TFF's `forward_pass` calls the model in an inner graph, from which penalties that
    depend on activities cannot be read. As in Keras, training minimizes the loss plus
    the penalties. Outside of training the loss is that of the examples alone, which
    evaluations and criteria need.
    """

    def __init__(self, model: Any) -> None:
        """Wraps the result of `from_keras_model`."""
        self._model = model

    trainable_variables = property(lambda self: self._model.trainable_variables)
    non_trainable_variables = property(lambda self: self._model.non_trainable_variables)
    local_variables = property(lambda self: self._model.local_variables)
    input_spec = property(lambda self: self._model.input_spec)

    def predict_on_batch(self, x: Any, training: bool = True) -> Any:
        """Returns the model's output on a batch of inputs."""
        return self._model.predict_on_batch(x, training)

    @tf.function
    def forward_pass(
        self, batch_input: Any, training: bool = True
    ) -> tff.learning.models.BatchOutput:
        """Returns loss, output and size of a batch, and updates the metrics."""
        x, y = split_batch(batch_input)
        output, penalties = call_with_penalties(self._model._keras_model, x, training)
        loss = _keras_loss(self._model, output, y)
        if training and penalties:
            loss += tf.add_n([tf.cast(penalty, loss.dtype) for penalty in penalties])
        for metric in self._model.get_metrics():
            update_metric(metric, y, output)
        first = tf.nest.flatten(x)[0]
        ragged = isinstance(first, tf.RaggedTensor)
        num_examples = first.nrows() if ragged else tf.shape(first)[0]
        return tff.learning.models.BatchOutput(loss, output, num_examples)

    def report_local_unfinalized_metrics(self) -> Any:
        """Returns the sums of the metrics by name."""
        return self._model.report_local_unfinalized_metrics()

    def metric_finalizers(self) -> Any:
        """Returns the functions that compute metrics from their sums, by name."""
        return self._model.metric_finalizers()

    def reset_metrics(self) -> None:
        """Resets the metrics."""
        self._model.reset_metrics()


def with_penalties(model: Any) -> Any:
    """Wraps a Keras model so that its penalties act; returns other models unchanged."""
    return KerasWithPenalties(model) if is_keras(model) else model


def _keras_loss(model: Any, output: Any, y: Any) -> tf.Tensor:
    """Computes the loss of a batch as TFF does, without penalties."""
    loss_fns, factors = model._loss_fns, model._loss_weights
    if len(loss_fns) == 1:
        return _loss_of_counted(loss_fns[0], output, y)
    losses = [
        factor * tf.cast(loss_fn(y_true=y[i], y_pred=output[i]), tf.float32)
        for i, (loss_fn, factor) in enumerate(zip(loss_fns, factors))
    ]
    return tf.add_n(losses)


def _loss_of_counted(loss_fn: Any, output: Any, y: Any, weight: Any = None) -> Any:
    """Computes the loss of a batch, or of its positions that count."""
    if sees_counted(loss_fn):
        output, y = select_counted(output, y)
    return loss_fn(y_true=y, y_pred=output, sample_weight=weight)


def _make_functional(model: Any) -> PackedModel:
    """Converts a `from_keras_model(...)` with a single loss to a functional model.

    A copy of the Keras model reads each weight from a tensor instead of a variable, as
    in TFF's `functional_model_from_keras`. Unlike there, layers may be frozen, nested
    or in any order, and their penalties act.
    """
    keras_model, loss_fn = model._keras_model, model._loss_fns[0]
    spec = split_batch(model.input_spec)
    _check_copied(keras_model)
    try:
        trial = try_out(keras_model, spec)
    except Exception as error:
        raise ValueError(
            f"the model fails on examples: {error_summary(error)}"
        ) from error
    if trial.changed:
        raise ValueError(
            f"training changes {', '.join(trial.changed)} without a gradient, which "
            "--model does not support: freeze the layer (trainable=False), use "
            f"another, such as GroupNormalization, or train {MODEL_FN} in a program"
        )
    variables = keras_model.variables
    indices = {id(variable): index for index, variable in enumerate(variables)}
    split = (keras_model.trainable_variables, keras_model.non_trainable_variables)
    flat = [variable for part in split for variable in part]
    # The index in Keras's order of each weight in TFF's order, trainable ones first.
    order = [indices[id(variable)] for variable in flat]
    creation_order = _creation_order(keras_model)
    file_order = tuple(int(index) for index in np.argsort(order))

    @tf.function
    def forward(model_weights, x, training):
        with tf.init_scope():
            if tf.executing_eagerly():
                raise ValueError(
                    "a model that was converted from Keras predicts only within TFF's "
                    "computations: elsewhere use its saved_model"
                )
        weights = tf.nest.flatten(model_weights)
        in_keras_order = [weights[position] for position in file_order]
        tensors = iter([in_keras_order[index] for index in creation_order])
        with tf.variable_creator_scope(lambda _, **__: next(tensors)):
            copy = tf.keras.models.clone_model(keras_model)
        output, penalties = call_with_penalties(copy, x, training)
        if training and len(penalties) != trial.num_penalties:
            raise ValueError(
                f"the model has {trial.num_penalties} penalties ({trial.penalized}), "
                f"but a copy of its layers has {len(penalties)}: add each to a layer, "
                "as a regularizer or by add_loss in its call"
            )
        penalty_terms = [tf.cast(penalty, tf.float32) for penalty in penalties]
        return output, tf.add_n(penalty_terms) if penalty_terms else tf.constant(0.0)

    @tf.function
    def predict_on_batch(model_weights, x, training=True):
        if training and trial.num_penalties:
            raise ValueError(
                f"the penalties of {trial.penalized} act only for packed clients: do "
                "not set packed=False"
            )
        return forward(model_weights, x, training)[0]

    def forward_in_training(trainable, non_trainable, x, seed):
        output, penalty = forward((trainable, non_trainable), x, True)
        return output, non_trainable, penalty

    def loss(output, label, sample_weight=None):
        return _loss_of_counted(loss_fn, output, label, sample_weight)

    metrics = metric_constructors(model)
    create_metric_fns = tff.learning.metrics.create_functional_metric_fns
    functional = PackedModel(
        initial_weights=tuple(tuple(v.numpy() for v in part) for part in split),
        predict_on_batch_fn=predict_on_batch,
        loss_fn=loss,
        input_spec=spec,
        forward_in_training=forward_in_training if trial.num_penalties else None,
        metrics_fns=metrics and create_metric_fns(metrics),
        weight_names=_make_unique(map(short_name, flat)),
        file_order=file_order,
    )
    _check_equal(functional, forward, trial)
    return functional


def _check_copied(keras_model: tf.keras.Model) -> None:
    """Raises a `ValueError` if a copy of a Keras model cannot read tensors."""
    for layer in keras_model._flatten_layers():
        is_model = isinstance(layer, tf.keras.Model)
        if type(layer).__name__ == "AddLoss" or (is_model and layer._callable_losses):
            raise ValueError(
                f"{keras_model.name}.add_loss(...) is not part of a layer, so that "
                "--model cannot copy it: add the penalty to a layer, as a regularizer "
                f"or by add_loss in its call, or train {MODEL_FN} in a program"
            )
        has_weights = layer.weights and not is_model
        if has_weights and layer.compute_dtype != layer.variable_dtype:
            raise ValueError(
                f"the layer {layer.name} computes in {layer.compute_dtype} and has "
                f"weights in {layer.variable_dtype}, which --model does not support: "
                f"set dtype='float32', or train {MODEL_FN} in a program"
            )


def _creation_order(keras_model: tf.keras.Model) -> list[int]:
    """Returns the indices in Keras's order of the weights that a copy creates."""
    created: list[Any] = []

    def record(create: Callable[..., Any], **options: Any) -> Any:
        created.append(create(**options))
        return created[-1]

    with tf.Graph().as_default(), tf.variable_creator_scope(record):
        try:
            copy = tf.keras.models.clone_model(keras_model)
        except Exception as error:  # Keras cannot copy all layers.
            words = f"Keras cannot copy the model: {error_summary(error)}"
            raise ValueError(words) from error
        indices = {id(variable): index for index, variable in enumerate(copy.variables)}
        shapes = [variable.shape for variable in copy.variables]
    shapes_differ = shapes != [variable.shape for variable in keras_model.variables]
    if shapes_differ or indices.keys() != {id(variable) for variable in created}:
        raise ValueError(
            "a copy of the Keras model has other weights than the model: check that "
            "the get_config of each layer has all its arguments, and that no layer "
            "uses weights of another"
        )
    return [indices[id(variable)] for variable in created]


def _check_equal(model: PackedModel, forward: Callable[..., Any], trial: Trial) -> None:
    """Raises a `ValueError` if the outputs differ from those of the Keras model."""
    x = tf.nest.map_structure(make_probe_array, split_batch(model.input_spec)[0])
    try:
        (output,) = evaluate_initial_model(model, x)
        if trial.num_penalties:
            with tf.Graph().as_default():
                arrays = (model.initial_weights, x)
                forward(*tf.nest.map_structure(tf.constant, arrays), True)
    except Exception as error:
        words = str(getattr(error, "message", error)).strip()
        if words.startswith("in user code"):  # The error follows a list of calls.
            words = words.splitlines()[-1]
        words = f"a copy of the Keras model fails: {shorten(words)}"
        raise ValueError(words) from error
    if trial.output is None:
        return
    pairs = zip(tf.nest.flatten(output), tf.nest.flatten(trial.output))
    if not all(_is_close(a, np.asarray(b)) for a, b in pairs):
        raise ValueError(
            "a copy of the Keras model returns other outputs than the model: check "
            "that each layer's get_config has all its arguments, and what it was "
            "adapted to"
        )


def _is_close(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    scale = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    return np.allclose(a, b, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)


def _make_unique(names: Iterable[str]) -> list[str]:
    """Numbers repeated names: `dense/kernel`, `dense/kernel_1`."""
    different: list[str] = []
    for name in names:
        number, unique = 0, name
        while unique in different:
            number += 1
            unique = f"{name}_{number}"
        different.append(unique)
    return different
