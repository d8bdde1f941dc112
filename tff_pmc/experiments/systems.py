"""The systems that AdaFed's and Dual's experiments compare (no TensorFlow)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tff_pmc.experiments.choices import AGGREGATORS
from tff_pmc.experiments.config import ConfigError, RunConfig

BASELINES = ("FedAvg", "Weighted mean")
"""Of AdaFed's experiments and of Dual's: both are the mean weighted by examples."""

_FEDAVG = {"system": "FedAvg", "priority": ("DS",)}
_ADAFED = {"system": "AdaFed", "adapt_loss": True}
_WEIGHTS_ONLY = {"system": "AdaFed, weights only"}
_TIMES_SAMPLES = {
    "system": "AdaFed, times samples",
    "score": "product",
    "priority": ("ACC", "DS"),
    "adapt_loss": True,
}
_DUAL = {
    "system": "Dual-criterion",
    "score": "dual",
    "adjustment": "best_of_all",
    "judge_on": "server",
}

SYSTEMS: dict[str, list[dict[str, Any]]] = {
    "adafed_1": [_FEDAVG, _ADAFED],
    "adafed_2": [_FEDAVG, _WEIGHTS_ONLY, _ADAFED],
    "adafed_3": [
        {**system, "mislabeled_fraction": share}
        for share in (0.5, 1.0)
        for system in (_FEDAVG, _ADAFED)
    ],
    "dual_criterion": [
        {**system, "num_clients": clients}
        for clients in (3, 4)
        for system in [
            _DUAL,
            *(
                {
                    "system": name.replace("_", " ").capitalize(),
                    "aggregator": name,
                    "criteria": ("DS",),
                    "priority": ("DS",),
                }
                for name in AGGREGATORS
                if name != "criteria"
            ),
        ]
    ],
}
"""What differs from an experiment's settings in each of its runs."""

SYSTEMS["dual_criterion_obstacles"] = [
    {**row, "num_clients": 0}
    for row in SYSTEMS["dual_criterion"]
    if row["num_clients"] == 3
]

ON_DEMAND: dict[str, list[dict[str, Any]]] = {
    "adafed_1": [_WEIGHTS_ONLY, _TIMES_SAMPLES],
    "adafed_2": [_TIMES_SAMPLES],
    "adafed_3": [
        {**system, "mislabeled_fraction": share}
        for share in (0.5, 1.0)
        for system in (_WEIGHTS_ONLY, _TIMES_SAMPLES)
    ],
}
"""More of them, which run where they are named."""

DUAL_TABLES = {"dual_criterion": 4, "dual_criterion_obstacles": 5}
"""The table of Dual that an experiment makes."""


def dual_row(config: RunConfig) -> tuple[str, str]:
    """The row of Dual's tables that a run is: algorithm, and clients as printed."""
    algorithm = "dual" if config.aggregator == "criteria" else config.aggregator
    clients = config.num_clients or 3
    return algorithm, "&".join(f"C{number + 1}" for number in range(clients))


def rows_of(experiment: str, wanted: Sequence[str] | None) -> list[dict[str, Any]]:
    """The rows of an experiment, or those of the systems named.

    Args:
        experiment: a name in `SYSTEMS`.
        wanted: names of systems, in any case, with spaces or underscores; None is all.

    Raises:
        ConfigError: there is no such system, or none is named.
    """
    if wanted is None:
        return SYSTEMS[experiment]
    if not any(name.strip() for name in wanted):
        raise ConfigError("--systems is empty: name one or more")
    rows = SYSTEMS[experiment] + ON_DEMAND.get(experiment, [])
    names = {_plain(row["system"]): row["system"] for row in rows}
    for name in wanted:
        if _plain(name) not in names:
            raise ConfigError(
                f"--systems={','.join(wanted)}: {experiment} has no {name!r}; it has "
                f"{', '.join(names)}"
            )
    chosen = {_plain(name) for name in wanted}
    return [row for row in rows if _plain(row["system"]) in chosen]


def check_baselines(configs: Sequence[RunConfig]) -> None:
    """Raises a `ConfigError` if the systems have no baseline to be held against."""
    if not any(config.system in BASELINES for config in configs):
        rows = {row["system"] for row in SYSTEMS[configs[0].experiment]}
        own = next(name for name in BASELINES if name in rows)
        raise ConfigError(
            f"--seeds holds every system against {own}: name {_plain(own)} in "
            "--systems, too"
        )
    if all(config.system in BASELINES for config in configs):
        raise ConfigError("--seeds: --systems names nothing but the baseline")


def _plain(name: str) -> str:
    """`AdaFed, weights only` as a flag has it: `adafed_weights_only`."""
    words = name.lower().replace(",", " ").replace("_", " ").replace("-", " ").split()
    return "_".join(words)
