"""The report of a folder's curves."""

from __future__ import annotations

from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report
from tff_pmc.reports.figures.accuracy_plot import accuracy_plot, loss_plot
from tff_pmc.reports.figures.adjustment_plot import adjustment_plot
from tff_pmc.reports.figures.run_labels import file_name, label_of, title_of
from tff_pmc.reports.statistics.paired_statistics import ordering_of


def report(results: Results, what: str = "priority") -> Report:
    """Returns `accuracy.png`, and `adjustment_RUN.png` for each run that was adjusted.

    For a regression it is `loss.png`. For several seeds the curves are means with
    bands, and adjustments, which belong to single runs, are not drawn. `what` is the
    legend's title: what the labels of the runs name.
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
            title=f"{label_of(run.runs.iloc[0])}. {title_of(run)}",
            reference=results.only(label=reference) if reference else None,
        )
        drawn[f"adjustment_{file_name(label)}"] = figure
    return Report(figures=drawn)
