"""The report of a folder's curves."""

from __future__ import annotations

from matplotlib.figure import Figure

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

    They are `accuracy.png` (for a regression `loss.png`), `difference.png` with its
    differences from the baseline, the same of each metric of the model in
    `metric_NAME.png` and `difference_NAME.png`, `train_loss.png`, and
    `adjustment_RUN.png` for each run that was adjusted. For several seeds the curves
    are means with bands, and adjustments, which belong to single runs, are not drawn.
    `what` is the legend's title: what the labels of the runs name.
    """
    title = title_of(results)
    options = {"title": title, "what": what}
    drawn: dict[str, Figure] = {}
    if is_classification := "accuracy" in results.rounds:
        drawn["accuracy"] = accuracy_plot(results, **options)
        _add_difference(drawn, "difference", results, "accuracy")
    if "test_loss" in results.rounds:
        drawn["loss"] = loss_plot(results, **options)
        if not is_classification:
            _add_difference(drawn, "difference", results, "test_loss")
    for name in measures.model_metrics(results):
        drawn[f"metric_{name}"] = loss_plot(results, **options, column=name)
        _add_difference(drawn, f"difference_{name}", results, name)
    if "train_loss" in results.rounds and results.rounds["train_loss"].notna().any():
        drawn["train_loss"] = loss_plot(results, **options, column="train_loss")
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


def _add_difference(
    drawn: dict[str, Figure], name: str, results: Results, column: str
) -> None:
    """Adds the differences from the baseline, where there are any."""
    if difference_plot.has_differences(results, column):
        drawn[name] = difference_plot.difference_plot(
            results, column, title=title_of(results)
        )
