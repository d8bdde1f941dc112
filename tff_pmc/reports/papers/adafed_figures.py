"""AdaFed's six figures: curves of the server's model over the rounds.

The paper's curves have no numbers beside what its text says of them, which
`adafed_claims` judges; so each figure has ours alone, under the paper's number and
claims.
"""

from __future__ import annotations

import functools
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports import REPORTS, SEED_REPORTS
from tff_pmc.reports.papers.adafed_claims import CLAIMS
from tff_pmc.reports.papers.adafed_judges import FEDAVG, class_f1
from tff_pmc.reports.read import Run


class Published(NamedTuple):
    """A figure of the paper.

    Attributes:
        experiment: the named experiment of its simulation.
        column: what `rounds.csv` calls its curves; empty for those of each class.
        shows: what the curves are, in words.
    """

    experiment: str
    column: str
    shows: str


FIGURES = {
    1: Published("adafed_1", "accuracy", "accuracy"),
    2: Published("adafed_2", "accuracy", "accuracy"),
    3: Published("adafed_2", "macro_f1", "macro F1"),
    4: Published("adafed_2", "", "F1 of each class"),
    5: Published("adafed_3", "accuracy", "accuracy"),
    6: Published("adafed_3", "macro_f1", "macro F1"),
}
"""AdaFed's figures by their numbers."""


def write(
    runs: Sequence[Run],
    folder: str,
    *,
    number: int,
    strictly_above: Optional[bool] = None,
) -> str:
    """Draws one figure into `figureN.png`.

    Args:
        runs: the curves; of several runs of one label (under several seeds) the mean
            is drawn, and the lowest and highest of each round as a band.
        folder: where the figure goes; it is replaced.
        number: of the paper's figure.
        strictly_above: not used: there are no targets here.

    Returns:
        Nothing, or that these runs have no F1 on record to draw.
    """
    drawn = draw(runs, number)
    if drawn is None:
        return f"AdaFed's Figure {number} is not drawn: the runs have no F1 on record"
    drawn.savefig(os.path.join(folder, f"figure{number}.png"))
    return ""


def write_seeds(
    by_seed: Mapping[int, Sequence[Run]],
    folder: str,
    *,
    baseline: str,
    strictly_above: Optional[bool] = None,
) -> str:
    """Draws the experiment's figures of the runs under several seeds.

    Args:
        by_seed: the runs of each seed.
        folder: see `write`.
        baseline: not used: all curves are drawn.
        strictly_above: not used: there are no targets here.
    """
    runs = [run for of_seed in by_seed.values() for run in of_seed]
    experiment = runs[0].settings["experiment"]
    texts = [
        write(runs, folder, number=number)
        for number, published in FIGURES.items()
        if published.experiment == experiment
    ]
    return "\n".join(filter(None, texts))


def draw(runs: Sequence[Run], number: int) -> Optional[Figure]:
    """Returns a figure; None where the runs have no F1 on record.

    Args:
        runs: see `write`.
        number: of the paper's figure.
    """
    published = FIGURES[number]
    panels = _panels(runs, published.column)
    if panels is None:
        return None
    of_classes = not published.column
    size = (11.0, 5.6) if of_classes else (6.4, 4.4)
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    rows, columns = (2, math.ceil(len(panels) / 2)) if of_classes else (1, 1)
    grid: Any = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    every = [c for p in panels.values() for seeds in p.values() for c in seeds]
    lowest = math.floor(10 * min(curve.min() for curve in every)) / 10
    for axes, (name, curves) in zip(grid, panels.items()):
        _draw_curves(axes, curves)
        axes.set_ylim(lowest, 1)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("communication round", fontsize=8)
        axes.set_ylabel(published.shows if not of_classes else "F1", fontsize=8)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    grid[0].legend(fontsize=7)
    figure.suptitle(_title(runs[0], number), fontsize=9)
    said = textwrap.fill(_claims(number), 150 if of_classes else 95)
    figure.supxlabel(said, fontsize=7)
    return figure


def _title(run: Run, number: int) -> str:
    published, settings = FIGURES[number], run.settings
    return (
        f"AdaFed Figure {number}, simulation {published.experiment[-1]}: "
        f"{published.shows} of the server's model\n"
        f"{run.data['clients']} clients, {settings['model']}, "
        f"{settings['client_optimizer']} {settings['learning_rate']:g}, "
        f"E = {settings['local_epochs']}, B = {settings['batch_size']}, "
        f"{settings['rounds']} rounds"
    )


def _claims(number: int) -> str:
    """What the paper says of a figure, in our words."""
    said = [claim.says for claim in CLAIMS if str(number) in claim.place.split()]
    return " ".join(["The paper:", *said])


Curves = dict[str, list[pd.Series]]


def _panels(runs: Sequence[Run], column: str) -> Optional[dict[str, Curves]]:
    """The curves of each panel by the runs' labels, one a seed."""
    panels: dict[str, Curves] = {}
    for run in runs:
        table = run.rounds.set_index("round")
        if not column:
            found = class_f1(run)
            if found is None:
                return None
            table = found
        elif column not in table:
            return None
        else:
            table = table[[column]]
        for name, curve in table.items():
            title = "" if column else f"class {name}"
            panels.setdefault(title, {}).setdefault(run.label, []).append(curve)
    return panels


def _draw_curves(axes: Any, curves: Curves) -> None:
    for name, seeds in curves.items():
        table = pd.concat(seeds, axis=1)
        (line,) = axes.plot(
            table.index,
            table.mean(axis=1),
            label=name if len(seeds) == 1 else f"{name}, mean of {len(seeds)} seeds",
            color="0.35" if name == FEDAVG else None,
            linestyle="--" if name == FEDAVG else "-",
            marker="o",
            markersize=3,
        )
        if len(seeds) > 1:
            low, high = table.min(axis=1), table.max(axis=1)
            color = line.get_color()
            axes.fill_between(table.index, low, high, color=color, alpha=0.15, lw=0)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)


for _number in FIGURES:
    REPORTS.register(
        f"adafed_figure{_number}", functools.partial(write, number=_number)
    )
SEED_REPORTS.register("adafed_figures", write_seeds)
