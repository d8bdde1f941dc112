"""The plots of a set of runs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tff_pmc.record.read import BASELINE, Run, data_caveat
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import Report, styles
from tff_pmc.reports.accuracy_plot import accuracy_plot
from tff_pmc.reports.adjustment_plot import adjustment_plot
from tff_pmc.reports.paired import BySeed, every, ordering_of


def report(runs: Sequence[Run], what: str = "priority") -> Report:
    """Returns `accuracy.png`, and `adjustment_RUN.png` for each run that was adjusted.

    `what` is the word for what the labels of the runs name.
    """
    drawn = {"accuracy": accuracy_plot(runs, title=title_of(runs), what=what)}
    baseline = next((run for run in runs if ordering_of(run.label) == BASELINE), None)
    for run in runs:
        if run.candidates is not None:
            title = f"{styles.label_of(run)}. {title_of([run])}"
            figure = adjustment_plot(run, title=title, reference=baseline)
            drawn[f"adjustment_{os.path.basename(run.path)}"] = figure
    return Report(figures=drawn)


def seeds_report(by_seed: BySeed, what: str = "priority") -> Report:
    """Returns `accuracy.png` of the runs of each seed: means, in bands."""
    runs = every(by_seed)
    figure = accuracy_plot(runs, title=title_of(runs), what=what)
    return Report(figures={"accuracy": figure})


def title_of(runs: Sequence[Run]) -> str:
    """Returns a title for runs of one experiment: their data and how they trained.

    The published code's runs, and those that were made by hand, do not have our
    settings: of them it is the data alone.
    """
    caveat = data_caveat(runs)
    settings, data = runs[0].settings, runs[0].data
    try:
        experiment, epochs = settings["experiment"], settings["local_epochs"]
        size, rate = settings["batch_size"], settings["learning_rate"]
        clients = dict.fromkeys(str(run.data["clients"]) for run in runs)
        own = str(data["name"])
    except RecordError:
        return ", ".join(filter(None, [str(data.get("name", "")), caveat]))
    dealt = data.get("options", {}).get("partition", "")
    partition = f"{dealt}, " if dealt else ""
    name = "" if own == experiment else f"{own}, "
    fraction = float(data.get("options", {}).get("image_fraction", 1))
    part = f"{fraction:g} of the images, " if fraction < 1 else ""
    normalization = settings.get("normalization", "sum")
    other = "" if normalization == "sum" else f", normalization {normalization}"
    return (
        f"{experiment}: {name}{part}{' or '.join(clients)} clients, "
        f"{partition}E = {epochs}, B = {size or 'all'}, rate {rate:g}{other}"
        + (f"\n({caveat})" if caveat else "")
    )
