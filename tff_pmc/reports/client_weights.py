"""The weight of each client in a round, from the record of the cohorts."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import KEY, Results
from tff_pmc.reports import Report, figures, pages, plots, styles

MOST_SHOWN = 5
"""The clients of a run that the page names."""


def report(results: Results) -> Report:
    """Returns `weights.png`, and a page with the clients of the largest mean weight.

    It is empty for several seeds, and where no weights were recorded.
    """
    if len(results.seeds) > 1:
        return Report()
    relative = relative_weights(results)
    if not len(relative):
        return Report()
    head = ["run", "client", "rounds in the cohort", "mean weight, equal: 1"]
    grid = [head]
    for label, own in relative.groupby("label", sort=False):
        if own["relative"].sub(1).abs().max() < 1e-9:
            grid.append([str(label), "every client", "", "1.00"])
            continue
        means = own.groupby("client")["relative"].agg(["size", "mean"])
        for client, row in means.nlargest(MOST_SHOWN, "mean").iterrows():
            grid.append(
                [str(label), str(client), f"{row['size']:.0f}", f"{row['mean']:.2f}"]
            )
    notes = [
        "A weight is multiplied by the number of the round's counted clients, so that "
        "1 is an equal weight.",
        f"Below: the {MOST_SHOWN} clients of each run with the largest mean weight. "
        "cohort.csv has every client of every round.",
    ]
    page = pages.Page("Weights of the clients", [pages.Items(notes), pages.Table(grid)])
    figure = weights_plot(relative, title=plots.title_of(results))
    return Report(pages={"weights": page}, figures={"weights": figure})


def relative_weights(results: Results) -> pd.DataFrame:
    """Returns the cohorts' weights with `relative`, the weight where an equal one is 1.

    The columns are `seed`, `label`, `round`, `client`, `weight` and `relative`.
    Excluded clients are not among the rows.
    """
    cohort = results.cohort
    counted = cohort[cohort["excluded"] == 0].dropna(subset=["weight"])
    size = counted.groupby([*KEY, "round"])["weight"].transform("size")
    columns = counted[[*KEY, "round", "client", "weight"]]
    return columns.assign(relative=counted["weight"] * size)


@figures.styled
def weights_plot(relative: pd.DataFrame, title: str = "") -> Figure:
    """Draws the largest, the median and the smallest weight of each round.

    Args:
        relative: what `relative_weights` returns for the runs of one seed.
        title: the figure's title.
    """
    runs = list(relative.groupby("label", sort=False))
    figure, every = figures.panels(len(runs))
    for axes, (label, own) in zip(every, runs):
        by_round = own.groupby("round")["relative"]
        color = styles.style_of(str(label)).color
        axes.fill_between(
            by_round.min().index,
            by_round.min(),
            by_round.max(),
            color=color,
            alpha=0.25,
            linewidth=0,
        )
        axes.plot(by_round.median(), color=color)
        axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
        figures.name_panel(axes, str(label))
    figures.round_axis(every[0], int(relative["round"].max()))
    handles = [
        figures.handle("median of the cohort; band: smallest to largest"),
        figures.handle("equal weight", linestyle=":", linewidth=0.6),
    ]
    figures.label_axes(figure, every, "weight times clients", handles)
    figures.entitle(figure, f"Weights of the clients\n{title}")
    return figure
