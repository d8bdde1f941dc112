"""The panels of the authors' published script, beside PMC's Figures 2a, 2b and 3.

The script draws, for each ordering, the accuracy over all clients' test examples from 0
up to the first round in which it reaches a target, with dashed lines at the target and
at that round. It is set to CelebA and 80 %. The paper's figures are captioned
otherwise, as the accuracy in each round, and are drawn in `pmc_figures`. Here the nine
are panels of one figure with common axes, and DS stands behind each of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from tff_pmc.record.read import BASELINE, Run, data_caveat, with_caveat
from tff_pmc.reports import Report, figures, recorded_settings, styles
from tff_pmc.reports.kept import totals
from tff_pmc.reports.pages import grid_text
from tff_pmc.reports.papers import pmc_paper, published
from tff_pmc.reports.papers.pmc_figures import table_of, title_of
from tff_pmc.reports.papers.pmc_paper import PAPER
from tff_pmc.reports.rounds_to_target import reach_rule, reaches

TITLE = (
    "As the published script draws Figure {figure}: {experiment}, up to {target} % on "
    "all clients"
)
"""The caption of each figure; a caveat of the data follows on a line of its own."""

TARGET = 80
"""Target accuracy, percent, of the published script."""

Curves = Mapping[str, tuple[npt.NDArray[np.float64], Optional[int]]]
"""Label -> the accuracies that are drawn, and the round that reaches the target."""

_LINES = "#333333"


def report(runs: Sequence[Run], *, experiment: str, target: int = TARGET) -> Report:
    """Returns `figureN_script.png` and `.csv`, and the rounds to the target as text.

    N is 2a (`mnist_iid`), 2b (`mnist_noniid`) or 3 (`celeba`). The CSV has the columns
    experiment, target_accuracy_pct, round and accuracy, a row a round drawn, and `data`
    where the data has a caveat.

    Raises:
        RecordError: see `PaperResults.rows`; or the runs have different rules.
    """
    paper = PAPER[experiment]
    rows = paper.rows(runs)
    if not rows:
        return Report()  # `pmc_figures` says why.
    above = recorded_settings.strictly_above(runs)
    curves = {name: accuracy_until(run, target) for name, run in rows.items()}
    caption = title_of(TITLE, paper, data_caveat(rows.values()), target=target)
    notes = [*paper.notes(runs), reach_rule(above)]
    reached_at = f"above {target} %" if above else f"{target} %"
    head = f"Round in which the accuracy over all test examples first is {reached_at}"
    name = f"figure{paper.figure}_script"
    drawn = {label: curve for label, (curve, _) in curves.items()}
    table = table_of(drawn, target_accuracy_pct=target)
    return Report(
        "\n\n".join([caption, f"{head}\n{_text(curves)}", "\n".join(notes)]),
        {name: with_caveat(table, rows.values())},
        figures={name: draw(curves, caption, target)},
        digits=10,
    )


def _text(curves: Curves) -> str:
    base = curves.get(BASELINE, (None, None))[1]
    grid = [["ordering", "round", "gain over DS"]]
    for name, (_, reached) in curves.items():
        gain = f"{base - reached:+d}" if base and reached and name != BASELINE else ""
        grid.append([name, published.DASH if reached is None else f"{reached}", gain])
    return grid_text(grid)


def accuracy_until(
    run: Run, target: int
) -> tuple[npt.NDArray[np.float64], Optional[int]]:
    """Returns the accuracy on all test examples up to the round of a target, percent.

    And that round, None if it is not reached by the run's rule; then all rounds are
    there.
    """
    correct, examples = totals(run)
    above = bool(run.strictly_above)
    reached = np.flatnonzero(reaches(correct, examples, target, above))
    last = int(reached[0]) + 1 if reached.size else None
    return correct[:last] / examples, last


@figures.styled
def draw(curves: Curves, title: str, target: int) -> Figure:
    """Returns the figure, a panel for each curve."""
    figure, every = figures.panels(len(curves), columns=3)
    baseline = curves.get(BASELINE)
    for axes, (name, (curve, reached)) in zip(every, curves.items()):
        if baseline is not None and name != BASELINE:
            _curve(axes, baseline[0], BASELINE, 0.9)
        _curve(axes, curve, name, 1.2)
        axes.axhline(target / 100, color=_LINES, linestyle="--", linewidth=0.8)
        where = "not reached"
        if reached is not None:
            axes.axvline(reached, color=_LINES, linestyle="--", linewidth=0.8)
            where = f"round {reached}"
        axes.set_title(f"{styles.style_of(name).label}: {where}")
    # From 0, as the script has it, up to the target or what is above it.
    highest = max(target / 100, *(curve.max() for curve, _ in curves.values()))
    every[0].set_ylim(0, min(1.01, highest + 0.04))
    last = max(len(curve) for curve, _ in curves.values())
    figures.round_axis(every[0], round(last * 1.03), first=0)
    figures.name_panels(figure, every, figures.ACCURACY)
    behind = "\nGray: DS." if baseline is not None and len(curves) > 1 else ""
    figures.entitle(figure, f"{title}{behind}")
    return figure


def _curve(axes: Any, curve: npt.NDArray[np.float64], name: str, width: float) -> None:
    # From 0 at round 0, as the published script has it.
    color = styles.style_of(name).color
    axes.plot([0.0, *curve], color=color, linewidth=width)


pmc_paper.register("pmc_figure{figure}_script", report)
