"""AdaFed's six figures: curves of the server's model over the rounds.

The paper's curves have no numbers beside what its text says of them, which
`claims/adafed.toml` has; so each figure has ours alone, under the paper's number and
claims.
"""

from __future__ import annotations

import functools
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports import REPORTS, SEED_REPORTS, figures, styles
from tff_pmc.reports.papers.adafed_judges import class_f1
from tff_pmc.reports.papers.claim_tables import claims
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
    figures.save(drawn, os.path.join(folder, f"figure{number}.png"))
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


@figures.styled
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
    if of_classes:
        figure, grid = figures.panels(len(panels), columns=5)
    else:
        figure, axes = figures.single(height=3.1, width=5.2)
        grid = [axes]
    every = [c for p in panels.values() for seeds in p.values() for c in seeds]
    for axes, (name, curves) in zip(grid, panels.items()):
        _draw_curves(axes, curves)
        axes.set_title(name)
    figures.share_limits(grid[0], (value for curve in every for value in curve))
    figures.round_axis(grid[0], max(int(curve.index.max()) for curve in every))
    seeds = max(len(found) for p in panels.values() for found in p.values())
    handles, labels = grid[0].get_legend_handles_labels()
    if of_classes:
        figures.name_axes(figure, grid, "communication round", "F1")
    else:
        grid[0].set_xlabel("communication round")
        grid[0].set_ylabel(published.shows)
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels) if of_classes else 2,
        title=figures.band_words(seeds) or None,
    )
    said = textwrap.fill(_claims(number), 125 if of_classes else 92)
    figure.suptitle(f"{_title(runs[0], number)}\n{said}", fontsize=7)
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
    said = [
        claim.says for claim in claims("AdaFed") if str(number) in claim.place.split()
    ]
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
        figures.curve(axes, seeds, styles.style_of(name), marker="o", markersize=2.5)


for _number in FIGURES:
    REPORTS.register(
        f"adafed_figure{_number}", functools.partial(write, number=_number)
    )
SEED_REPORTS.register("adafed_figures", write_seeds)
