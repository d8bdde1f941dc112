"""PMC's Figures 2a, 2b and 3 from runs.

The authors' published code draws, for each ordering, the accuracy over all clients'
test examples from 0 up to the first round in which it reaches a target, with dashed
lines at the target and at that round. Here the nine are panels of one figure with
common axes, and DS stands behind each of the others. What is in the paper's own figures
beyond that is known only in part: the script is set to CelebA and 80 %, the MNIST
figures' target is not known, and no published numbers of the figures are at hand, so
the figure has ours alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional

import matplotlib

matplotlib.use("Agg")  # Files only; a machine without a screen is enough.

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
import pandas as pd  # noqa: E402
from matplotlib import pyplot as plt  # noqa: E402

from tff_pmc.reports import grids, published  # noqa: E402
from tff_pmc.reports.pmc_paper import PAPER  # noqa: E402
from tff_pmc.reports.read import (  # noqa: E402
    BASELINE,
    Run,
    data_caveat,
    with_caveat,
)
from tff_pmc.reports.rounds_to_target import reach_rule  # noqa: E402

TARGET = 80
"""Target accuracy, percent, of the published script."""

_COLOR, _BEHIND, _LINES = "#0072B2", "#999999", "#D55E00"
_PANELS_A_ROW = 3


def write(
    runs: Mapping[str, Run],
    folder: str,
    experiment: str,
    target: int = TARGET,
    *,
    strictly_above: bool = False,
) -> str:
    """Writes `figureN.png` and `figureN.csv`; returns the rounds as text.

    N is 2a (`mnist_iid`), 2b (`mnist_noniid`) or 3 (`celeba`). The CSV has the
    columns experiment, target_accuracy_pct, round and accuracy, a row a round drawn,
    and `data` where the data has a caveat.

    Args:
        runs: run folder -> run, as `compare.read_runs` gives them: any of the nine.
        folder: where the two files go; they are replaced.
        experiment: a key of `pmc_paper.PAPER`.
        target: accuracy over all test examples, percent.
        strictly_above: see `accuracy_until`.

    Raises:
        DataError: see `PaperResults.rows`.
        KeyError: the paper has no such experiment.
    """
    paper = PAPER[experiment]
    rows = {run.label: run for run in paper.rows(runs).values()}
    if not rows:
        return f"PMC Figure {paper.figure} is left out: no run of its orderings."
    curves = {
        name: accuracy_until(run, target, strictly_above=strictly_above)
        for name, run in rows.items()
    }
    path = os.path.join(folder, f"figure{paper.figure}")
    table = pd.concat(
        pd.DataFrame(
            {
                "experiment": published.pmc_experiment(name),
                "target_accuracy_pct": target,
                "round": range(1, len(curve) + 1),
                "accuracy": curve,
            }
        )
        for name, (curve, _) in curves.items()
    )
    table = with_caveat(table, rows.values())
    table.to_csv(f"{path}.csv", index=False, float_format="%.10g")
    title = f"PMC Figure {paper.figure}: {paper.title}, up to {target} % on all clients"
    caveat = data_caveat(rows.values())
    if caveat:
        title += f"\n({caveat})"
    _draw(curves, f"{path}.png", title, target)
    base = curves.get(BASELINE, (None, None))[1]
    grid = [["ordering", "round", "gain over DS"]]
    for name, (_, reached) in curves.items():
        gain = f"{base - reached:+d}" if base and reached and name != BASELINE else ""
        grid.append([name, published.DASH if reached is None else f"{reached}", gain])
    notes = [
        *paper.notes(runs),
        reach_rule(strictly_above),
        "No published numbers of this figure are at hand: it shows ours alone.",
    ]
    if paper.text_numbers:
        notes.append(
            "The numbers of the paper's text are beside ours in "
            f"table{paper.rounds_table}.md."
        )
    if experiment == "celeba":
        notes.append("Its labels IS and CB are probably exchanged, as in Table 6.")
    reached_at = f"above {target} %" if strictly_above else f"{target} %"
    head = f"Round in which the accuracy over all test examples first is {reached_at}"
    return "\n\n".join([title, f"{head}\n{grids.text(grid)}", "\n".join(notes)])


def accuracy_until(
    run: Run, target: int, *, strictly_above: bool = False
) -> tuple[npt.NDArray[np.float64], Optional[int]]:
    """Accuracy over all test examples up to the round that reaches a target.

    Args:
        run: the run.
        target: percent; reached when the accuracy is at least this.
        strictly_above: reached only above it.

    Returns:
        The accuracies of rounds 1, 2, ..., and the round, None if not reached (then
        all rounds are there).
    """
    correct, examples = run.correct.sum(axis=1), int(run.examples.sum())
    # In integers: 7 of 10 is 70 %, whatever a float division makes of it.
    hundredths, needed = correct * 100, target * examples
    reached = np.flatnonzero(
        hundredths > needed if strictly_above else hundredths >= needed
    )
    last = int(reached[0]) + 1 if reached.size else None
    return correct[:last] / examples, last


def _draw(
    curves: Mapping[str, tuple[npt.NDArray[np.float64], Optional[int]]],
    path: str,
    title: str,
    target: int,
) -> None:
    columns = min(_PANELS_A_ROW, len(curves))
    lines = -(-len(curves) // columns)
    figure, axes = plt.subplots(
        lines,
        columns,
        figsize=(3.2 * columns, 0.6 + 2.3 * lines),
        dpi=110,
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    baseline = curves.get(BASELINE)
    for panel, (name, (curve, reached)) in zip(axes.flat, curves.items()):
        if baseline is not None and name != BASELINE:
            _curve(panel, baseline[0], _BEHIND, 1.0)
        _curve(panel, curve, _COLOR, 1.6)
        panel.axhline(target / 100, color=_LINES, linestyle="--", linewidth=0.9)
        where = "not reached"
        if reached is not None:
            panel.axvline(reached, color=_LINES, linestyle="--", linewidth=0.9)
            where = f"round {reached}"
        panel.set_title(f"{name.replace(',', '≻')}: {where}", fontsize=9)
        panel.grid(alpha=0.25)
    for panel in axes.flat[len(curves) :]:
        panel.set_axis_off()
    axes[0, 0].set_ylim(0, 1)
    axes[0, 0].set_xlim(0, max(len(curve) for curve, _ in curves.values()) * 1.03)
    axes[0, 0].xaxis.get_major_locator().set_params(integer=True)
    figure.supxlabel("communication round", fontsize=10)
    figure.supylabel("accuracy, all clients' test examples", fontsize=10)
    behind = " (gray: DS)" if baseline is not None and len(curves) > 1 else ""
    figure.suptitle(f"{title}{behind}", fontsize=11)
    figure.savefig(path)
    plt.close(figure)


def _curve(
    panel: Any, curve: npt.NDArray[np.float64], color: str, width: float
) -> None:
    # From 0 at round 0, as the published script has it.
    panel.plot([0.0, *curve], color=color, linewidth=width)
