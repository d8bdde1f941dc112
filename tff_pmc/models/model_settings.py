"""The settings of models, and the registry of models by name."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

from declared_settings import BELOW_1, SEED, Registry, Settings, setting

CONV_ACTIVATIONS = ("relu", "none")
INITIALIZERS = ("glorot_uniform", "glorot_normal")

_ACTIVATION = (
    "The activation of the convolutions. DA's and PMC's models have none by default, "
    "because these papers name ReLU for the dense layer alone."
)


@dataclasses.dataclass(frozen=True)
class ModelSettings(Settings):
    """The settings that all models share; each model is a subclass.

    A subclass defines a `function` that builds the model, or overrides `build`. The
    first line of its docstring describes the model in `--help`.

    Attributes:
        function: builds the model from the settings, which are keyword arguments named
            like the fields.
        element_shape: the shape of one image or other input; by default ().
        element_dtype: the type of the inputs, one of `leaf_data.examples.INPUT_TYPES`;
            by default uint8, for images.
        num_classes: the number of classes; 0, the default, if it is unknown. Data with
            more classes raise an error.
        num_ids: the number of ids, from 0, that inputs of tokens may have; 0, the
            default, if it is unknown. Data with other ids raise an error: TensorFlow
            does so on a CPU, and reads zeros on a GPU.
        scaling: a description how the model or the data set scales inputs, for the
            record of a run and the exported model; empty by default.
        default_of: the data set that it trains on where no fitting model is chosen;
            none by default.
    """

    function: ClassVar[Callable[..., Any]]
    element_shape: ClassVar[tuple[int, ...]] = ()
    element_dtype: ClassVar[str] = "uint8"
    num_classes: ClassVar[int] = 0
    num_ids: ClassVar[int] = 0
    scaling: ClassVar[str] = ""
    default_of: ClassVar[str] = ""

    conv_activation: str = setting("relu", _ACTIVATION, choices=CONV_ACTIVATIONS)
    initializer: str = setting(
        "glorot_uniform",
        "The distribution of the initial kernels.",
        choices=INITIALIZERS,
    )
    seed: int = setting(
        0, "The seed of the initial weights.", flag="model_seed", within=SEED
    )

    def build(self) -> Any:
        """Builds the model, a `tff.learning.models.FunctionalModel`.

        Raises:
            TypeError: the subclass neither has a `function` nor overrides `build`.
        """
        cls = type(self)
        if not hasattr(cls, "function"):
            raise TypeError(
                f"{cls.__name__} has neither a `function` nor a `build`: define one"
            )
        return cls.function(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class LinearConvModelSettings(ModelSettings):
    """The settings of a model with linear convolutions by default.

    DA (section 3, "Convolutional Model") and PMC (5.1 and 5.2) name ReLU for the dense
    layer only, and PMC's published code has linear convolutions.
    `--conv_activation=relu` is the other reading.
    """

    conv_activation: str = setting("none", _ACTIVATION, choices=CONV_ACTIVATIONS)


@dataclasses.dataclass(frozen=True)
class DropoutModelSettings(ModelSettings):
    """The settings of a model that is trained with dropout."""

    dropout: float = setting(
        0.3,
        "The share of the last layer's inputs dropped in training; 0.3 as in PMC's "
        "published code for CelebA. Keras's simple example has 0.5.",
        within=BELOW_1,
    )


DroppingModelSettings = DropoutModelSettings
"""The old name of `DropoutModelSettings`, deprecated: the next release removes it."""

MODELS: Registry[type[ModelSettings]] = Registry("model", "tff_pmc.models")
"""The models by name. A module of this package, or of a user, adds a model with
`MODELS.register(name, subclass of ModelSettings)`."""


def fitting_model(dataset: str, model: str) -> str:
    """Returns the name of the model for a data set for which none was chosen.

    Args:
        dataset: the name of the data set.
        model: the name of the model that an experiment has. It is replaced by the
            default model of the data set, if there is one that takes other inputs.
    """
    inherited = MODELS.get(model, ModelSettings)
    inputs = inherited.element_shape, inherited.element_dtype
    for name, kind in MODELS.items():
        if kind.default_of == dataset:
            return model if inputs == (kind.element_shape, kind.element_dtype) else name
    return model
