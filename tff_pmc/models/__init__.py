"""The papers' models as `tff.learning.models.FunctionalModel`s.

Images enter as they are stored (uint8) and are scaled inside the forward pass,
so that only bytes travel to the worker. Initial weights are NumPy arrays, a
pure function of the seed.

`MODELS` has the models by name, as settings: `MODELS["mnist_cnn"](seed=3).build()` is
`mnist_cnn(seed=3)`. `PackedModel` is what they are made as, and what makes a model of
your own say more of its training than TFF's class can; it is imported when it is first
used, because it imports TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import Any

from tff_pmc.models.functional import check_choice, weights_type
from tff_pmc.models.model_settings import (
    CONV_ACTIVATIONS,
    INITIALIZERS,
    MODELS,
    DroppingModelSettings,
    ModelSettings,
)
from tff_pmc.models.pmc_cnns import (
    BATCH_NORMS,
    celeba_cnn,
    celeba_reference_cnn,
    femnist_cnn,
    mnist_cnn,
)
from tff_pmc.models.small_cnns import (
    cifar_cnn,
    keras_mnist_cnn,
    keras_simple_convnet,
    obstacle_cnn,
)

__all__ = [
    "BATCH_NORMS",
    "CONV_ACTIVATIONS",
    "INITIALIZERS",
    "MODELS",
    "DroppingModelSettings",
    "ModelSettings",
    "PackedModel",
    "celeba_cnn",
    "celeba_reference_cnn",
    "check_choice",
    "cifar_cnn",
    "femnist_cnn",
    "keras_mnist_cnn",
    "keras_simple_convnet",
    "mnist_cnn",
    "obstacle_cnn",
    "weights_type",
]


def __getattr__(name: str) -> Any:
    if name == "PackedModel":
        module = importlib.import_module("tff_pmc.models.tff_types.packed_model")
        return module.PackedModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
