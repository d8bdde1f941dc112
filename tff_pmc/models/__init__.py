"""The papers' models, and those of LEAF, as `tff.learning.models.FunctionalModel`s.

Images are inputs as they are stored (uint8); the forward pass scales them, so that only
bytes are sent to the worker. Initial weights are NumPy arrays, a pure function of
the seed.

`MODELS` contains the models by name, as settings: `MODELS["mnist_cnn"](seed=3).build()`
is `mnist_cnn(seed=3)`. They are `PackedModel`s. Use `PackedModel` for a model of your
own that needs training hooks which TFF's class lacks; it is imported on first use,
because it imports TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tff_pmc.models.functional import check_choice, weights_type
from tff_pmc.models.leaf_models import (
    bag_of_words,
    reddit_lstm,
    softmax_regression,
    stacked_lstm,
)
from tff_pmc.models.model_settings import (
    CONV_ACTIVATIONS,
    INITIALIZERS,
    MODELS,
    DropoutModelSettings,
    DroppingModelSettings,
    ModelSettings,
    fitting_model,
)
from tff_pmc.models.pmc_cnns import (
    BATCH_NORMS,
    celeba_cnn,
    celeba_reference_cnn,
    femnist_cnn,
    mnist_cnn,
)
from tff_pmc.models.positions import mean_counted, select_counted
from tff_pmc.models.small_cnns import (
    cifar_cnn,
    keras_mnist_cnn,
    keras_simple_convnet,
    obstacle_cnn,
)

if TYPE_CHECKING:
    from tff_pmc.models.tff_types.packed_model import PackedModel

__all__ = [
    "BATCH_NORMS",
    "CONV_ACTIVATIONS",
    "INITIALIZERS",
    "MODELS",
    "DropoutModelSettings",
    "DroppingModelSettings",
    "ModelSettings",
    "PackedModel",
    "bag_of_words",
    "celeba_cnn",
    "celeba_reference_cnn",
    "check_choice",
    "cifar_cnn",
    "femnist_cnn",
    "fitting_model",
    "keras_mnist_cnn",
    "keras_simple_convnet",
    "mean_counted",
    "mnist_cnn",
    "obstacle_cnn",
    "reddit_lstm",
    "select_counted",
    "softmax_regression",
    "stacked_lstm",
    "weights_type",
]


def __getattr__(name: str) -> Any:
    if name == "PackedModel":
        module = importlib.import_module("tff_pmc.models.tff_types.packed_model")
        return module.PackedModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
