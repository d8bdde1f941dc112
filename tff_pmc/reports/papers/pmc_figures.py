"""PMC's Figures 2a, 2b and 3 from runs: test accuracy in each round.

As their captions say, they have the accuracy of the global model on all clients' test
examples (section 5.3: the local accuracies, weighted by the size of the test sets),
over all rounds, of DS, the two other criteria and the six orderings. The paper has the
nine as lines of one plot; here each is a panel of its own, with DS behind it in gray,
because lines that lie on each other cannot be read. No numbers of the figures are
printed beside their plots, so there are none to set beside ours.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports import REPORTS, escape, grids
from tff_pmc.reports.papers import published
from tff_pmc.reports.papers.pmc_paper import PAPER, PaperResults
from tff_pmc.reports.read import BASELINE, Run, data_caveat, with_caveat

TITLE = "PMC Figure {figure}: {experiment}, test accuracy in each round"
"""The caption of each figure; a caveat of the data follows on a line of its own."""

Curves = Mapping[str, npt.NDArray[np.float64]]
"""Label -> the accuracy in each round."""

_COLOR, _BEHIND = "#0072B2", "#999999"
_PANELS_A_ROW = 4


def write(
    runs: Sequence[Run],
    folder: str,
    *,
    experiment: str,
    strictly_above: Optional[bool] = None,
) -> str:
    """Writes `figureN.png` and `figureN.csv`; returns the best rounds as text.

    N is 2a (`mnist_iid`), 2b (`mnist_noniid`) or 3 (`celeba`). The CSV has the
    columns experiment, round and accuracy, and `data` where the data has a caveat.

    Args:
        runs: some or all of the nine.
        folder: where the two files go; they are replaced.
        experiment: a key of `pmc_paper.PAPER`.
        strictly_above: not used: there are no targets here.

    Raises:
        RecordError: see `PaperResults.rows`.
    """
    paper = PAPER[experiment]
    rows = paper.rows(runs)
    if not rows:
        return f"PMC Figure {paper.figure} is left out: no run of its orderings."
    curves = {name: run.accuracy for name, run in rows.items()}
    path = os.path.join(folder, f"figure{paper.figure}")
    table = with_caveat(_table(curves), rows.values())
    escape.write_csv(table, f"{path}.csv", index=False, float_format="%.10g")
    caption = title_of(paper, data_caveat(rows.values()))
    _draw(curves, f"{path}.png", caption)
    notes = [*paper.notes(runs), *_notes(paper)]
    return "\n\n".join([caption, _text(curves), "\n".join(notes)])


def title_of(paper: PaperResults, caveat: str) -> str:
    """Returns the caption of a figure."""
    title = TITLE.format(figure=paper.figure, experiment=paper.title)
    return f"{title}\n({caveat})" if caveat else title


def _table(curves: Curves) -> pd.DataFrame:
    return pd.concat(
        pd.DataFrame(
            {
                "experiment": published.pmc_experiment(name),
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
    return grids.text(grid)


def _notes(paper: PaperResults) -> list[str]:
    notes = ["The paper prints no numbers of this figure: it shows ours alone."]
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


def _draw(curves: Curves, path: str, title: str) -> Figure:
    """Draws and writes the figure, a panel for each curve but DS's; returns it."""
    baseline = curves.get(BASELINE)
    others = {name: curve for name, curve in curves.items() if name != BASELINE}
    shown = others or curves
    columns = min(_PANELS_A_ROW, len(shown))
    lines = -(-len(shown) // columns)
    size = (max(3.0 * columns, 6.5), 1.0 + 2.3 * lines)
    figure = Figure(figsize=size, dpi=110, layout="constrained")
    axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for panel, (name, curve) in zip(axes.flat, shown.items()):
        if baseline is not None and others:
            _curve(panel, baseline, _BEHIND, BASELINE)
        _curve(panel, curve, _COLOR, name)
        panel.set_title(published.pmc_experiment(name), fontsize=9)
        panel.grid(alpha=0.25)
    for panel in axes.flat[len(shown) :]:
        panel.set_axis_off()
    last = max(len(curve) for curve in curves.values())
    # In whole tenths, so that figures of several runs can be laid side by side.
    tenths = np.concatenate(list(curves.values())) * 10
    lowest, highest = np.floor(tenths.min()), np.ceil(tenths.max())
    axes[0, 0].set_ylim(lowest / 10, max(highest, lowest + 1) / 10)
    axes[0, 0].set_xlim(1, max(2, last))
    axes[0, 0].xaxis.get_major_locator().set_params(integer=True)
    figure.supxlabel("communication round", fontsize=10)
    figure.supylabel("accuracy, all clients' test examples", fontsize=10)
    behind = " (gray: DS)" if baseline is not None and others else ""
    figure.suptitle(f"{title}{behind}", fontsize=11)
    figure.savefig(path)
    return figure


def _curve(panel: Any, curve: npt.NDArray[np.float64], color: str, label: str) -> None:
    rounds = range(1, len(curve) + 1)
    panel.plot(rounds, curve, color=color, linewidth=1.3, label=label)


for _experiment, _paper in PAPER.items():
    REPORTS.register(
        f"pmc_figure{_paper.figure}", functools.partial(write, experiment=_experiment)
    )
