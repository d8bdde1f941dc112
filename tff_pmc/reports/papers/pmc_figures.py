"""PMC's Figures 2a, 2b and 3 from runs, as captioned and as the script draws them.

As their captions say, they have the accuracy of the global model on all clients' test
examples (section 5.3: the local accuracies, weighted by the size of the test sets),
over all rounds, of DS, the two other criteria and the six orderings. The paper has the
nine as lines of one plot; here each is a panel of its own, with DS behind it in gray,
because lines that lie on each other cannot be read. No numbers of the figures are
printed beside their plots. Marks are the rounds in which half of the devices reach a
target, ours and those of the printed table of the same runs. The divergence is MD in
all plots, as in the code; the paper prints MW.

The authors' published script draws, for each ordering, the accuracy from 0 up to the
first round in which it reaches a target, with dashed lines at the target and at that
round. It is set to CelebA and 80 %. These are figures of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.read import BASELINE, Run, data_caveat, with_caveat
from tff_pmc.reports import Report, figures, styles
from tff_pmc.reports.accuracy_plot import mark_handles, mark_rounds
from tff_pmc.reports.pages import grid_text
from tff_pmc.reports.papers import pmc_paper, published
from tff_pmc.reports.papers.pmc_paper import PAPER
from tff_pmc.reports.rounds_to_target import reach_of, reach_rule, reaches

TARGET = 80
"""Target accuracy, percent, of the published script."""

Curve = npt.NDArray[np.float64]

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
    title = f"PMC Figure {paper.figure}: {paper.title}, test accuracy in each round"
    notes = [
        *paper.notes(runs),
        "The paper prints no numbers of this figure: its curves are ours alone, and "
        "its marks are of the table of rounds.",
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
    table, caption = _table(rows, curves), _with_caveat(title, rows)
    text = "\n\n".join([caption, grid_text(grid), "\n".join(notes)])
    name, figure = f"figure{paper.figure}", draw(rows, caption)
    return Report(text, {name: table}, figures={name: figure}, digits=10)


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
    reached = {name: _round_of_target(run) for name, run in rows.items()}
    curves = {name: run.accuracy[: reached[name]] for name, run in rows.items()}
    base = reached.get(BASELINE)
    grid = [["ordering", "round", "gain over DS"]]
    for name, number in reached.items():
        gain = f"{base - number:+d}" if base and number and name != BASELINE else ""
        grid.append([name, f"{number or published.DASH}", gain])
    goal = f"{'above ' * (reach == 'above')}{TARGET} %"
    head = f"Round in which the accuracy over all test examples first is {goal}"
    title = (
        f"As the published script draws Figure {paper.figure}: {paper.title}, up to "
        f"{TARGET} % on all clients"
    )
    table = _table(rows, curves, target_accuracy_pct=TARGET)
    caption, notes = _with_caveat(title, rows), [*paper.notes(runs), reach_rule(reach)]
    text = "\n\n".join([caption, f"{head}\n{grid_text(grid)}", "\n".join(notes)])
    name, figure = f"figure{paper.figure}_script", draw_script(curves, reached, caption)
    return Report(text, {name: table}, figures={name: figure}, digits=10)


def _with_caveat(title: str, rows: Mapping[str, Run]) -> str:
    """Returns a caption, with a caveat of the data below it."""
    caveat = data_caveat(rows.values())
    return f"{title}\n({caveat})" if caveat else title


def _table(
    rows: Mapping[str, Run], curves: Mapping[str, Curve], **more: object
) -> pd.DataFrame:
    """Returns a table with a row a round of each curve."""
    parts = []
    for label, curve in curves.items():
        start = {"experiment": published.pmc_experiment(label), **more}
        own = {"round": range(1, len(curve) + 1), "accuracy": curve}
        parts.append(pd.DataFrame({**start, **own}))
    return with_caveat(pd.concat(parts), rows.values())


@figures.styled
def draw(rows: Mapping[str, Run], title: str) -> Figure:
    """Returns the figure, a panel for each run but that of DS, which is behind them.

    A thin line is the accuracy in each round, and the thick one its mean over five
    rounds, which two curves that jump from round to round can be compared by.
    """
    rows = {name: rows[name] for name in styles.in_order(rows)}
    others = {name: run for name, run in rows.items() if name != BASELINE}
    behind, shown = (rows.get(BASELINE), others) if others else (None, rows)
    figure, every = figures.panels(len(shown), columns=4)
    for axes, (name, run) in zip(every, shown.items()):
        color = styles.style_of(name).color
        if behind is not None:
            base_color = styles.style_of(BASELINE).color
            axes.plot(_smooth(behind), color=base_color, **styles.BEHIND)
        axes.plot(_by_round(run), color=color, linewidth=0.5, alpha=0.6)
        axes.plot(_smooth(run), color=color, linewidth=1.4)
        axes.set_title(styles.style_of(name).label)
    figures.close_around(every[0], [*map(_by_round, rows.values())])
    marked: set[int] = set()
    for axes, (name, run) in zip(every, shown.items()):
        marked |= mark_rounds(axes, [run], styles.style_of(name), _smooth(run))
    handles = [
        figures.handle("each round", lw=0.5, alpha=0.6),
        figures.handle(f"mean of {_MEAN_OF} rounds"),
    ]
    if behind is not None:
        handles.append(figures.handle(BASELINE, base_color, **styles.BEHIND))
    handles += mark_handles(marked)
    figures.name_panels(figure, every, figures.ACCURACY, handles)
    figures.entitle(figure, title)
    return figure


def _by_round(run: Run) -> pd.Series[float]:
    return pd.Series(run.accuracy, range(1, len(run.accuracy) + 1))


def _smooth(run: Run) -> pd.Series[float]:
    """Returns the accuracy by round, as a mean of those around it."""
    return _by_round(run).rolling(_MEAN_OF, center=True, min_periods=1).mean()


def _round_of_target(run: Run) -> Optional[int]:
    """Returns the first round in which all clients together have the target."""
    correct, examples = run.totals
    reached = np.flatnonzero(reaches(correct, examples, TARGET, run.reach))
    return int(reached[0]) + 1 if reached.size else None


@figures.styled
def draw_script(
    curves: Mapping[str, Curve], reached: Mapping[str, Optional[int]], title: str
) -> Figure:
    """Returns the figure, a panel for each curve, with the round of the target."""
    curves = {name: curves[name] for name in styles.in_order(curves)}
    figure, every = figures.panels(len(curves), columns=3)
    for axes, (name, curve) in zip(every, curves.items()):
        if name != BASELINE and BASELINE in curves:
            color = styles.style_of(BASELINE).color
            axes.plot([0.0, *curves[BASELINE]], color=color, **styles.BEHIND)
        axes.plot([0.0, *curve], color=styles.style_of(name).color, linewidth=1.2)
        axes.axhline(TARGET / 100, color=_LINES, linestyle="--", linewidth=0.8)
        where = "not reached"
        if reached[name]:
            axes.axvline(reached[name], color=_LINES, linestyle="--", linewidth=0.8)
            where = f"round {reached[name]}"
        axes.set_title(f"{styles.style_of(name).label}: {where}")
    # From 0, as the script has it, up to the target or what is above it.
    highest = max(TARGET / 100, *(curve.max() for curve in curves.values()))
    every[0].set_ylim(0, min(1.01, highest + 0.04))
    last = max(map(len, curves.values()))
    figures.round_axis(every[0], round(last * 1.03), first=0)
    figures.name_panels(figure, every, figures.ACCURACY)
    behind = "\nGray: DS." if BASELINE in curves and len(curves) > 1 else ""
    figures.entitle(figure, f"{title}{behind}")
    return figure


pmc_paper.register("pmc_figure{figure}", report)
pmc_paper.register("pmc_figure{figure}_script", script_report)
