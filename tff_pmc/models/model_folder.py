"""A trained model in a folder: its weights, and a SavedModel that needs no package.

model.json     what a program has to know to use it: shape and type of the inputs; of a
               run also their names, in order, how they are scaled, the classes, the
               data set, the round and the commit
weights.npz    the arrays by name, as `--initial_weights` reads them: trainable ones
               first, and for a model of Keras in the order of its `get_weights`
round.txt      of the best model alone: the round
saved_model/   TensorFlow's SavedModel, whose signature `serving_default` gives the
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
"""The folders of a run's models: that of the last round, and with `--keep=best`."""

WEIGHTS, SAVED_MODEL = "weights.npz", "saved_model"
"""The names of the file and of the folder."""

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
    """Writes a trained model into a folder, which is made if need be.

        save_model(model, process.get_model_weights(state), "model")
        served = tf.saved_model.load("model/saved_model").signatures["serving_default"]
        scores = served(x=tf.constant(images))["scores"]

    Args:
        model: a `tff.learning.models.FunctionalModel`.
        weights: the `tff.learning.models.ModelWeights` after training.
        folder: where to; files of these names are replaced.
        round_num: the round after which the model is this one, written into
            `round.txt`; 0 writes none.
        about: what else `model.json` has, as JSON: `inputs` and `classes`, their names
            in order, `scaling`, in words, and what you like; by default nothing.

    The inputs of the signature are `x`, or of a model with several inputs their
    names. Of a model with several outputs each has its name, or `scores_0` and so on.
    """
    trainable, others = tuple(weights.trainable), tuple(weights.non_trainable)
    arrays = [np.asarray(one) for one in (*trainable, *others)]
    os.makedirs(folder, exist_ok=True)
    number = os.path.join(folder, _ROUND)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(number)  # That of a model of before.
    named = [*zip(weight_names(model), arrays)]
    order = getattr(model, "file_order", ()) or range(len(named))
    np.savez(os.path.join(folder, WEIGHTS), **dict(named[place] for place in order))
    spec = _input_spec(model)
    description = {
        "input_shape": tf.nest.map_structure(lambda one: one.shape.as_list(), spec),
        "input_type": tf.nest.map_structure(lambda one: one.dtype.name, spec),
        **about,
    }
    description["scaling"] = description.get("scaling") or _NO_SCALING
    with open(os.path.join(folder, ABOUT), "w", encoding="utf-8") as file:
        json.dump(description, file, indent=2, ensure_ascii=False)
        file.write("\n")
    path = os.path.join(folder, SAVED_MODEL)
    shutil.rmtree(path, ignore_errors=True)
    _write_saved_model(model, trainable, others, path)
    if round_num:  # When all else is there.
        with open(number, "w", encoding="utf-8") as file:
            file.write(f"{round_num}\n")


def read_round(folder: str) -> int:
    """Returns the round of the model in a folder; 0 where none is recorded."""
    try:
        with open(os.path.join(folder, _ROUND), encoding="utf-8") as file:
            return int(file.read())
    except (FileNotFoundError, ValueError):
        return 0


def weight_names(model: Any) -> list[str]:
    """Returns the names of a model's weights, trainable ones first.

    They are those of its layers where they are known, as of models of Keras, and else
    `trainable_0`, `non_trainable_0` and so on.
    """
    known = getattr(model, "weight_names", None)
    if known:
        return [*known]
    return [
        f"{kind}_{number}"
        for kind, part in zip(("trainable", "non_trainable"), model.initial_weights)
        for number in range(len(part))
    ]


def _input_spec(model: Any) -> Any:
    """Returns the `tf.TensorSpec` of a model's inputs, or a structure of several."""
    spec = model.input_spec
    return spec["x"] if isinstance(spec, Mapping) else spec[0]


def order_arrays(model: Any, arrays: Mapping[str, Any]) -> list[Any]:
    """Returns the arrays of a file in the order of a model, trainable ones first.

    They are matched by the names that the model gives its weights. If a file has other
    names, as of arrays from elsewhere, they are in the order of the model's files.
    """
    names = weight_names(model)
    if {*names} == {*arrays}:
        return [arrays[name] for name in names]
    in_file = list(arrays.values())
    order = getattr(model, "file_order", ())
    if len(order) != len(in_file):
        return in_file
    return [in_file[place] for place in np.argsort(order)]


def _write_saved_model(model: Any, trainable: Any, others: Any, path: str) -> None:
    # In a graph of TensorFlow 1, because TFF's functional models of Keras run nowhere
    # else; TensorFlow warns of each of these functions.
    with (
        _suppress_warnings(),
        tf.Graph().as_default(),
        tf.compat.v1.Session() as session,
    ):
        inputs = tf.nest.map_structure(
            lambda one: tf.compat.v1.placeholder(one.dtype, one.shape),
            _input_spec(model),
        )
        variables = [
            tf.compat.v1.get_variable(
                f"weight_{number}",
                array.shape,
                array.dtype,
                trainable=number < len(trainable),
            )
            for number, array in enumerate(map(np.asarray, (*trainable, *others)))
        ]
        for variable, value in zip(variables, (*trainable, *others)):
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
    """Returns tensors by names: those they have, or NAME, or NAME_0 and so on."""
    if isinstance(tensors, Mapping):
        return dict(tensors)
    flat = tf.nest.flatten(tensors)
    if len(flat) == 1:
        return {name: flat[0]}
    return {f"{name}_{number}": one for number, one in enumerate(flat)}
