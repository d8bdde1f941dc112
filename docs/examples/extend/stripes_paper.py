"""A paper, which is made up: its name, its experiment, its table and its claims."""

import pathlib

import even_labels  # noqa: F401
import linear  # noqa: F401
import pandas as pd
import stripes  # noqa: F401

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.paper import PAPERS, Paper
from tff_pmc.reports.papers.claim_measures import LAST_ROUND, compare
from tff_pmc.reports.papers.claim_registry import claim
from tff_pmc.reports.statistics import published
from tff_pmc.reports.statistics.measures import last_round

PAPERS.register(
    "Stripes",
    Paper("A paper made up for this page", 2026, pathlib.Path(__file__).parent),
)


def table1(results):
    """Returns Table 1 of one seed, with the published one."""
    if len(results.seeds) > 1:
        return Report()
    ours = last_round(results).rename("value").rename_axis(["seed", "ordering"])
    theirs = published.table("stripes_table1")
    table = published.join_published(
        pd.DataFrame(ours).reset_index(), theirs, ["ordering"]
    )
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


def points(runs):
    """Returns the lead of EV,DS over DS in the last round."""
    return compare(runs, "EV,DS", LAST_ROUND, "DS", name="{run} minus {base}, points")


@claim("Stripes-1", "2, Table 1", "stripes_table1")
def even_labels_end_above(runs):
    """Even labels first end above the data set size."""
    return points(runs).is_more(printed=10)


@claim("Stripes-2", "3", "stripes_table1")
def ordering_moves_little(runs):
    """The ordering moves the accuracy by less than ten points."""
    return points(runs).is_between(-10, 10)
