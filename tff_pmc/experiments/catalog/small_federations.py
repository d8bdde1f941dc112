"""Two comparisons on 5,000 real digits, of no paper: a map, and the usual baselines.

The map: where does another weighting than the clients' sizes help? Rows: how alike the
clients' labels are. Columns: sizes and normalization; then, on top of sizes by a power
law and the normalization `max`, wrong labels and the size of the cohort.

The baselines that are expected beside any weighting, on one federation with Dirichlet
labels and sizes by a power law. The rates of the server's optimizers, and FedProx's mu,
are the best of three by the accuracy under the seed 100; all else is a default.

The model is the smallest, so that each takes hours and not days.
"""

from __future__ import annotations

from typing import Any

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment, Row

_SMALL = {
    "dataset": "digits5k",
    "partition": "dirichlet",
    "model": "keras_simple_convnet",
    "rounds": 30,
    "clients_per_round": 10,
    "batch_size": 20,
    "local_epochs": 2,
    "learning_rate": 0.2,
}
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
_ORDERINGS = (
    *(("LD",), ("MD",), ("DS", "LD", "MD"), ("DS", "MD", "LD"), ("LD", "DS", "MD")),
    *(("LD", "MD", "DS"), ("MD", "DS", "LD"), ("MD", "LD", "DS")),
)

EXPERIMENTS.register(
    "when_it_helps",
    Experiment(
        "A map of 24 federations of 5,000 real digits: the effect of the ordering that "
        "would have helped most for one step, and of whole runs with it.",
        {**_SMALL, "counterfactuals": ("orderings",)},
        orderings=(("DS",),),
        cells={
            (f"alpha {alpha:g}", column): {"dirichlet_alpha": alpha, **changes}
            for column, changes in _COLUMNS.items()
            for alpha in (0.1, 1.0, 100.0)
        },
    ),
)


def _server(optimizer: str, rate: float) -> Row:
    changes = {"server_optimizer": optimizer, "server_learning_rate": rate}
    return Row("fedavg", changes)


EXPERIMENTS.register(
    "baselines",
    Experiment(
        "What is expected beside any weighting, on 5,000 real digits with Dirichlet "
        "labels: orderings, fair objectives, FedNova, FedProx, the server's optimizers "
        "and selections of clients.",
        {**_SMALL, "client_sizes": "power_law", "targets": (80, 90)},
        rows=[
            Row("fedavg"),
            *(Row("prioritized", {"priority": order}) for order in _ORDERINGS),
            Row(
                "product",
                {"criteria": ("DS^0.5", "LD"), "priority": ("DS^0.5", "LD")},
            ),
            *map(Row, ("qffl", "q_fedavg", "term", "propfair", "inverse_accuracy")),
            *map(Row, ("afl", "fednova")),
            Row("fedavg", {"prox_mu": 0.01}),
            _server("momentum", 0.3),
            _server("adam", 0.03),
            _server("yogi", 0.03),
            _server("adagrad", 0.03),
            Row("fedavg", {"selection": "by_size"}),
            Row("fedavg", {"selection": "power_of_choice"}),
        ],
        reports=("rounds_to_target", "spread_effect"),
        baseline="FedAvg",
    ),
)
