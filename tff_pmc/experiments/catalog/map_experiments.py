"""A map of federations: where does another weighting than the clients' sizes help?

Rows: how alike the clients' labels are. Columns: one thing after the other is changed,
sizes and normalization first, then wrong labels and the size of the cohort. The model
is the smallest, so that the map takes hours and not days.
"""

from __future__ import annotations

from typing import Any

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment

_SKEWED = {"client_sizes": "power_law", "normalization": "max"}
_COLUMNS: dict[str, dict[str, Any]] = {
    "equal sizes": {},
    "equal sizes, max": {"normalization": "max"},
    "power law": {"client_sizes": "power_law"},
    "power law, max": _SKEWED,
    "wrong labels in 20 %": {**_SKEWED, "wrong_clients": 0.2},
    "wrong labels in 40 %": {**_SKEWED, "wrong_clients": 0.4},
    "cohort of 5": {**_SKEWED, "clients_per_round": 5},
    "cohort of 50": {**_SKEWED, "clients_per_round": 50},
}

EXPERIMENTS.register(
    "when_it_helps",
    Experiment(
        "A map of 24 federations of 5,000 real digits: the effect of the ordering that "
        "would have helped most for one step, and of whole runs with it.",
        {
            "dataset": "digits5k",
            "partition": "dirichlet",
            "model": "keras_simple_convnet",
            "rounds": 30,
            "clients_per_round": 10,
            "batch_size": 20,
            "local_epochs": 2,
            "learning_rate": 0.2,
            "counterfactuals": ("orderings",),
        },
        orderings=(("DS",),),
        cells={
            (f"alpha {alpha:g}", column): {"dirichlet_alpha": alpha, **changes}
            for column, changes in _COLUMNS.items()
            for alpha in (0.1, 1.0, 100.0)
        },
    ),
)
