"""The settings of a model, and the registry of the models that settings can name."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

from declared_settings import A_SEED, BELOW_1, Registry, Settings, setting

CONV_ACTIVATIONS = ("relu", "none")
INITIALIZERS = ("glorot_uniform", "glorot_normal")

_ACTIVATION = (
    "The activation of the convolutions. DA's and PMC's models have none by default, "
    "because these papers name ReLU for the dense layer alone."
)


@dataclasses.dataclass(frozen=True)
class ModelSettings(Settings):
    """The settings that every model has; each model is a subclass.

    A subclass has a `function` that makes the model, or overrides `build`. The first
    line of its docstring describes the model in `--help`.

    Attributes:
        function: makes the model of the settings, given by the names of the fields.
        element_shape: the shape of one image, or other input, that the model takes.
        element_dtype: its type: uint8 for images, and any of
            `leaf_data.examples.INPUT_TYPES`.
        num_classes: the number of its classes; 0 where it is not known. Data
            with more are refused.
        scaling: how inputs are scaled, inside the model or by the data set, in words
            that the record of a run and the exported model have.
    """

    function: ClassVar[Callable[..., Any]]
    element_shape: ClassVar[tuple[int, ...]] = ()
    element_dtype: ClassVar[str] = "uint8"
    num_classes: ClassVar[int] = 0
    scaling: ClassVar[str] = ""

    conv_activation: str = setting("relu", _ACTIVATION, choices=CONV_ACTIVATIONS)
    initializer: str = setting(
        "glorot_uniform",
        "The distribution of the initial kernels.",
        choices=INITIALIZERS,
    )
    seed: int = setting(
        0, "The seed of the initial weights.", flag="model_seed", within=A_SEED
    )

    def build(self) -> Any:
        """Builds the model, a `tff.learning.models.FunctionalModel`.

        Raises:
            TypeError: the subclass neither has a `function` nor overrides `build`.
        """
        own = type(self)
        if not hasattr(own, "function"):
            raise TypeError(f"{own.__name__} has no `function` and no `build`")
        return own.function(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class LinearModelSettings(ModelSettings):
    """The settings of a model whose paper names ReLU for the dense layer alone.

    So do DA (section 3, "Convolutional Model") and PMC (5.1 and 5.2), whose published
    code has linear convolutions. `--conv_activation=relu` is the other reading.
    """

    conv_activation: str = setting("none", _ACTIVATION, choices=CONV_ACTIVATIONS)


@dataclasses.dataclass(frozen=True)
class DroppingModelSettings(ModelSettings):
    """The settings of a model that drops units in training."""

    dropout: float = setting(
        0.3,
        "The share of the last layer's inputs dropped in training; 0.3 as in PMC's "
        "published code for CelebA. Keras's simple example has 0.5.",
        within=BELOW_1,
    )


MODELS: Registry[type[ModelSettings]] = Registry("model", "tff_pmc.models")
"""The models by name. A module of this package, or of a user, adds one by
`MODELS.register(name, subclass of ModelSettings)`."""
