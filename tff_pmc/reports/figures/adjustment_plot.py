"""The orderings that a run's online adjustment chose and rejected, round by round.

DA's Figure 1 illustrates the same with dummy values; this is drawn of a real run.
"""

from __future__ import annotations

from typing import Any, Optional

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results
from tff_pmc.reports.figures import figure_layout, run_labels, run_styles

_DARK = "#333333"


@figure_layout.with_style
def adjustment_plot(
    results: Results, *, title: str = "", reference: Optional[Results] = None
) -> Figure:
    """Returns a plot of the candidates that a run chose, and that it rejected.

    Above, the accuracy of the model kept in each round, and hollow, in the color of
    its ordering, each candidate that was tested and rejected. Below, a lane an
    ordering: filled where it was kept, a hollow mark where it was rejected. The test
    accuracy of a `reference` is a thin line. Both are of one run. A run whose
    ordering was fixed is a `RecordError`.
    """
    tested = results.candidates[results.candidates["kind"] == "trial"]
    if tested.empty:
        raise RecordError(
            f"the ordering of the run {results.labels[0]} was fixed: no candidates"
        )
    tested = tested.assign(accuracy=tested["correct"] / tested["examples"])
    orderings = run_styles.sort_names(sorted(tested["ordering"].unique()))
    colors = {name: run_styles.style_of(name).color for name in orderings}
    last = int(tested["round"].max())
    lane = 0.16 * len(orderings) + 0.1
    figure = figure_layout.new_figure(3.1 + lane)
    curve, lanes = figure.subplots(
        2, sharex=True, gridspec_kw={"height_ratios": [2.3, lane]}
    )
    _curve(curve, results, tested, colors, reference)
    _lanes(lanes, tested, colors)
    lanes.set_xlim(0.5, last + 0.5)
    figure_layout.number_rounds(lanes, last)
    figure_layout.set_panel_title(curve, title)
    handles, labels = curve.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _marks(axes: Any, x: Any, y: Any, colors: Any, **options: Any) -> None:
    """Draws candidates that were rejected: hollow, in their orderings' colors."""
    hollow = {"facecolors": "none", "edgecolors": colors, "linewidths": 0.9}
    axes.scatter(x, y, **hollow, **options)


def _curve(
    axes: Any,
    results: Results,
    tested: pd.DataFrame,
    colors: dict[str, str],
    reference: Optional[Results],
) -> None:
    kept, rejected = tested[tested["kept"] == 1], tested[tested["kept"] == 0]
    size = _marker_size(tested)
    tests: list[tuple[Results, str, dict[str, Any]]] = []
    if results.setting("judge_on", "test") != "test":
        look = {"color": _DARK, "linestyle": ":", "linewidth": 1.2}
        tests.append((results, "kept", look))
    if reference is not None:
        color = run_styles.style_of(reference.labels[0]).color
        name = run_labels.label_of(reference.runs.iloc[0])
        tests.append((reference, name, {"color": color, "linewidth": 0.9}))
    for results_drawn, name, look in tests:
        label = f"{name}, on the test examples"
        axes.plot(
            results_drawn.rounds["round"],
            results_drawn.rounds["accuracy"],
            label=label,
            **look,
        )
    hollow = [colors[name] for name in rejected["ordering"]]
    above = {"s": 2.2 * size, "zorder": 4}
    _marks(axes, rejected["round"], rejected["accuracy"], hollow, **above)
    axes.plot(kept["round"], kept["accuracy"], color=_DARK, linewidth=1.2)
    axes.scatter(
        kept["round"],
        kept["accuracy"],
        s=size,
        color=[colors[name] for name in kept["ordering"]],
        zorder=3,
    )
    # The marks have their ordering's color; the legend's stand for all of them.
    axes.plot([], [], "o", color=_DARK, label="kept")
    if len(rejected):
        label = "tested and rejected"
        axes.plot([], [], "o", color=_DARK, fillstyle="none", label=label)
    axes.set_ylabel("accuracy of all clients")


def _lanes(axes: Any, tested: pd.DataFrame, colors: dict[str, str]) -> None:
    for lane, (name, color) in enumerate(colors.items()):
        rows = tested[tested["ordering"] == name]
        kept, rejected = rows[rows["kept"] == 1], rows[rows["kept"] == 0]
        starts = [(start - 0.5, 1) for start in kept["round"]]
        axes.broken_barh(starts, (lane - 0.4, 0.8), color=color, linewidth=0)
        size = _marker_size(tested)
        _marks(axes, rejected["round"], [lane] * len(rejected), color, s=size)
    axes.set_yticks(
        range(len(colors)), labels=[run_styles.style_of(name).label for name in colors]
    )
    axes.set_ylim(len(colors) - 0.4, -0.6)  # The first ordering on top.
    axes.set_xlabel(figure_layout.ROUNDS)
    axes.set_ylabel("candidate" if run_styles.LAMBDA in "".join(colors) else "ordering")
    axes.grid(visible=False, axis="y")


def _marker_size(tested: pd.DataFrame) -> float:
    """Returns points squared: a round wide at most, and large enough to be seen."""
    return float(min(30.0, max(6.0, 1200.0 / tested["round"].nunique())))
