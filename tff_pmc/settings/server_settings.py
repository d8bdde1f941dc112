"""The settings of the server's step from a round's mean update to the next model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from declared_settings import Range, SettingError, Settings, setting
from tff_pmc.optimizers import SERVER_OPTIMIZERS

# Above 0.9999 a float32 may be 1, by which Adam and Yogi would divide by 0.
_DECAY_RANGE = Range(lambda x: 0 <= x <= 0.9999, "from 0 to 0.9999")
# Its square is also a float32.
_EPSILON_RANGE = Range(lambda x: 1e-15 <= x <= 1e15, "from 1e-15 to 1e15")


@dataclasses.dataclass(frozen=True)
class ServerSettings(Settings):
    """The server's optimizer: FedAvgM, FedAdam, FedYogi or FedAdagrad, or plain SGD.

    *Measuring the Effects of Non-Identical Data Distribution* (Hsu et al. 2019, arXiv
    1909.06335) has FedAvgM, *Adaptive Federated Optimization* (Reddi et al. 2021, arXiv
    2003.00295, Algorithm 2) the others. They use the round's mean update D, received
    minus trained weights, as the gradient; eta is `--server_learning_rate`:

        sgd       w <- w - eta D
        momentum  m <- momentum m + D;  w <- w - eta m
        adam      m <- beta1 m + (1 - beta1) D;  v <- beta2 v + (1 - beta2) D^2
                  w <- w - eta c m / (sqrt(v) + epsilon)
        yogi      m as adam;  v <- v - (1 - beta2) D^2 sign(v - D^2), at first epsilon^2
                  w as adam
        adagrad   v <- v + D^2;  w <- w - eta D / sqrt(v + epsilon^2)

    They are TFF's, and differ from Algorithm 2 in this: in step t there is the factor
    `c = sqrt(1 - beta2^t) / (1 - beta1^t)`, as in Adam, and its v starts at 0; Adagrad
    has the floor under the root. Non-trainable weights are averaged.
    """

    title: ClassVar[str] = "The server's optimizer"

    optimizer: str = setting(
        "sgd",
        "The server's optimizer, whose gradient is the round's mean update. It is sgd "
        "(federated averaging), momentum (FedAvgM), adam, yogi or adagrad (FedAdam, "
        "FedYogi, FedAdagrad). The last three move each parameter by "
        "about --server_learning_rate, whatever the update's size: they need a rate "
        "far below 1.",
        flag="server_optimizer",
        choices=lambda: tuple(SERVER_OPTIMIZERS),
        omit_default=True,
    )
    momentum: float = setting(
        None,
        "The momentum of --server_optimizer=momentum; by default 0.9.",
        flag="server_momentum",
        within=_DECAY_RANGE,
        omit_default=True,
    )
    beta1: float = setting(
        None,
        "The decay of the mean update in --server_optimizer=adam and yogi; by default "
        "0.9.",
        flag="server_beta1",
        within=_DECAY_RANGE,
        omit_default=True,
    )
    beta2: float = setting(
        None,
        "The decay of the mean square in --server_optimizer=adam and yogi; by default "
        "0.99.",
        flag="server_beta2",
        within=_DECAY_RANGE,
        omit_default=True,
    )
    epsilon: float = setting(
        None,
        "The floor of the divisor in --server_optimizer=adam, yogi and adagrad, Reddi "
        "et al.'s tau; by default 0.001.",
        flag="server_epsilon",
        within=_EPSILON_RANGE,
        omit_default=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for declared in self.declared():
            name = declared.name
            is_set = declared.default is None and getattr(self, name) is not None
            if is_set and name not in self._defaults:
                raise SettingError(
                    f"--{declared.flag} does not apply to "
                    f"--server_optimizer={self.optimizer}: remove it"
                )

    @property
    def note(self) -> str:
        """The optimizer, if it is not plain SGD."""
        return "" if self.optimizer == "sgd" else f"server {self.optimizer}"

    @property
    def _defaults(self) -> Mapping[str, float]:
        return SERVER_OPTIMIZERS[self.optimizer].parameters

    @property
    def parameters(self) -> dict[str, float]:
        """The parameters of the optimizer by name, with its defaults."""
        values = {name: getattr(self, name) for name in self._defaults}
        return {
            name: default if values[name] is None else values[name]
            for name, default in self._defaults.items()
        }
