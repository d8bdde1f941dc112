"""AdaFed's six figures, and a page of numbers read off their curves.

The paper's curves have no numbers beside what its text says of them, which
`claims/adafed.toml` has; so each figure has ours alone, under the paper's number and
claims.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.read import Run, conditions_of
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import (
    REPORTS,
    SEED_REPORTS,
    Report,
    figures,
    pages,
    paired,
    styles,
)
from tff_pmc.reports.paired import BySeed
from tff_pmc.reports.papers.claim_tables import claims
from tff_pmc.reports.papers.judging import TOO_SHORT, Answer
from tff_pmc.reports.papers.quantities import FEDAVG, class_f1, round_of_accuracy

ROUNDS = (1, 2, 3, 5, 10, 12, 15, 20)
TARGETS = (80, 90, 95)


class Published(NamedTuple):
    """A figure of the paper: its experiment, what it shows, and its curves' column.

    The column of `rounds.csv` is empty for the curves of each class.
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


def report(runs: Sequence[Run], *, numbers: Sequence[int]) -> Report:
    """Returns figures as `figureN.png`; the text names those without F1 on record.

    Of several runs of one label (under several seeds) the mean is drawn, and the lowest
    and highest of each round as a band.
    """
    drawn = {number: draw(runs, number) for number in numbers}
    missing = [
        f"AdaFed's Figure {number} is not drawn: the runs have no F1 on record"
        for number, figure in drawn.items()
        if figure is None
    ]
    found = {f"figure{number}": figure for number, figure in drawn.items() if figure}
    return Report("\n".join(missing), figures=found)


def seeds_report(by_seed: BySeed, *, baseline: str) -> Report:
    """Returns the experiment's figures of the runs, the baseline's among them."""
    runs = paired.every(by_seed)
    return report(runs, numbers=numbers_of(runs[0].settings["experiment"]))


def numbers_of(experiment: str) -> list[int]:
    """Returns the numbers of the figures of an experiment."""
    return [n for n, published in FIGURES.items() if published.experiment == experiment]


@figures.styled
def draw(runs: Sequence[Run], number: int) -> Optional[Figure]:
    """Returns a figure; None where the runs have no F1 on record."""
    published = FIGURES[number]
    panels = _panels(runs, published.column)
    if panels is None:
        return None
    of_classes = not published.column
    if of_classes:
        figure, grid = figures.panels(len(panels), columns=5)
        figures.name_panels(figure, grid, "F1")
    else:
        figure, axes = figures.single(height=3.1, width=5.2)
        grid = [axes]
        axes.set(xlabel=figures.ROUNDS, ylabel=published.shows)
    for axes, (name, curves) in zip(grid, panels.items()):
        for label, seeds in curves.items():
            style = styles.style_of(label)
            look: dict[str, Any] = {"marker": "o", "markersize": 2.5}
            if of_classes and label in styles.BASELINES:
                look = dict(styles.BEHIND)  # Others lie on it in some panels.
            figures.curve(axes, seeds, style, **look)
        axes.set_title(name)
    every = [c for p in panels.values() for seeds in p.values() for c in seeds]
    figures.close_around(grid[0], every)
    count = max(len(found) for p in panels.values() for found in p.values())
    handles, labels = grid[0].get_legend_handles_labels()
    columns, letters = (len(labels), 125) if of_classes else (3, 92)
    place = {"loc": "outside lower center", "ncols": columns}
    band = figures.band_words(count) or None
    figure.legend(handles, labels, title=band, **place)
    said = [
        claim.says.partition(" (Here")[0]
        for claim in claims("AdaFed")
        if str(number) in claim.place.split()
    ]
    words = textwrap.fill(" ".join(["The paper:", *said]), letters)
    figure.suptitle(f"{_title(runs[0], number)}\n{words}", fontsize=7)
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


Curves = dict[str, list[pd.Series]]


def _panels(runs: Sequence[Run], column: str) -> Optional[dict[str, Curves]]:
    """The curves of each panel by the runs' labels, one a seed."""
    panels: dict[str, Curves] = {}
    for run in runs:
        rounds = run.rounds.set_index("round")
        table = rounds.get([column]) if column else class_f1(run)
        if table is None:
            return None
        for name, curve in table.items():
            title = "" if column else f"class {name}"
            panels.setdefault(title, {}).setdefault(run.label, []).append(curve)
    return panels


for _number in FIGURES:
    REPORTS.register(
        f"adafed_figure{_number}", functools.partial(report, numbers=[_number])
    )
SEED_REPORTS.register("adafed_figures", seeds_report)


def page(runs: Sequence[Run]) -> Report:
    """Returns `adafed.csv` and `adafed.md`; FedAvg is the baseline of the others."""
    experiment = runs[0].settings["experiment"]
    table = pd.DataFrame(_rows(runs))
    numbers = [[*table], *([str(v) for v in row] for row in table.to_numpy())]
    drawn = [
        f"`figure{number}.png` is Figure {number}: {FIGURES[number].shows} of the "
        "server's model after each round"
        for number in numbers_of(experiment)
    ]
    notes = [
        f"AdaFed's simulation {experiment[-1]}. {'; '.join(drawn)}. Of the paper's "
        "curves there are no numbers but those in its claims.",
        *conditions_of(runs),
        f"`lead`: the mean difference to {FEDAVG} over rounds 1 to 5, and over all, "
        "in points of accuracy. One run each and no noise floor: a lead of a point or "
        "two shows nothing; --seeds shows what does.",
        "`macro F1`: the mean of the classes' F1 on the server's images, after the "
        "last round.",
    ]
    title = f"{experiment}: accuracy on the reported images"
    parts: dict[str, pages.Grid] = {"Round by round": numbers}
    said = _claims(runs, experiment)
    if len(said) > 1:
        parts["What the paper claims of this simulation"] = said
    return pages.report("adafed", title, notes, parts, table, digits=0)


def _claims(runs: Sequence[Run], experiment: str) -> list[list[str]]:
    """The claims that this experiment's runs alone can judge."""
    lines = [["place", "claim", "here", "verdict", "why"]]
    for claim in claims("AdaFed"):
        if claim.experiments == (experiment,):
            try:
                answer = claim.judge({experiment: runs})
            except RecordError as error:
                answer = Answer("", TOO_SHORT, str(error))
            lines.append([claim.place, claim.says, *answer[:3]])
    return lines


def _rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    base_of = {run.note: run.rounds["accuracy"] for run in runs if run.system == FEDAVG}
    rows = []
    for run in runs:
        accuracy = run.rounds["accuracy"]
        row: dict[str, Any] = {"system": run.label}
        known = [number for number in ROUNDS if number <= len(accuracy)]
        row |= {f"round {n}": round(float(accuracy[n - 1]), 4) for n in known}
        for target in TARGETS:
            reached = round_of_accuracy(run, target)
            row[f"to {target} %"] = str(reached or "-")
        if run.note in base_of:
            lead = 100 * (accuracy - base_of[run.note]).dropna()
            row["lead 1-5"] = round(float(lead[:5].mean()), 2)
            row["lead"] = round(float(lead.mean()), 2)
        if "macro_f1" in run.rounds:
            row["macro F1"] = round(float(run.rounds["macro_f1"].iloc[-1]), 4)
        rows.append(row)
    return rows


REPORTS.register("adafed_page", page)
