"""The papers' models as `tff.learning.models.FunctionalModel`s.

Images enter as they are stored (uint8) and are scaled inside the forward pass,
so that only bytes travel to the worker. Initial weights are NumPy arrays, a
pure function of the seed.
"""

from tff_pmc.models.characters import femnist_cnn, mnist_cnn
from tff_pmc.models.faces import BATCH_NORMS, celeba_cnn, celeba_reference_cnn
from tff_pmc.models.functional import (
    CONV_ACTIVATIONS,
    INITIALIZERS,
    check_choice,
    num_parameters,
    weights_type,
)
from tff_pmc.models.images import cifar_cnn, keras_mnist_cnn, obstacle_cnn

MODELS = {
    "mnist_cnn": mnist_cnn,
    "femnist_cnn": femnist_cnn,
    "celeba_cnn": celeba_cnn,
    "celeba_reference_cnn": celeba_reference_cnn,
    "keras_mnist_cnn": keras_mnist_cnn,
    "cifar_cnn": cifar_cnn,
    "obstacle_cnn": obstacle_cnn,
}
"""The papers' models by name."""

ELEMENT_SHAPES = {
    "mnist_cnn": (28, 28),
    "femnist_cnn": (28, 28),
    "celeba_cnn": (64, 64, 3),
    "celeba_reference_cnn": (64, 64, 3),
    "keras_mnist_cnn": (28, 28),
    "cifar_cnn": (32, 32, 3),
    "obstacle_cnn": (64, 64, 3),
}
"""The images each takes, uint8."""

__all__ = [
    "BATCH_NORMS",
    "CONV_ACTIVATIONS",
    "ELEMENT_SHAPES",
    "INITIALIZERS",
    "MODELS",
    "celeba_cnn",
    "celeba_reference_cnn",
    "check_choice",
    "cifar_cnn",
    "femnist_cnn",
    "keras_mnist_cnn",
    "mnist_cnn",
    "num_parameters",
    "obstacle_cnn",
    "weights_type",
]
