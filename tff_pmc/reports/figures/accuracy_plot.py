"""The accuracy of runs over the rounds, in one panel or in one for each ordering.

PMC's Tables 2, 4 and 6 and DA's Table 1 print in which round half of the devices reach
a target: curves have marks there, a shape a target, ours filled, the printed ones
hollow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.figures.run_labels import group_of
from tff_pmc.reports.figures.target_marks import mark_handles, mark_rounds

MAX_LINES_PER_PANEL = 3
"""The most orderings or algorithms in one panel; of more, each has a panel."""

_LINES = (run_styles.SOLID, run_styles.DASHED, run_styles.DOTTED, run_styles.DASH_DOT)
_CENTRAL = {"accuracy": "central_accuracy", "test_loss": "central_loss"}
_ADJUSTMENTS = ("backtracking", "best_of_all")

Groups = Mapping[str, Mapping[str, Results]]
"""Ordering or algorithm -> the words that set its runs apart -> these, a run a seed."""


@figure_layout.with_style
def accuracy_plot(
    results: Results, *, title: str = "", what: str = "priority"
) -> Figure:
    """Returns a plot of the accuracy on all clients' test examples, over the rounds.

    Up to three orderings or algorithms are lines of one panel; with one seed and at
    most two of them the band is the clients' 10th to 90th percentile. If there are
    more, each has a panel with the baseline in gray. With several seeds the line is the
    mean and the band extends from the lowest to the highest. Marks are the rounds in
    which half of the devices reach a target, filled for these runs and hollow as the
    papers print them; see `target_marks.mark_rounds`.

        figure = accuracy_plot(read_results("runs/mine"))

    A central test set has a dotted line. `what` is the legend's title: what the labels
    of the runs name.
    """
    groups = _groups(results)
    if len(groups) > MAX_LINES_PER_PANEL:
        return _in_panels(groups, title)
    return _one_panel(groups, title, what)


@figure_layout.with_style
def loss_plot(
    results: Results,
    *,
    title: str = "",
    what: str = "priority",
    column: str = "test_loss",
) -> Figure:
    """Returns the same plot of a regression's test loss, in one panel.

    `column` is that of `rounds`: another one than the loss is a metric of the model.
    """
    figure, axes = figure_layout.one_panel()
    groups = _groups(results)
    shown = _draw(axes, groups, _line_styles(groups), column=column)
    if column == "test_loss":
        axes.set_ylim(bottom=0)
    figure_layout.round_axis(axes, max(int(curve.index.max()) for curve in shown))
    band = figure_layout.band_words(len(results.seeds))
    up = "local test loss, all clients"
    if column != "test_loss":
        up = f"{column}, all clients' test examples"
    if column == "train_loss":
        up = "training loss, the round's clients"
    figure_layout.finish_panel(axes, title, up, axes.get_lines(), what, band)
    return figure


def _groups(results: Results) -> Groups:
    labels: dict[str, dict[str, str]] = {}
    for _, run in results.runs.iterrows():
        name, words = group_of(run)
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
        color = run_styles.style_of(group_of(results.runs.iloc[0])[0]).color
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
    drawn, styles = [], run_styles.styles_of(groups)
    for name, variants in groups.items():
        style = styles[name]
        for words, runs in variants.items():
            curves = _curves(runs, column)
            line = lines.get(words, style.line)
            label = f"{style.label}, {words}" if words else style.label
            drawn += curves
            figure_layout.draw_curve(
                axes, curves, style, label=label, linestyle=line, **options
            )
            central = _CENTRAL.get(column, "")
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
