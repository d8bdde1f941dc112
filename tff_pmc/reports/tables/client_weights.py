"""The weight of each client in a round, from the record of the cohorts."""

from __future__ import annotations

from tff_pmc.record.results import Results
from tff_pmc.reports import REPORTS, Report, page_model, single_seed_only
from tff_pmc.reports.figures import run_labels, weights_plot
from tff_pmc.reports.statistics import weight_statistics

MAX_SHOWN = 5
"""The clients of a run that the page names."""


@single_seed_only
def report(results: Results) -> Report:
    """Returns `weights.png`, and a page with the clients of the largest mean weight.

    It is empty for several seeds, and where no weights were recorded.
    """
    relative = weight_statistics.relative_weights(results)
    if not len(relative):
        return Report()
    head = ["run", "client", "rounds in the cohort", "mean weight, equal: 1"]
    grid = [head]
    for label, weights_of_run in relative.groupby("label", sort=False):
        if weights_of_run["relative"].sub(1).abs().max() < 1e-9:
            grid.append([str(label), "every client", "", "1.00"])
            continue
        means = weights_of_run.groupby("client")["relative"].agg(["size", "mean"])
        for client, row in means.nlargest(MAX_SHOWN, "mean").iterrows():
            grid.append(
                [str(label), str(client), f"{row['size']:.0f}", f"{row['mean']:.2f}"]
            )
    notes = [
        "A weight is multiplied by the number of the round's counted clients, so that "
        "1 is an equal weight.",
        f"Below: the {MAX_SHOWN} clients of each run with the largest mean weight. "
        "cohort.csv has every client of every round.",
    ]
    page = page_model.Page(
        "Weights of the clients", [page_model.Items(notes), page_model.Table(grid)]
    )
    figure = weights_plot.weights_plot(relative, title=run_labels.title_of(results))
    return Report(pages={"weights": page}, figures={"weights": figure})


REPORTS.register("weights", report)
