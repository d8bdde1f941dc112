"""A named experiment."""

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment

EXPERIMENTS.register(
    "stripes",
    Experiment(
        "Stripes, for a look.",
        settings={
            "dataset": "stripes",
            "model": "linear",
            "criteria": ("DS", "EV"),
            "rounds": 2,
            "clients_per_round": 0,
            "targets": (50,),
        },
        reports=("best_rounds",),
    ),
)
