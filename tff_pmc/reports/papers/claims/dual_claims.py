"""The claims of Dual on its results, in its order.

Claims that only the tables make stand before those of section V, as the tables do. All
measures are those of the best epoch, which the paper reports, in points. With Laplace
noise the last epoch is used, because the best of thirty would be better than chance.
Two algorithms that the paper calls alike may be one point apart: about two standard
errors of a difference of two accuracies of .8 on 10,000 test images. The paper prints
Laplace noise 1.19 points above chance.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.papers import dual_cells
from tff_pmc.reports.papers.claim_measures import (
    BEST_ROUND,
    LAST_ROUND,
    Cells,
    Measure,
    compare,
)
from tff_pmc.reports.papers.claim_registry import claim, headline
from tff_pmc.reports.papers.dual_cells import ALGORITHMS, METRICS
from tff_pmc.reports.papers.judging import Differences
from tff_pmc.reports.papers.paper_experiments import declare_experiment
from tff_pmc.reports.papers.paper_runs import Runs
from tff_pmc.reports.statistics import measures, published

# The hours are for the sixteen rows, five seeds and thirty epochs.
declare_experiment(
    "dual_criterion",
    {"dataset": "cifar10", "model": "cifar_cnn", "local_epochs": 1, "batch_size": 64},
    table="dualcriterion_table4",
    hours=90,
)
declare_experiment(
    "dual_criterion_obstacles",
    {
        "dataset": "obstacles",
        "model": "obstacle_cnn",
        "local_epochs": 1,
        "batch_size": 16,
    },
    table="dualcriterion_table5",
    needs="the paper's obstacle pictures, of which it gives no address",
)

SEVEN = [
    *("simple_average", "weighted_mean", "median", "momentum", "personalized"),
    *("laplace", "quantized"),
]


def with_clients(runs: Runs, clients: int = 3) -> Runs:
    """Selects the runs that are rows of Table IV or V with a number of clients.

    They are named by their algorithm.
    """
    algorithm = runs.setting("algorithm", "")
    form = runs.setting("personalized_form", "")
    # Early runs with quantized updates have the name of the paper's quantization.
    quantizes_updates = (algorithm == "quantized") & (
        runs.setting("quantized_levels", "") != ""
    )
    other_judge = (algorithm == "dual") & (runs.setting("judge_on", "") != "test")
    is_row = algorithm.isin(ALGORITHMS) & (runs.setting("data_clients", 0) == clients)
    names = algorithm.where(form.isin(["", "formula"]), algorithm + " (" + form + ")")
    rows = runs.rows.assign(label=names)[is_row & ~quantizes_updates & ~other_judge]
    return runs._replace(rows=rows)


def best_epoch(results: Results, metric: str) -> pd.Series[float]:
    """Measures a metric of Table IV at the best epoch, in points."""
    runs = dual_cells.table_runs(results).runs
    cells = dual_cells.tidy_rows(results)
    cells = cells[cells["metric"] == metric]
    cells = runs.merge(cells, on=["seed", *dual_cells.KEYS[:2]])
    return 100 * cells.set_index(RUN_KEY)["ours_best_epoch"]


AT_BEST: dict[str, Measure] = {
    metric: functools.partial(best_epoch, metric=metric) for metric in METRICS
}
AT_BEST["Accuracy"] = BEST_ROUND


def points(
    runs: Runs,
    label: str,
    base: str,
    *,
    clients: int = 3,
    metric: str = "Accuracy",
    name: str = "points",
) -> Differences:
    """Returns the lead in a metric at the best epoch, in points."""
    names = "&".join(f"C{number}" for number in range(1, clients + 1))

    def find_printed(table: str, label: str, _: Cells) -> float:
        cells = published.table(table).set_index(dual_cells.KEYS)["value"]
        key = ALGORITHMS[label.partition(" (")[0]], names, metric
        return 100 * float(cells.get(key, math.nan))

    rows, options = with_clients(runs, clients), {"printed": find_printed, **OPTIONS}
    return compare(rows, label, AT_BEST[metric], base, name=name, **options)


OPTIONS: dict[str, Any] = {"digits": 2, "least_rounds": 10, "count_shown": "epochs"}


@claim("Dual-1", "II-B; Table IV", "dual_criterion")
def quantization_keeps_accuracy(runs: Runs) -> Differences:
    """Quantization keeps an acceptable accuracy. (Here: with three clients, within one
    point of the simple average.)"""
    return points(runs, "quantized", "simple_average").is_none(1)


@claim("Dual-2", "Table IV", "dual_criterion")
def momentum_is_behind(runs: Runs) -> Differences:
    """With three clients momentum is far behind the weighted mean."""
    return points(runs, "momentum", "weighted_mean").is_less()


@claim("Dual-3", "Table IV", "dual_criterion")
def momentum_is_behind_with_four(runs: Runs) -> Differences:
    """With four clients momentum is far behind the weighted mean."""
    return points(runs, "momentum", "weighted_mean", clients=4).is_less()


@claim("Dual-4", "Table IV", "dual_criterion")
def laplace_is_chance(runs: Runs) -> Differences:
    """With Laplace noise the model is no better than chance, .1. (Here: 1.5 points at
    most, in the last epoch: the best of several favors noise.)"""
    name = "points, last epoch"
    rows = with_clients(runs)
    last = compare(rows, "laplace", LAST_ROUND, 10, name=name, **OPTIONS)
    return last.is_at_most(1.5)


@claim(
    "Dual-5",
    "V",
    "dual_criterion",
    flags="--algorithms=simple_average,personalized --personalized_form=text",
    hours=23,
)
def tuned_models_do_well(runs: Runs) -> Differences:
    """Personalized does well because the clients train once more after the aggregation.
    (Here: these tuned models, over the simple average.)"""
    return points(runs, "personalized (text)", "simple_average").is_more()


def over_the_seven(runs: Runs, metrics: Sequence[str], clients: int) -> Differences:
    """Claims that the dual criterion leads each of the seven others in metrics."""
    over = functools.partial(points, runs, "dual", clients=clients)
    leads = (
        over(
            base, metric=metric, name=f"{metric} over {base}".removeprefix("Accuracy ")
        )
        for metric in metrics
        for base in SEVEN
    )
    return sum(leads, Differences()).is_more()


@claim("Dual-6", "V; Table IV", "dual_criterion")
def dual_is_the_highest(runs: Runs) -> Differences:
    """With three clients the dual criterion has the highest accuracy, F1 and MCC
    (Matthews' correlation coefficient) of the eight."""
    return over_the_seven(runs, ["Accuracy", "F1 Score", "MCC"], clients=3)


@claim("Dual-7", "V; Table IV", "dual_criterion")
def dual_is_the_highest_with_four(runs: Runs) -> Differences:
    """With four clients the dual criterion has the highest accuracy, precision (second
    in its own table) and MCC of the eight."""
    return over_the_seven(runs, ["Accuracy", "Precision", "MCC"], clients=4)


@claim("Dual-8", "V; Table IV", "dual_criterion")
def better_than_the_simple_average(runs: Runs) -> Differences:
    """With three clients Dual is clearly better than the simple average."""
    return points(runs, "dual", "simple_average").is_more()


@claim("Dual-9", "V; Table IV", "dual_criterion")
def better_than_the_weighted_mean(runs: Runs) -> Differences:
    """With three clients Dual is clearly better than the weighted mean."""
    return points(runs, "dual", "weighted_mean").is_more()


@claim("Dual-10", "V; Table IV", "dual_criterion")
def better_than_the_simple_average_with_four(runs: Runs) -> Differences:
    """With four clients Dual is better than the simple average."""
    return points(runs, "dual", "simple_average", clients=4).is_more()


@claim("Dual-11", "V; Table IV", "dual_criterion")
def better_than_the_weighted_mean_with_four(runs: Runs) -> Differences:
    """With four clients Dual is better than the weighted mean."""
    return points(runs, "dual", "weighted_mean", clients=4).is_more()


@claim("Dual-12", "V; Table V", "dual_criterion_obstacles")
def comparable_on_obstacles(runs: Runs) -> Differences:
    """On the obstacle pictures Dual is comparable to Personalized, the best (.0024
    behind in Table V). (Here: at most one point behind.)"""
    return points(runs, "dual", "personalized").is_at_least(-1)


@claim("Dual-13", "VI; Table V", "dual_criterion_obstacles")
def better_on_obstacles_than_the_average(runs: Runs) -> Differences:
    """On the obstacle pictures Dual is better than the simple average."""
    return points(runs, "dual", "simple_average").is_more()


@claim("Dual-14", "VI; Table V", "dual_criterion_obstacles")
def better_on_obstacles_than_the_mean(runs: Runs) -> Differences:
    """On the obstacle pictures Dual is better than the weighted mean (by .0168 in
    Table V)."""
    return points(runs, "dual", "weighted_mean").is_more()


@claim("Dual-15", "VI; Table IV", "dual_criterion")
def comparable_to_personalized(runs: Runs) -> Differences:
    """With three clients Dual is better than Personalized, or comparable. (Here:
    Personalized by its formula; at most one point behind.)"""
    return points(runs, "dual", "personalized").is_at_least(-1)


@claim("Dual-16", "VI; Table IV", "dual_criterion")
def comparable_to_personalized_with_four(runs: Runs) -> Differences:
    """With four clients Dual is better than Personalized, or comparable. (Here:
    Personalized by its formula; at most one point behind.)"""
    return points(runs, "dual", "personalized", clients=4).is_at_least(-1)


best_share = functools.partial(
    headline, paper="Dual", measure=measures.best_round, select=with_clients
)
best_share(
    place="Table IV",
    says="accuracy of the dual criterion, three clients, best epoch",
    printed=".8286",
    experiment="dual_criterion",
    own="dual",
    form="{:.4f}",
)
for _place, _printed, _experiment in (
    ("Table IV", "+.0060", "dual_criterion"),
    ("Table V", "+.0168", "dual_criterion_obstacles"),
):
    best_share(
        place=_place,
        says="lead of the dual criterion over the weighted mean, three clients",
        printed=_printed,
        experiment=_experiment,
        own="dual",
        base="weighted_mean",
        form="{:+.4f}",
    )
