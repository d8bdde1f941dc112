"""AdaFed's three simulations. Optimizer and rate are ours (`docs/adafed.md`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment, Variant

_SETTINGS = {
    "dataset": "mnist_adafed",
    "model": "keras_mnist_cnn",
    "priority": ("ACC",),
    "criteria": ("ACC", "DS"),
    "rounds": 20,
    "clients_per_round": 0,
    "batch_size": 100,
    "client_optimizer": "adadelta",
    "learning_rate": 1.0,
    "targets": (80, 90, 95),
}
_ALGORITHMS = (
    *("adafed", "adafed_weights_only"),
    *("adafed_times_samples", "adafed_weights_only_times_samples"),
)


def _simulation(
    number: str,
    figures: Sequence[int],
    algorithms: Sequence[str],
    words: str,
    **changes: Any,
) -> None:
    """Registers a simulation: algorithms with FedAvg, and the others on demand."""
    EXPERIMENTS.register(
        f"adafed_{number}",
        Experiment(
            f"AdaFed's simulation {number}{words}.",
            {**_SETTINGS, "simulation": number, **changes},
            rows=list(map(Variant, ("fedavg", *algorithms))),
            on_demand=[Variant(name) for name in _ALGORITHMS if name not in algorithms],
            reports=(
                *(f"adafed_figure{n}" for n in figures),
                *("adafed_page", "algorithm_effect"),
            ),
            baseline="FedAvg",
            paper="AdaFed",
        ),
    )


_simulation("1", [1], _ALGORITHMS[3:], ": its Figure 1")
_of_table_1 = ", of its Table 1's images: its Figures 2, 3 and 4"
_simulation("2", [2, 3, 4], ["adafed_weights_only", "adafed"], _of_table_1)
_adversaries = ", with adversaries: its Figures 5 and 6"
_simulation("3", [5, 6], ["adafed"], _adversaries, keep_own_model=True)
