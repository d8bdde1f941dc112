"""Dual's two experiments. CNN, number of epochs, optimizer and rate are ours.

Lambda is chosen on the set that is reported, as printed (III-B, IV-A);
`--judge_on=server` chooses it on the evaluation set instead. What the paper does not
print, and what we chose: `docs/dual_criterion.md`.
"""

from __future__ import annotations

from typing import Any

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment, Variant

_TABLE_1 = (
    *("simple_average", "weighted_mean", "median", "momentum"),
    *("personalized", "laplace", "quantized"),
)
"""The baselines of its Table I, in its order."""

_SETTINGS = {
    "priority": ("ACC", "DS"),
    "criteria": ("ACC", "DS"),
    "rounds": 30,
    "clients_per_round": 0,
    "local_epochs": 1,
    "client_optimizer": "adam",
    "learning_rate": 0.001,
    "predictions": True,
}
_ALONE = {"criteria": ("DS",), "priority": ("DS",)}
"""What the baselines measure."""


def _rows(**changes: Any) -> list[Variant]:
    """Returns Dual and the seven baselines."""
    search = {"adjustment": "best_of_all", "judge_on": "test"}
    return [
        Variant("dual", {**search, **changes}),
        *(Variant(name, {**_ALONE, **changes}) for name in _TABLE_1),
    ]


def _variants(**changes: Any) -> list[Variant]:
    """Returns variants of the baselines beyond the paper, for `--algorithms`."""
    return [Variant("quantized_updates", {**_ALONE, **changes})]


EXPERIMENTS.register(
    "dual_criterion",
    Experiment(
        "Dual's Table IV: CIFAR-10, eight aggregators, three and four clients.",
        {
            **_SETTINGS,
            "dataset": "cifar10",
            "model": "cifar_cnn",
            "batch_size": 64,
            "targets": (70, 75, 80),
        },
        rows=[*_rows(num_clients=3), *_rows(num_clients=4)],
        on_demand=[*_variants(num_clients=3), *_variants(num_clients=4)],
        reports=("dual_table4", "algorithm_effect"),
        baseline="Weighted mean",
        paper="Dual",
    ),
)
EXPERIMENTS.register(
    "dual_criterion_obstacles",
    Experiment(
        "Dual's Table V: pictures of obstacles, which it gives no address of.",
        {
            **_SETTINGS,
            "dataset": "obstacles",
            "model": "obstacle_cnn",
            "batch_size": 16,
            "targets": (80, 90, 95),
        },
        rows=_rows(),
        on_demand=_variants(),
        reports=("dual_table5", "algorithm_effect"),
        baseline="Weighted mean",
        paper="Dual",
    ),
)
