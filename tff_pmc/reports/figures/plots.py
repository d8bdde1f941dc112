"""The report of a folder's curves."""

from __future__ import annotations

from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report
from tff_pmc.reports.figures import difference_plot
from tff_pmc.reports.figures.accuracy_plot import accuracy_plot, loss_plot
from tff_pmc.reports.figures.adjustment_plot import adjustment_plot
from tff_pmc.reports.figures.run_labels import file_name, label_of, title_of
from tff_pmc.reports.statistics import measures
from tff_pmc.reports.statistics.paired_statistics import ordering_of


def report(results: Results, what: str = "priority") -> Report:
    """Returns the figures of runs over the rounds.

    They are `accuracy.png` (for a regression `loss.png`), `metric_NAME.png` for each
    metric of the model, `difference.png` with the differences from the baseline, and
    `adjustment_RUN.png` for each run that was adjusted. For several seeds the curves
    are means with bands, and adjustments, which belong to single runs, are not drawn.
    `what` is the legend's title: what the labels of the runs name.
    """
    title = title_of(results)
    options = {"title": title, "what": what}
    drawn = {}
    if is_classification := "accuracy" in results.rounds:
        drawn["accuracy"] = accuracy_plot(results, **options)
    if "test_loss" in results.rounds:
        drawn["loss"] = loss_plot(results, **options)
    for name in measures.model_metrics(results):
        drawn[f"metric_{name}"] = loss_plot(results, **options, column=name)
    if difference_plot.has_differences(results):
        column = "accuracy" if is_classification else "test_loss"
        drawn["difference"] = difference_plot.difference_plot(
            results, column, title=title
        )
    if len(results.seeds) > 1 or not is_classification:
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
