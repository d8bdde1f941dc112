"""A trained model in a folder: its weights, and a SavedModel that needs no package.

    weights.npz    the arrays by name, trainable ones first, as `--initial_weights` reads
    saved_model/   TensorFlow's SavedModel, whose signature `serving_default` gives the
                   model's output, `scores`, for a batch of inputs
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tff_pmc._lazy import tf

WEIGHTS, SAVED_MODEL = "weights.npz", "saved_model"
"""The names of the file and of the folder."""


def save_model(model: Any, weights: Any, folder: str) -> None:
    """Writes a trained model into a folder, which is made if need be.

        save_model(model, process.get_model_weights(state), "model")
        served = tf.saved_model.load("model/saved_model").signatures["serving_default"]
        scores = served(x=tf.constant(images))["scores"]

    Args:
        model: a `tff.learning.models.FunctionalModel`.
        weights: the `tff.learning.models.ModelWeights` after training.
        folder: where to; files of these names are replaced.

    The inputs of the signature are `x`, or of a model with several inputs their own
    names. Of a model with several outputs each has its name, or `scores_0` and so on.
    """
    trainable, others = tuple(weights.trainable), tuple(weights.non_trainable)
    arrays = [np.asarray(one) for one in (*trainable, *others)]
    os.makedirs(folder, exist_ok=True)
    names = weight_names(model)
    np.savez(os.path.join(folder, WEIGHTS), **dict(zip(names, arrays)))
    served = _Served(model, trainable, others)
    path = os.path.join(folder, SAVED_MODEL)
    tf.saved_model.save(served, path, signatures={"serving_default": served.serve})


def weight_names(model: Any) -> list[str]:
    """Returns the names of a model's weights, trainable ones first.

    They are those of the layers where the model names them, as those of Keras do, and
    else `trainable_0`, `non_trainable_0` and so on.
    """
    known = getattr(model, "weight_names", None)
    if known:
        return [*known]
    return [
        f"{kind}_{number}"
        for kind, part in zip(("trainable", "non_trainable"), model.initial_weights)
        for number in range(len(part))
    ]


def _Served(model: Any, trainable: Any, others: Any) -> Any:  # noqa: N802
    """Returns a `tf.Module` that holds the weights and gives the model's output."""
    spec = model.input_spec
    x_spec = spec["x"] if isinstance(spec, dict) else tuple(spec)[0]
    module = tf.Module()
    module.trainable_weights = [tf.Variable(one) for one in trainable]
    module.other_weights = [
        tf.Variable(one, trainable=False) for one in others
    ]

    def serve(x: Any) -> dict[str, Any]:
        own = tuple(module.trainable_weights), tuple(module.other_weights)
        weights = tf.nest.map_structure(tf.convert_to_tensor, own)
        output = model.predict_on_batch(weights, x, False)
        if isinstance(output, dict):
            return dict(output)
        outputs = tf.nest.flatten(output)
        if len(outputs) == 1:
            return {"scores": outputs[0]}
        return {f"scores_{number}": one for number, one in enumerate(outputs)}

    x_spec = tf.nest.map_structure(
        lambda one: tf.TensorSpec(one.shape, one.dtype), x_spec
    )
    if isinstance(x_spec, tf.TensorSpec):
        x_spec = tf.TensorSpec(x_spec.shape, x_spec.dtype, name="x")
    module.serve = tf.function(serve, input_signature=[x_spec])
    return module
