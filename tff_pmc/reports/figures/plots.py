"""The plots of a set of runs."""

from __future__ import annotations

import re

import pandas as pd

from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report
from tff_pmc.reports.figures import run_styles
from tff_pmc.reports.figures.accuracy_plot import accuracy_plot, loss_plot
from tff_pmc.reports.figures.adjustment_plot import adjustment_plot
from tff_pmc.reports.statistics.paired_statistics import ordering_of
from tff_pmc.reports.statistics.run_notes import batch_text, data_caveat


def report(results: Results, what: str = "priority") -> Report:
    """Returns `accuracy.png`, and `adjustment_RUN.png` for each run that was adjusted.

    Of a regression it is `loss.png`. Of several seeds the curves are means, in bands,
    and no adjustment is drawn, which is a single run's. `what` is the word for what the
    labels of the runs name.
    """
    title = title_of(results)
    if "accuracy" not in results.rounds:
        return Report(figures={"loss": loss_plot(results, title=title, what=what)})
    drawn = {"accuracy": accuracy_plot(results, title=title, what=what)}
    if len(results.seeds) > 1:
        return Report(figures=drawn)
    reference = next((x for x in results.labels if ordering_of(x) == BASELINE), "")
    trials = results.candidates[results.candidates["kind"] == "trial"]
    for label in dict.fromkeys(trials["label"]):
        run = results.only(label=label)
        figure = adjustment_plot(
            run,
            title=f"{run_styles.label_of(run.runs.iloc[0])}. {title_of(run)}",
            reference=results.only(label=reference) if reference else None,
        )
        drawn[f"adjustment_{file_name(label)}"] = figure
    return Report(figures=drawn)


def title_of(results: Results) -> str:
    """Returns a title for runs of one experiment: their data and how they trained.

    Of runs that do not have our settings, the published code's and those in memory, it
    is the data alone.
    """
    caveat, first = data_caveat(results), results.runs.iloc[0]
    data_name = str(first["data_name"])
    if pd.isna(first.get("experiment")) or pd.isna(first.get("local_epochs")):
        return ", ".join(filter(None, [data_name, caveat]))
    options = first["data_options"]
    clients = " or ".join(dict.fromkeys(map(str, results.runs["data_clients"])))
    dealt = options.get("partition", "")
    partition = f"{dealt}, " if dealt else ""
    name = "" if data_name == first["experiment"] else f"{data_name}, "
    fraction = float(options.get("image_fraction", 1))
    part = f"{fraction:g} of the images, " if fraction < 1 else ""
    normalization = first.get("normalization", "sum")
    other = "" if normalization == "sum" else f", normalization {normalization}"
    return (
        f"{first['experiment']}: {name}{part}{clients} clients, {partition}"
        f"E = {first['local_epochs']:.0f}, B = {batch_text(first['batch_size'])}, "
        f"rate {first['learning_rate']:g}{other}" + (f"\n({caveat})" if caveat else "")
    )


def file_name(label: str) -> str:
    """Returns the part of a file's name that a label makes.

    `MD-DS-LD_backtracking` of `MD,DS,LD (backtracking)`, and `dual_criterion_3_clients`
    of an algorithm.
    """
    if label.split(",")[0].isupper():
        label = label.replace(",", "-")
        return re.sub(r"[^A-Za-z0-9-]+", "_", label).strip("_")
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
