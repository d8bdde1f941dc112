"""A paper, which is made up: its name, its experiment and its table."""

import pathlib

import even_labels  # noqa: F401
import linear  # noqa: F401
import pandas as pd
import stripes  # noqa: F401

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.papers import published
from tff_pmc.settings.papers import PAPERS, Paper

PAPERS.register(
    "Stripes",
    Paper("A paper made up for this page", 2026, pathlib.Path(__file__).parent),
)


def table1(runs):
    rows = [(run.label, run.accuracy[-1]) for run in runs]
    ours = pd.DataFrame(rows, columns=["ordering", "value"])
    theirs = published.table("stripes_table1")
    table = published.beside(ours, theirs, ["ordering"])
    return Report(f"Table 1\n{table}", tables={"stripes_table1": table})


REPORTS.register("stripes_table1", table1)

EXPERIMENTS.register(
    "stripes_table1",
    Experiment(
        "Stripes' Table 1.",
        settings={
            "dataset": "stripes",
            "model": "linear",
            "criteria": ("DS", "EV"),
            "clients_per_round": 0,
            "targets": (50,),
        },
        orderings=(("DS",), ("EV", "DS")),
        reports=("stripes_table1",),
        paper="Stripes",
    ),
)
