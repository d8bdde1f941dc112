"""The settings of a model, and the registry of the models that settings can name."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

from leaf_data.registration import Registry
from leaf_data.settings import A_SEED, BELOW_1, Settings, setting
from tff_pmc.models.functional import CONV_ACTIVATIONS, INITIALIZERS


@dataclasses.dataclass(frozen=True)
class ModelSettings(Settings, abc.ABC):
    """The settings that every model has; each model is a subclass.

    Attributes:
        element_shape: the shape of one image, or other input, that the model takes.
        element_dtype: its type: uint8 for images, and any of
            `leaf_data.examples.INPUT_TYPES`.
    """

    element_shape: ClassVar[tuple[int, ...]] = ()
    element_dtype: ClassVar[str] = "uint8"

    conv_activation: str = setting(
        "relu", "The activation of the convolutions.", choices=CONV_ACTIVATIONS
    )
    initializer: str = setting(
        "glorot_uniform",
        "The distribution of the initial kernels.",
        choices=INITIALIZERS,
    )
    seed: int = setting(
        0, "The seed of the initial weights.", flag="model_seed", within=A_SEED
    )

    @abc.abstractmethod
    def build(self) -> Any:
        """The model, a `tff.learning.models.FunctionalModel`."""

    def arguments(self) -> dict[str, Any]:
        """The settings by the names of the fields."""
        return {
            declared.name: getattr(self, declared.name) for declared in self.declared()
        }


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
"""The models by name. A module of this package, or of a user's own, adds one by
`MODELS.register(name, subclass of ModelSettings)`."""
