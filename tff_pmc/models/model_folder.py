"""A trained model in a folder: its weights, and a SavedModel that needs no package.

model.json     what a program needs to use the model: shape and type of the inputs; for
               the model of a run also the inputs' names, in order, how they are scaled,
               the classes, the data set, the round and the commit
weights.npz    the arrays by name, as `--initial_weights` reads them: trainable ones
               first, but for a Keras model in the order of its `get_weights`
round.txt      the round, only for the best model
saved_model/   TensorFlow's SavedModel, whose signature `serving_default` returns the
               model's output, `scores`, for a batch of inputs
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tff_pmc._lazy import tf

MODEL, BEST_MODEL = "model", "model_best"
"""The folders of a run's models: of the last round, and of the best round."""

WEIGHTS, SAVED_MODEL = "weights.npz", "saved_model"
"""The names of the file of weights and of the SavedModel's folder."""

ABOUT = "model.json"
"""The name of the file that describes the model."""

_ROUND = "round.txt"
_NO_SCALING = "none before the model, which takes inputs as the data set has them"


def save_model(
    model: Any,
    weights: Any,
    folder: str,
    round_num: int = 0,
    about: Mapping[str, Any] = types.MappingProxyType({}),
) -> None:
    """Writes a trained model into a folder, which it creates if needed.

        save_model(model, process.get_model_weights(state), "model")
        served = tf.saved_model.load("model/saved_model").signatures["serving_default"]
        scores = served(x=tf.constant(images))["scores"]

    Args:
        model: a `tff.learning.models.FunctionalModel`.
        weights: the `tff.learning.models.ModelWeights` after training.
        folder: the path of the folder; existing files are replaced.
        round_num: the round of this model, written into `round.txt`; 0, the default,
            writes no such file.
        about: further entries of `model.json`, as JSON, such as `inputs` and `classes`,
            the names in order, and `scaling`, a description; by default none.

    The input of the signature is `x`; several inputs have their names. Several outputs
    have their names, or `scores_0` and so on.
    """
    trainable, non_trainable = tuple(weights.trainable), tuple(weights.non_trainable)
    arrays = [np.asarray(array) for array in (*trainable, *non_trainable)]
    os.makedirs(folder, exist_ok=True)
    round_path = os.path.join(folder, _ROUND)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(round_path)  # Removes the round of an earlier model.
    named_arrays = [*zip(weight_names(model), arrays)]
    order = getattr(model, "file_order", ()) or range(len(named_arrays))
    np.savez(
        os.path.join(folder, WEIGHTS), **dict(named_arrays[index] for index in order)
    )
    spec = _input_spec(model)
    description = {
        "input_shape": tf.nest.map_structure(
            lambda tensor_spec: tensor_spec.shape.as_list(), spec
        ),
        "input_type": tf.nest.map_structure(
            lambda tensor_spec: tensor_spec.dtype.name, spec
        ),
        **about,
    }
    description["scaling"] = description.get("scaling") or _NO_SCALING
    with open(os.path.join(folder, ABOUT), "w", encoding="utf-8") as file:
        json.dump(description, file, indent=2, ensure_ascii=False)
        file.write("\n")
    path = os.path.join(folder, SAVED_MODEL)
    shutil.rmtree(path, ignore_errors=True)
    _write_saved_model(model, trainable, non_trainable, path)
    if round_num:  # Last, so that a folder with this file is complete.
        with open(round_path, "w", encoding="utf-8") as file:
            file.write(f"{round_num}\n")


def read_round(folder: str) -> int:
    """Returns the round of the model in a folder, or 0 if none is recorded."""
    try:
        with open(os.path.join(folder, _ROUND), encoding="utf-8") as file:
            return int(file.read())
    except (FileNotFoundError, ValueError):
        return 0


def read_vocabulary(weights_path: str) -> Any:
    """Returns the vocabulary of the model of a file of weights, as JSON, or None.

    It is in the `model.json` next to the file, if the model is one of text.
    """
    try:
        path = os.path.join(os.path.dirname(weights_path), ABOUT)
        with open(path, encoding="utf-8") as file:
            return json.load(file).get("vocabulary") or None
    except (OSError, ValueError, AttributeError):  # The file is of another program.
        return None


def weight_names(model: Any) -> list[str]:
    """Returns the names of a model's weights, trainable ones first.

    They contain the layers' names if the model knows them, as Keras models do;
    otherwise they are `trainable_0`, `non_trainable_0` and so on.
    """
    names = getattr(model, "weight_names", None)
    if names:
        return [*names]
    return [
        f"{kind}_{number}"
        for kind, part in zip(("trainable", "non_trainable"), model.initial_weights)
        for number in range(len(part))
    ]


def _input_spec(model: Any) -> Any:
    """Returns the `tf.TensorSpec` of a model's input, or a structure of several."""
    spec = model.input_spec
    return spec["x"] if isinstance(spec, Mapping) else spec[0]


def order_arrays(model: Any, arrays: Mapping[str, Any]) -> list[Any]:
    """Returns the arrays of a file in the order of a model, trainable ones first.

    Matches them by the model's names of its weights. If the file has other names, its
    arrays must have the order of the model's files.
    """
    names = weight_names(model)
    if {*names} == {*arrays}:
        return [arrays[name] for name in names]
    file_arrays = list(arrays.values())
    order = getattr(model, "file_order", ())
    if len(order) != len(file_arrays):
        return file_arrays
    return [file_arrays[index] for index in np.argsort(order)]


def _write_saved_model(
    model: Any, trainable: Any, non_trainable: Any, path: str
) -> None:
    # In a TensorFlow 1 graph, because TFF's functional models of Keras need one.
    # TensorFlow warns that each of these functions is deprecated.
    with (
        _suppress_warnings(),
        tf.Graph().as_default(),
        tf.compat.v1.Session() as session,
    ):
        inputs = tf.nest.map_structure(
            lambda tensor_spec: tf.compat.v1.placeholder(
                tensor_spec.dtype, tensor_spec.shape
            ),
            _input_spec(model),
        )
        variables = [
            tf.compat.v1.get_variable(
                f"weight_{number}",
                array.shape,
                array.dtype,
                trainable=number < len(trainable),
            )
            for number, array in enumerate(
                map(np.asarray, (*trainable, *non_trainable))
            )
        ]
        for variable, value in zip(variables, (*trainable, *non_trainable)):
            variable.load(np.asarray(value), session)
        split = len(trainable)
        weights = tuple(variables[:split]), tuple(variables[split:])
        weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
        output = model.predict_on_batch(weights, inputs, False)
        tf.compat.v1.saved_model.simple_save(
            session, path, _name_tensors("x", inputs), _name_tensors("scores", output)
        )


@contextlib.contextmanager
def _suppress_warnings() -> Iterator[None]:
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def _name_tensors(name: str, tensors: Any) -> dict[str, Any]:
    """Returns tensors by name: their own names, or NAME, or NAME_0 and so on."""
    if isinstance(tensors, Mapping):
        return dict(tensors)
    flat = tf.nest.flatten(tensors)
    if len(flat) == 1:
        return {name: flat[0]}
    return {f"{name}_{number}": tensor for number, tensor in enumerate(flat)}
