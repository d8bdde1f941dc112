"""PMC's Figures 2a, 2b and 3 from runs, as captioned and as the script draws them.

As their captions say, they have the accuracy of the global model on all clients' test
examples (section 5.3: the local accuracies, weighted by the size of the test sets),
over all rounds, of DS, the two other criteria and the six orderings. The paper has the
nine as lines of one plot; here each is a panel of its own, with DS behind it in gray,
because lines that lie on each other cannot be read. No numbers of the figures are
printed beside their plots. Diamonds are the rounds in which half of the devices reach a
target, ours and those of the printed table of the same runs; see `printed_rounds`.

The authors' published script draws, for each ordering, the accuracy from 0 up to the
first round in which it reaches a target, with dashed lines at the target and at that
round. It is set to CelebA and 80 %. These are figures of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.read import BASELINE, Run, data_caveat, with_caveat
from tff_pmc.reports import Report, figures, styles
from tff_pmc.reports.pages import grid_text
from tff_pmc.reports.papers import pmc_paper, printed_rounds, published
from tff_pmc.reports.papers.pmc_paper import PAPER, PaperResults
from tff_pmc.reports.rounds_to_target import reach_of, reach_rule, reaches

TITLE = "PMC Figure {figure}: {experiment}, test accuracy in each round"
SCRIPT_TITLE = (
    "As the published script draws Figure {figure}: {experiment}, up to {target} % on "
    "all clients"
)
"""The captions; a caveat of the data follows on a line of its own."""

TARGET = 80
"""Target accuracy, percent, of the published script."""

Curve = npt.NDArray[np.float64]
Reached = Mapping[str, tuple[Curve, Optional[int]]]
"""Label -> the accuracies that are drawn, and the round that reaches the target."""

_MEAN_OF = 5
_LINES = "#333333"


def report(runs: Sequence[Run], *, experiment: str) -> Report:
    """Returns `figureN.png` and `figureN.csv`, and the best rounds as text.

    N is 2a (`mnist_iid`), 2b (`mnist_noniid`) or 3 (`celeba`). The CSV has the columns
    experiment, round and accuracy, and `data` where the data has a caveat.
    """
    paper = PAPER[experiment]
    rows = paper.rows(runs)
    if not rows:
        text = f"PMC Figure {paper.figure} is left out: no run of its orderings."
        return Report(text)
    curves = {name: run.accuracy for name, run in rows.items()}
    grid = [["ordering", "best accuracy", "in round", "in the last round"]]
    for name, curve in curves.items():
        best = int(curve.argmax())
        grid.append([name, f"{curve[best]:.4f}", f"{best + 1}", f"{curve[-1]:.4f}"])
    caption = _title_of(TITLE, paper, rows)
    notes = [
        "The paper prints no numbers of this figure: its curves are ours alone, and "
        "its diamonds are of the table of rounds."
    ]
    if paper.text_numbers:
        notes.append(
            "The numbers of the paper's text are beside ours in "
            f"table{paper.rounds_table}.md."
        )
    if paper.labels_in_doubt:
        notes.append(
            "The paper's labels IS and CB are probably exchanged here, as in Table 6."
        )
    words = [caption, grid_text(grid), "\n".join([*paper.notes(runs), *notes])]
    return _made(f"figure{paper.figure}", words, rows, curves, draw(rows, caption))


def script_report(runs: Sequence[Run], *, experiment: str) -> Report:
    """Returns `figureN_script.png` and `.csv`, and the rounds to the target as text.

    See `report`; the CSV has a column target_accuracy_pct, too, and a row a round that
    is drawn. Runs of different rules are a `RecordError`.
    """
    paper = PAPER[experiment]
    rows = paper.rows(runs)
    if not rows:
        return Report()  # `report` says why.
    reach = reach_of(runs)
    curves = {name: accuracy_until(run) for name, run in rows.items()}
    base = curves.get(BASELINE, (None, None))[1]
    grid = [["ordering", "round", "gain over DS"]]
    for name, (_, reached) in curves.items():
        gain = f"{base - reached:+d}" if base and reached and name != BASELINE else ""
        grid.append([name, published.DASH if reached is None else f"{reached}", gain])
    goal = f"{'above ' * (reach == 'above')}{TARGET} %"
    head = f"Round in which the accuracy over all test examples first is {goal}"
    caption = _title_of(SCRIPT_TITLE, paper, rows)
    notes = "\n".join([*paper.notes(runs), reach_rule(reach)])
    words = [caption, f"{head}\n{grid_text(grid)}", notes]
    drawn = {label: curve for label, (curve, _) in curves.items()}
    figure, more = draw_script(curves, caption), {"target_accuracy_pct": TARGET}
    return _made(f"figure{paper.figure}_script", words, rows, drawn, figure, **more)


def _title_of(title: str, paper: PaperResults, rows: Mapping[str, Run]) -> str:
    """Returns the caption of a figure, with a caveat of its data below it."""
    words = title.format(figure=paper.figure, experiment=paper.title, target=TARGET)
    caveat = data_caveat(rows.values())
    return f"{words}\n({caveat})" if caveat else words


def _made(
    name: str,
    words: Sequence[str],
    rows: Mapping[str, Run],
    curves: Mapping[str, Curve],
    figure: Figure,
    **more: object,
) -> Report:
    """Returns a figure, and a table with a row a round of each of its curves."""
    parts = []
    for label, curve in curves.items():
        start = {"experiment": published.pmc_experiment(label), **more}
        own = {"round": range(1, len(curve) + 1), "accuracy": curve}
        parts.append(pd.DataFrame({**start, **own}))
    table = with_caveat(pd.concat(parts), rows.values())
    return Report("\n\n".join(words), {name: table}, figures={name: figure}, digits=10)


@figures.styled
def draw(rows: Mapping[str, Run], title: str) -> Figure:
    """Returns the figure, a panel for each run but that of DS, which is behind them.

    A thin line is the accuracy in each round, and the thick one its mean over five
    rounds, which two curves that jump from round to round can be compared by.
    """
    baseline = rows.get(BASELINE)
    others = {name: run for name, run in rows.items() if name != BASELINE}
    shown = others or rows
    figure, every = figures.panels(len(shown))
    for axes, (name, run) in zip(every, shown.items()):
        if baseline is not None and others:
            _curve(axes, baseline, BASELINE, behind=True)
        _curve(axes, run, name)
        axes.set_title(published.pmc_experiment(name))
    figures.share_limits(every[0], np.concatenate([r.accuracy for r in rows.values()]))
    figures.round_axis(every[0], max(len(run.accuracy) for run in rows.values()))
    marked = [
        printed_rounds.draw(axes, [run], styles.style_of(name))
        for axes, (name, run) in zip(every, shown.items())
    ]
    handles = [
        figures.handle("each round", lw=0.5, alpha=0.6),
        figures.handle(f"mean of {_MEAN_OF} rounds"),
    ]
    if baseline is not None and others:
        color = styles.style_of(BASELINE).color
        handles.append(figures.handle(f"gray: {BASELINE}", color))
    if any(marked):
        handles += printed_rounds.legend_handles()
    figures.name_panels(figure, every, figures.ACCURACY, handles, ncols=5)
    figures.entitle(figure, title)
    return figure


def _curve(axes: Any, run: Run, name: str, *, behind: bool = False) -> None:
    values = pd.Series(run.accuracy, range(1, len(run.accuracy) + 1))
    style = styles.style_of(name)
    if not behind:
        axes.plot(values, color=style.color, linewidth=0.5, alpha=0.6)
    mean = values.rolling(_MEAN_OF, center=True, min_periods=1).mean()
    width = 1.0 if behind else 1.4
    axes.plot(mean, color=style.color, linewidth=width, label=style.label)


def accuracy_until(run: Run) -> tuple[Curve, Optional[int]]:
    """Returns the accuracy up to the round of the target, and that, or all rounds."""
    correct, examples = run.totals
    reached = np.flatnonzero(reaches(correct, examples, TARGET, run.reach))
    last = int(reached[0]) + 1 if reached.size else None
    return correct[:last] / examples, last


@figures.styled
def draw_script(curves: Reached, title: str) -> Figure:
    """Returns the figure, a panel for each curve."""
    figure, every = figures.panels(len(curves), columns=3)
    baseline = curves.get(BASELINE)
    for axes, (name, (curve, reached)) in zip(every, curves.items()):
        drawn = [(name, curve, 1.2)]
        if baseline is not None and name != BASELINE:
            drawn.insert(0, (BASELINE, baseline[0], 0.9))
        for label, values, width in drawn:
            color = styles.style_of(label).color
            axes.plot([0.0, *values], color=color, linewidth=width)
        axes.axhline(TARGET / 100, color=_LINES, linestyle="--", linewidth=0.8)
        where = "not reached"
        if reached is not None:
            axes.axvline(reached, color=_LINES, linestyle="--", linewidth=0.8)
            where = f"round {reached}"
        axes.set_title(f"{styles.style_of(name).label}: {where}")
    # From 0, as the script has it, up to the target or what is above it.
    highest = max(TARGET / 100, *(curve.max() for curve, _ in curves.values()))
    every[0].set_ylim(0, min(1.01, highest + 0.04))
    last = max(len(curve) for curve, _ in curves.values())
    figures.round_axis(every[0], round(last * 1.03), first=0)
    figures.name_panels(figure, every, figures.ACCURACY)
    behind = "\nGray: DS." if baseline is not None and len(curves) > 1 else ""
    figures.entitle(figure, f"{title}{behind}")
    return figure


pmc_paper.register("pmc_figure{figure}", report)
pmc_paper.register("pmc_figure{figure}_script", script_report)
