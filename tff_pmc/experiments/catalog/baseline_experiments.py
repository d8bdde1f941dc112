"""The baselines on the synthetic data of their own papers (docs/baselines.md).

FedProx's settings are those of its section 5 and of the authors' published code,
q-FFL's those of the code and its README; FedNova's those of its section on synthetic
data. What is ours is named on the page.
"""

from __future__ import annotations

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment

_REPORTS = ("baseline_curves", "baseline_claims")
_FEDPROX = {
    "dataset": "synthetic",
    "model": "softmax_regression",
    "rounds": 200,
    "clients_per_round": 10,
    "local_epochs": 20,
    "batch_size": 10,
    "learning_rate": 0.01,
    "global_train_loss": True,
    "record_clients": "none",
}
_FEDERATIONS = (
    "synthetic_iid=1",
    "synthetic_alpha=0 synthetic_beta=0",
    "synthetic_alpha=0.5 synthetic_beta=0.5",
    "",
)

EXPERIMENTS.register(
    "fedprox_synthetic",
    Experiment(
        "FedProx's Figure 2, four synthetic federations with mu 0 and 1, and the "
        "synthetic part of its Figure 1, with 50 and 90 % stragglers.",
        _FEDPROX,
        rows=[
            *(
                f"{row} {federation}"
                for federation in _FEDERATIONS
                for row in ("fedavg", "fedprox mu=1")
            ),
            *(
                f"{row} stragglers={share}"
                for share in (0.5, 0.9)
                for row in ("fedavg", "fedprox mu=0", "fedprox mu=1")
            ),
        ],
        reports=_REPORTS,
        baseline="FedAvg",
    ),
)
EXPERIMENTS.register(
    "qffl_synthetic",
    Experiment(
        "q-FFL's Table 1, row Synthetic: q = 0 and q = 1.",
        {
            "dataset": "synthetic",
            "model": "softmax_regression",
            "num_clients": 100,
            "synthetic_size_spread": 1.0,
            "rounds": 20000,
            "clients_per_round": 10,
            "selection": "by_size",
            "local_epochs": 1,
            "batch_size": 10,
            "learning_rate": 0.1,
            "evaluate_every": 1000,
        },
        rows=["q_fedavg q=0", "q_fedavg q=1"],
        reports=_REPORTS,
        baseline="q-FedAvg, q 0",
    ),
)
EXPERIMENTS.register(
    "fednova_synthetic",
    Experiment(
        "FedNova's synthetic data: clients with 1 to 5 epochs, FedNova and FedAvg.",
        {
            "dataset": "synthetic",
            "model": "softmax_regression",
            "rounds": 200,
            "clients_per_round": 0.3,
            "local_epochs": 5,
            "stragglers": 1.0,
            "straggler_work": "keep",
            "batch_size": 20,
            "learning_rate": 0.02,
            "global_train_loss": True,
            "record_clients": "none",
        },
        rows=["fedavg", "fednova"],
        reports=_REPORTS,
        baseline="FedAvg",
    ),
)
