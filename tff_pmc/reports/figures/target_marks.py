"""Marks on a curve: the rounds in which half of the devices reach a target.

Each target has a shape. Filled marks are our rounds, hollow ones those that PMC's
Tables 2, 4 and 6 and DA's Table 1 print.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from tff_pmc.record.results import Results
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics.published import rounds_of_half
from tff_pmc.reports.statistics.rounds_to_target import HALF, rounds_to_target

_SHAPES = {70: "o", 75: "o", 80: "s", 85: "^", 90: "^"}


def mark_rounds(
    axes: Any, results: Results, style: run_styles.Style, curve: pd.Series[float]
) -> set[int]:
    """Marks the rounds of half of the devices on a curve, ours and the printed ones.

    Nothing is marked for a label without printed rounds, for runs that normalize
    otherwise than the papers, and for runs that recorded no clients.

    Args:
        axes: the panel.
        results: the runs of one label, one per seed; their mean rounds are marked.
        style: the style of the curve.
        curve: the values on which the marks lie, by round; later rounds get no mark.

    Returns:
        The marked targets.
    """
    run = results.runs.iloc[0]
    if run.get("normalization", "sum") != "sum" or not len(results.clients):
        return set()
    printed = rounds_of_half(str(run.get("experiment", "")), run["label"])
    last = curve.index.max()
    theirs = {target: rounds for target, rounds in printed.items() if rounds <= last}
    if not theirs:
        return set()
    rounds_reached = rounds_to_target(results, [*printed], [HALF])
    # A mean of seeds, if all of them reach the target.
    means = rounds_reached.groupby("target")["rounds"].agg(
        lambda rounds: rounds.mean(skipna=False)
    )
    ours = means[means <= last].to_dict()
    # Printed marks are larger, so that they show around one of ours in the same round;
    # lower targets are drawn last, so that a circle lies on a square.
    marks = [(*mark, "white", 30) for mark in sorted(theirs.items(), reverse=True)]
    marks += [(*mark, style.color, 12) for mark in ours.items()]
    for target, rounds, face, size in marks:
        axes.scatter(
            rounds,
            np.interp(rounds, curve.index, curve),
            marker=marker_shape(target),
            s=size,
            facecolors=face,
            edgecolors=style.color,
            linewidths=0.9,
            clip_on=False,  # Whole also in the last round.
            zorder=4,
        )
    return {*theirs, *ours}


def mark_handles(targets: Collection[int]) -> list[Any]:
    """Returns legend entries for the marks: a shape per target, and a hollow one."""
    if not targets:
        return []
    first = min(targets)
    words = {first: f"half of the devices\nreach {first} %"}
    look: dict[str, Any] = {"linestyle": "none", "markersize": 4}
    handles = [
        figure_layout.legend_handle(
            words.get(t, f"{t} %"), marker=marker_shape(t), **look
        )
        for t in sorted(targets)
    ]
    look |= {"markerfacecolor": "white", "markersize": 5.5}
    return [
        *handles,
        figure_layout.legend_handle("as published", marker=marker_shape(first), **look),
    ]


def marker_shape(target: int) -> str:
    """Returns the marker of a target, as matplotlib takes it."""
    return _SHAPES.get(target, "D")
