"""The usual baselines on one federation of 5,000 real digits, beyond the papers.

Labels are dealt by a Dirichlet distribution, sizes follow a power law. The rates of the
server's optimizers, and FedProx's mu, are the best of three by the accuracy under the
seed 100; all else is a default. The model is the smallest, so that it takes hours and
not days.
"""

from __future__ import annotations

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment, Variant

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
_ORDERINGS = (
    *(("LD",), ("MD",), ("DS", "LD", "MD"), ("DS", "MD", "LD"), ("LD", "DS", "MD")),
    *(("LD", "MD", "DS"), ("MD", "DS", "LD"), ("MD", "LD", "DS")),
)


def _server(optimizer: str, rate: float) -> Variant:
    changes = {"server_optimizer": optimizer, "server_learning_rate": rate}
    return Variant("fedavg", changes)


EXPERIMENTS.register(
    "baselines",
    Experiment(
        "The usual baselines of a weighting, on 5,000 real digits with Dirichlet "
        "labels: orderings, fair objectives, FedNova, FedProx, the server's optimizers "
        "and selections of clients.",
        {**_SMALL, "client_sizes": "power_law", "targets": (80, 90)},
        rows=[
            Variant("fedavg"),
            *(Variant("prioritized", {"priority": order}) for order in _ORDERINGS),
            Variant(
                "product",
                {"criteria": ("DS^0.5", "LD"), "priority": ("DS^0.5", "LD")},
            ),
            *map(Variant, ("qffl", "q_fedavg", "term", "propfair", "inverse_accuracy")),
            *map(Variant, ("afl", "fednova")),
            Variant("fedavg", {"prox_mu": 0.01}),
            _server("momentum", 0.3),
            _server("adam", 0.03),
            _server("yogi", 0.03),
            _server("adagrad", 0.03),
            Variant("fedavg", {"selection": "by_size"}),
            Variant("fedavg", {"selection": "power_of_choice"}),
        ],
        reports=("rounds_to_target", "spread_effect"),
        baseline="FedAvg",
    ),
)
