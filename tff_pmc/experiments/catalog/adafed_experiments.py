"""AdaFed's three simulations. Optimizer and rate are ours (`docs/adafed.md`)."""

from __future__ import annotations

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment, Row

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
_TIMES_SAMPLES = (
    Row("adafed_times_samples"),
    Row("adafed_weights_only_times_samples"),
)

EXPERIMENTS.register(
    "adafed_1",
    Experiment(
        "AdaFed's simulation 1: its Figure 1.",
        {**_SETTINGS, "simulation": "1"},
        rows=[Row("fedavg"), Row("adafed_weights_only_times_samples")],
        on_demand=[
            Row("adafed"),
            Row("adafed_weights_only"),
            Row("adafed_times_samples"),
        ],
        reports=("adafed_figure1", "adafed_page"),
        seed_reports=("adafed_figures", "system_effect"),
        baseline="FedAvg",
        paper="AdaFed",
    ),
)
EXPERIMENTS.register(
    "adafed_2",
    Experiment(
        "AdaFed's simulation 2, of its Table 1's images: its Figures 2, 3 and 4.",
        {**_SETTINGS, "simulation": "2"},
        rows=[Row("fedavg"), Row("adafed_weights_only"), Row("adafed")],
        on_demand=_TIMES_SAMPLES,
        reports=("adafed_figure2", "adafed_figure3", "adafed_figure4", "adafed_page"),
        seed_reports=("adafed_figures", "system_effect"),
        baseline="FedAvg",
        paper="AdaFed",
    ),
)
EXPERIMENTS.register(
    "adafed_3",
    Experiment(
        "AdaFed's simulation 3, with adversaries: its Figures 5 and 6.",
        {**_SETTINGS, "simulation": "3", "keep_own_model": True},
        rows=[Row("fedavg"), Row("adafed")],
        on_demand=[Row("adafed_weights_only"), *_TIMES_SAMPLES],
        reports=("adafed_figure5", "adafed_figure6", "adafed_page"),
        seed_reports=("adafed_figures", "system_effect"),
        baseline="FedAvg",
        paper="AdaFed",
    ),
)
