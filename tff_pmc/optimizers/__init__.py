"""The optimizers of clients and of the server, by the names that settings have.

To add one is an entry of its registry here, or a call of `register` in a module from
outside: the flag's choices and the run's optimizer follow. TensorFlow is imported when
an optimizer is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from declared_settings import Registry
from tff_pmc._lazy import tff


class Optimizer(NamedTuple):
    """An optimizer by name.

    Attributes:
        build: builds the `tff.learning.optimizers.Optimizer` from a learning rate, and
            from its parameters as keyword arguments.
        parameters: the names of the parameters that are settings, with their defaults.
            The server's are fields of `ServerSettings`; clients' optimizers have none.
    """

    build: Callable[..., Any]
    parameters: Mapping[str, float] = {}


def _build_adadelta(learning_rate: float) -> Any:
    from tff_pmc.optimizers.adadelta import build_adadelta

    return build_adadelta(learning_rate)


CLIENT_OPTIMIZERS: Registry[Optimizer] = Registry("client optimizer")
"""The clients' optimizers, the values of `--client_optimizer`."""

for _name, _optimizer in {
    "sgd": Optimizer(lambda rate: tff.learning.optimizers.build_sgdm(rate)),
    "adam": Optimizer(lambda rate: tff.learning.optimizers.build_adam(rate)),
    "adadelta": Optimizer(_build_adadelta),
}.items():
    CLIENT_OPTIMIZERS.register(_name, _optimizer)


def _build_momentum(rate: float, momentum: float) -> Any:
    return tff.learning.optimizers.build_sgdm(rate, momentum)


def _build_adam(rate: float, beta1: float, beta2: float, epsilon: float) -> Any:
    return tff.learning.optimizers.build_adam(rate, beta1, beta2, epsilon)


def _build_yogi(rate: float, beta1: float, beta2: float, epsilon: float) -> Any:
    build, start = tff.learning.optimizers.build_yogi, epsilon**2
    return build(rate, beta1, beta2, epsilon, start)


def _build_adagrad(rate: float, epsilon: float) -> Any:
    return tff.learning.optimizers.build_adagrad(rate, 0.0, epsilon**2)


_MOMENTS = {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-3}

SERVER_OPTIMIZERS: Registry[Optimizer] = Registry("server optimizer")
"""The server's optimizers, the values of `--server_optimizer`."""

for _name, _optimizer in {
    "sgd": Optimizer(lambda rate: tff.learning.optimizers.build_sgdm(rate)),
    "momentum": Optimizer(_build_momentum, {"momentum": 0.9}),
    "adam": Optimizer(_build_adam, _MOMENTS),
    "yogi": Optimizer(_build_yogi, _MOMENTS),
    "adagrad": Optimizer(_build_adagrad, {"epsilon": _MOMENTS["epsilon"]}),
}.items():
    SERVER_OPTIMIZERS.register(_name, _optimizer)
