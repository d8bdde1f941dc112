"""The accuracy of runs over the rounds, in one panel or in one for each ordering.

PMC's Tables 2, 4 and 6 and DA's Table 1 print in which round half of the devices reach
a target: curves have marks there, a shape a target, ours filled, the printed ones
hollow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics.published import rounds_of_half
from tff_pmc.reports.statistics.rounds_to_target import HALF, rounds_to_target

MAX_LINES_PER_PANEL = 3
"""The most orderings or algorithms in one panel; of more, each has a panel."""

_LINES = (run_styles.SOLID, run_styles.DASHED, run_styles.DOTTED, run_styles.DASH_DOT)
_CENTRAL = {"accuracy": "central_accuracy", "test_loss": "central_loss"}
_SHAPES = {70: "o", 75: "o", 80: "s", 85: "^", 90: "^"}
_ADJUSTMENTS = ("backtracking", "best_of_all")

Groups = Mapping[str, Mapping[str, Results]]
"""Ordering or algorithm -> the words that set its runs apart -> these, a run a seed."""


@figure_layout.with_style
def accuracy_plot(
    results: Results, *, title: str = "", what: str = "priority"
) -> Figure:
    """Returns a plot of the accuracy on all clients' test examples, over the rounds.

    Up to three orderings or algorithms are lines of one panel, and of one seed and at
    most two of them the band is the clients' 10th to 90th percentile. Of more, each has
    a panel with the baseline in gray. Of several seeds the line is the mean
    and the band goes from the lowest to the highest. Marks are the rounds in which half
    of the devices reach a target, filled for these runs and hollow as the papers print
    them; see `mark_rounds`.

        figure = accuracy_plot(read_results("runs/mine"))

    A central test set has a dotted line. `what` is the word for what the labels of the
    runs name.
    """
    groups = _groups(results)
    if len(groups) > MAX_LINES_PER_PANEL:
        return _in_panels(groups, title)
    return _one_panel(groups, title, what)


@figure_layout.with_style
def loss_plot(results: Results, *, title: str = "", what: str = "priority") -> Figure:
    """Returns the same plot of the mean test loss of a regression, in one panel."""
    figure, axes = figure_layout.one_panel()
    groups = _groups(results)
    shown = _draw(axes, groups, _line_styles(groups), column="test_loss")
    axes.set_ylim(bottom=0)
    figure_layout.round_axis(axes, max(int(curve.index.max()) for curve in shown))
    band = figure_layout.band_words(len(results.seeds))
    up = "local test loss, all clients"
    figure_layout.finish_panel(axes, title, up, axes.get_lines(), what, band)
    return figure


def _groups(results: Results) -> Groups:
    labels: dict[str, dict[str, str]] = {}
    for _, run in results.runs.iterrows():
        name, words = run_styles.group_of(run)
        labels.setdefault(name, {})[words] = run["label"]
    return {
        name: {
            words: results.only(label=label) for words, label in labels[name].items()
        }
        for name in run_styles.sort_names(labels)
    }


def _one_panel(groups: Groups, title: str, what: str) -> Figure:
    figure, axes = figure_layout.one_panel()
    all_results = _all_results(groups)
    seeds = max(len(runs.seeds) for runs in all_results)
    shown = _draw(axes, groups, _line_styles(groups))
    of_devices = seeds == 1 and len(all_results) <= 2  # More bands hide each other.
    for results in all_results if of_devices else ():
        color = run_styles.style_of(run_styles.group_of(results.runs.iloc[0])[0]).color
        rounds = results.rounds.set_index("round")
        low, high = rounds["p10"], rounds["p90"]
        axes.fill_between(low.index, low, high, color=color, alpha=0.12, linewidth=0)
        shown += [low, high]
    figure_layout.zoom_to_curves(axes, shown)
    handles = axes.get_legend_handles_labels()[0]
    handles += mark_handles(_mark(axes, groups))
    band = figure_layout.band_words(seeds)
    if of_devices:
        band = "band: 10th to 90th\npercentile of clients"
    figure_layout.finish_panel(axes, title, figure_layout.ACCURACY, handles, what, band)
    return figure


def _in_panels(groups: Groups, title: str) -> Figure:
    base = next((name for name in run_styles.BASELINES if name in groups), "")
    panels = {name: variants for name, variants in groups.items() if name != base}
    figure, all_axes = figure_layout.panels(len(panels))
    lines = _line_styles(groups)
    shown: list[pd.Series[float]] = []
    for axes, (name, variants) in zip(all_axes, panels.items()):
        behind = groups.get(base, {})
        same_variants = {words: behind[words] for words in behind if words in variants}
        shown += _draw(
            axes, {base: same_variants or behind}, lines, **run_styles.BEHIND
        )
        shown += _draw(axes, {name: variants}, lines)
        figure_layout.name_panel(axes, run_styles.style_of(name).label)
    figure_layout.zoom_to_curves(all_axes[0], shown)  # They share the limits.
    marked: set[int] = set()
    for axes, (name, variants) in zip(all_axes, panels.items()):
        marked |= _mark(axes, {name: variants})
    figure_layout.set_figure_title(figure, title)
    handles = []
    if base:
        style = run_styles.style_of(base)
        handles.append(
            figure_layout.legend_handle(style.label, style.color, **run_styles.BEHIND)
        )
    handles += [
        figure_layout.legend_handle(words or "fixed", linestyle=line)
        for words, line in lines.items()
    ]
    band = figure_layout.band_words(
        max(len(runs.seeds) for runs in _all_results(groups))
    )
    band = band.replace("; ", "\n")
    handles += [figure_layout.legend_handle(band, "none")] if band else []
    if any(_CENTRAL["accuracy"] in runs.rounds for runs in _all_results(groups)):
        handles.append(figure_layout.legend_handle("central test set", linestyle=":"))
    handles += mark_handles(marked)
    figure_layout.label_axes(figure, all_axes, figure_layout.ACCURACY, handles)
    return figure


def _all_results(groups: Groups) -> list[Results]:
    return [runs for variants in groups.values() for runs in variants.values()]


def _line_styles(groups: Groups) -> Mapping[str, Any]:
    """Returns a line for each of the words that set runs apart; none without any."""
    variant_names = dict.fromkeys(
        words for variants in groups.values() for words in variants
    )
    if list(variant_names) == [""]:
        return {}
    # The fixed one is solid.
    first = (
        [""] if "" in variant_names or variant_names.keys() & {*_ADJUSTMENTS} else []
    )
    order = [*first, *filter(None, variant_names)]
    return {words: _LINES[place % len(_LINES)] for place, words in enumerate(order)}


def _curves(results: Results, column: str = "accuracy") -> list[pd.Series[float]]:
    """Returns a column by round, of each run."""
    runs = results.rounds.groupby(RUN_KEY, sort=False)
    return [rounds.set_index("round")[column] for _, rounds in runs]


def _draw(
    axes: Any,
    groups: Groups,
    lines: Mapping[str, Any],
    column: str = "accuracy",
    **options: Any,
) -> list[pd.Series[float]]:
    """Draws the curves of groups; returns what was drawn."""
    drawn = []
    for name, variants in groups.items():
        style = run_styles.style_of(name)
        for words, runs in variants.items():
            curves = _curves(runs, column)
            line = lines.get(words, style.line)
            label = f"{style.label}, {words}" if words else style.label
            drawn += curves
            figure_layout.draw_curve(
                axes, curves, style, label=label, linestyle=line, **options
            )
            central = _CENTRAL[column]
            if central in runs.rounds and runs.rounds[central].notna().all():
                curves = _curves(runs, central)
                drawn += curves
                look = {**options, "linestyle": ":", "label": f"{label}, central test"}
                figure_layout.draw_curve(axes, curves, style, **look)
    return drawn


def _mark(axes: Any, groups: Groups) -> set[int]:
    """Marks rounds to targets on mean curves; returns the targets that are marked.

    As the drawn line, a mean ends with the run that ended first.
    """
    marked: set[int] = set()
    for name, variants in groups.items():
        for runs in variants.values():
            curve = pd.concat(_curves(runs), axis=1, join="inner").mean(axis=1)
            marked |= mark_rounds(axes, runs, run_styles.style_of(name), curve)
    return marked


def mark_rounds(
    axes: Any, results: Results, style: run_styles.Style, curve: pd.Series[float]
) -> set[int]:
    """Marks the mean rounds of a label's runs, one a seed, and those that are printed.

    The marks lie on the curve, a shape for each target. What is beyond its rounds is
    left out. Returns the targets that are marked: where no printed round is, as for
    runs that normalize otherwise than the papers or recorded no clients, ours are not
    either.
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
    # Theirs are larger, to be seen where ours is in the same round; and a square's
    # circle is drawn into it, where two targets are of one round.
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
    """Returns a legend's words on the marks: their targets, and whose they are."""
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
    """Returns the shape of a target's mark."""
    return _SHAPES.get(target, "D")
