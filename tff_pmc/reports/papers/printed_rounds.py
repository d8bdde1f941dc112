"""The papers' printed rounds to a target, as marks for plots over rounds.

PMC's Tables 2, 4 and 6 and DA's Table 1 print in which round a share of the devices
reaches a target. A curve of accuracy over rounds can have marks where half of them do:
ours filled, the printed ones hollow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from tff_pmc.record.read import Run
from tff_pmc.reports.papers import published
from tff_pmc.reports.rounds_to_target import rounds_of
from tff_pmc.reports.styles import Style

SHARE = 50
"""The share of the devices whose rounds are marked, percent."""

_TABLES = {
    "mnist_iid": "pmc_table2",
    "mnist_noniid": "pmc_table4",
    "celeba": "pmc_table6",
    "femnist": "da_table1",
}

Marks = Mapping[int, float]
"""Target, percent -> round."""


def printed(experiment: str, label: str) -> Marks:
    """Returns the printed rounds until half of the devices reach each target.

    Empty where the papers print nothing of it, or where the tables are not there.
    """
    if experiment not in _TABLES:
        return {}
    try:
        base = published.rounds_of_ds(_TABLES[experiment])
        saved = published.rounds_saved(_TABLES[experiment], label)
    except published.PublishedTableMissing:
        return {}
    found = {t: base[t, p] - gain for (t, p), gain in saved.items() if p == SHARE}
    return {target: rounds for target, rounds in found.items() if rounds == rounds}


def ours(run: Run, targets: Iterable[int]) -> Marks:
    """Returns the same of a run, for those of the targets that it reaches."""
    reached = rounds_of(run, [*targets], (SHARE,))
    return {target: rounds for (target, _), rounds in reached.items() if rounds}


def draw(axes: Any, runs: Sequence[Run], style: Style) -> bool:
    """Marks the mean rounds of a label's runs, one a seed, and those that are printed.

    Marks beyond the limits of `axes` are left out, so that none takes the space of the
    curves. Returns whether a printed round is marked: where none is, as for runs that
    normalize otherwise than the papers or have no clients on record, ours are not
    marked either.
    """
    if runs[0].settings.get("normalization", "sum") != "sum":
        return False
    if not all(run.examples.size for run in runs):
        return False
    known = printed(runs[0].settings.get("experiment", ""), runs[0].label)
    theirs = _within(axes, known)
    if not theirs:
        return False
    mean = pd.DataFrame([ours(run, known) for run in runs]).mean(skipna=False)
    points = ((theirs, "white"), (_within(axes, mean.to_dict()), style.color))
    for marks, face in points:
        axes.scatter(
            list(marks.values()),
            [target / 100 for target in marks],
            marker="D",
            s=15,
            facecolors=face,
            edgecolors=style.color,
            linewidths=0.9,
            zorder=4,
        )
    return True


def legend_handles() -> list[Line2D]:
    """Returns what a legend says of the marks: ours, and the printed ones."""
    words = {
        "black": "half of the devices\nreach 70, 80, ... %",
        "white": "the same, published",
    }
    look: dict[str, Any] = {"linestyle": "none", "marker": "D", "markersize": 4}
    return [
        Line2D([], [], **look, markerfacecolor=face, markeredgecolor="black", label=one)
        for face, one in words.items()
    ]


def _within(axes: Any, marks: Any) -> Marks:
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return {
        target: number
        for target, number in marks.items()
        if left <= number <= right and low <= target / 100 <= high
    }
