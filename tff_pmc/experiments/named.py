"""The named experiments, which settings start from (no TensorFlow)."""

from __future__ import annotations

import dataclasses
from typing import Any

from tff_pmc.experiments.config import ConfigError, RunConfig

EXPERIMENTS: dict[str, RunConfig] = {
    "quickstart": RunConfig(
        "quickstart", "digits5k", partition="noniid", rounds=40, learning_rate=0.1
    ),
    "mnist_iid": RunConfig("mnist_iid", "mnist", learning_rate=0.215),
    "mnist_noniid": RunConfig(
        "mnist_noniid", "mnist", partition="noniid", learning_rate=0.1
    ),
    "femnist": RunConfig(
        "femnist",
        "femnist",
        model="femnist_cnn",
        rounds=1000,
        batch_size=10,
        learning_rate=0.01,
        targets=(75, 80),
    ),
}
"""The named experiments, with 10 % of the clients a round and E = 5. MNIST: 100
clients, full batch, the authors' published rates (`docs/fidelity.md`). FEMNIST: as DA
prints it."""


def settings(name: str, overrides: dict[str, Any | None]) -> RunConfig:
    """A named experiment's settings with some replaced.

    Args:
        name: of the experiment.
        overrides: values by field; None keeps the experiment's own.

    Raises:
        ConfigError: the experiment is unknown or a value out of range.
    """
    if name not in EXPERIMENTS:
        raise ConfigError(
            f"--experiment={name} is unknown; there are {', '.join(EXPERIMENTS)}"
        )
    given = {key: value for key, value in overrides.items() if value is not None}
    return dataclasses.replace(EXPERIMENTS[name], **given)
