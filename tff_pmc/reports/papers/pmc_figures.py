"""PMC's Figures 2a, 2b and 3 from runs: test accuracy in each round.

As their captions say, they have the accuracy of the global model on all clients' test
examples (section 5.3: the local accuracies, weighted by the size of the test sets),
over all rounds, of DS, the two other criteria and the six orderings. The paper has the
nine as lines of one plot; here each is a panel of its own, with DS behind it in gray,
because lines that lie on each other cannot be read. No numbers of the figures are
printed beside their plots. Diamonds are the rounds in which half of the devices reach a
target, ours and those of the printed table of the same runs; see `printed_rounds`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.read import BASELINE, Run, data_caveat, with_caveat
from tff_pmc.reports import Report, figures, styles
from tff_pmc.reports.pages import grid_text
from tff_pmc.reports.papers import pmc_paper, printed_rounds, published
from tff_pmc.reports.papers.pmc_paper import PAPER, PaperResults

TITLE = "PMC Figure {figure}: {experiment}, test accuracy in each round"
"""The caption of each figure; a caveat of the data follows on a line of its own."""

Curves = Mapping[str, npt.NDArray[np.float64]]
"""Label -> the accuracy in each round."""

_MEAN_OF = 5


def report(runs: Sequence[Run], *, experiment: str) -> Report:
    """Returns `figureN.png` and `figureN.csv`, and the best rounds as text.

    N is 2a (`mnist_iid`), 2b (`mnist_noniid`) or 3 (`celeba`). The CSV has the columns
    experiment, round and accuracy, and `data` where the data has a caveat.

    Raises:
        RecordError: see `PaperResults.rows`.
    """
    paper = PAPER[experiment]
    rows = paper.rows(runs)
    if not rows:
        text = f"PMC Figure {paper.figure} is left out: no run of its orderings."
        return Report(text)
    curves = {name: run.accuracy for name, run in rows.items()}
    caption = title_of(TITLE, paper, data_caveat(rows.values()))
    notes = [*paper.notes(runs), *_notes(paper)]
    name = f"figure{paper.figure}"
    return Report(
        "\n\n".join([caption, _text(curves), "\n".join(notes)]),
        {name: with_caveat(table_of(curves), rows.values())},
        figures={name: draw(rows, caption)},
        digits=10,
    )


def title_of(title: str, paper: PaperResults, caveat: str, **more: object) -> str:
    """Returns the caption of a figure, with a caveat of its data below it."""
    words = title.format(figure=paper.figure, experiment=paper.title, **more)
    return f"{words}\n({caveat})" if caveat else words


def table_of(curves: Curves, **more: object) -> pd.DataFrame:
    """Returns a row a round of each curve: experiment, `more`, round and accuracy."""
    return pd.concat(
        pd.DataFrame(
            {
                "experiment": published.pmc_experiment(name),
                **more,
                "round": range(1, len(curve) + 1),
                "accuracy": curve,
            }
        )
        for name, curve in curves.items()
    )


def _text(curves: Curves) -> str:
    grid = [["ordering", "best accuracy", "in round", "in the last round"]]
    for name, curve in curves.items():
        best = int(curve.argmax())
        grid.append([name, f"{curve[best]:.4f}", f"{best + 1}", f"{curve[-1]:.4f}"])
    return grid_text(grid)


def _notes(paper: PaperResults) -> list[str]:
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
    return notes


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


pmc_paper.register("pmc_figure{figure}", report)
