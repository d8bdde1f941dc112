"""DA's experiment on LEAF FEMNIST.

The settings are those of section 3: 10 % of the clients a round, E = 5, B = 10, rate
0.01, up to 1,000 rounds. That only 10 % of FEMNIST is used, 371 writers, is the flag
files' part (`--sample_fraction=0.1`), because LEAF's script may have taken it.
"""

from __future__ import annotations

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment

EXPERIMENTS.register(
    "femnist",
    Experiment(
        "DA's LEAF FEMNIST: Table 1.",
        {
            "dataset": "femnist",
            "model": "femnist_cnn",
            "rounds": 1000,
            "batch_size": 10,
            "learning_rate": 0.01,
            "targets": (75, 80),
        },
        reports=("rounds_to_target", "da_table1", "ordering_effect"),
        paper="DA",
    ),
)
