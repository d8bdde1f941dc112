"""A figure of how accuracy is spread over the clients, over the rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.figures import figure_layout, run_labels, run_styles
from tff_pmc.reports.statistics import run_summary

MAX_RUNS_PER_PANEL = 4
"""The most runs that are lines of common panels; of more, each has a panel."""

_PANEL_LINES = (run_styles.SOLID, run_styles.DOTTED)
"""The lines of the two figures of a panel of one run."""


class _Run(NamedTuple):
    """What is drawn of a run: its names, and each figure by round."""

    name: str
    words: str
    label: str
    curves: Mapping[str, pd.Series[float]]

    @property
    def style(self) -> run_styles.Style:
        """How it is drawn."""
        return run_styles.style_of(self.name)


@figure_layout.with_style
def fairness_plot(results: Results, *, title: str = "") -> Figure:
    """Draws how accuracy is spread over the clients, over the rounds of one seed.

    Up to four runs are lines of panels, one for each of `run_summary.SPREAD`; a run
    whose ordering was adjusted is dashed, in the color of the ordering that it began
    with. Of more, each has a panel, with the 10th percentile and the mean of the worst
    tenth: their differences from the baseline, which is the line at 0. Without a
    baseline they are as they are.
    """
    measure = run_summary.results_metric(results)
    spread = dict(
        list(run_summary.spread_by_round(results).groupby(level=RUN_KEY, sort=False))
    )
    runs = []
    for _, row in results.runs.iterrows():
        table = spread[row["seed"], row["label"]].droplevel(RUN_KEY)
        curves = {str(name): table[name] for name in table}
        runs.append(_Run(*run_labels.group_of(row), run_labels.label_of(row), curves))
    names = run_styles.sort_names(run.name for run in runs)
    kinds = list(dict.fromkeys(["", *(run.words for run in runs)]))
    runs.sort(key=lambda run: (kinds.index(run.words), names.index(run.name)))
    word = "accuracy" if measure is ACCURACY else "loss"
    titles = {
        name: spread.title for name, spread in run_summary.spread_of(measure).items()
    }
    draw = _panel_per_measure if len(runs) <= MAX_RUNS_PER_PANEL else _panel_per_run
    figure, all_axes = draw(runs, titles, word)
    figure_layout.round_axis(all_axes[0], int(results.length.max()))  # All share it.
    figure_layout.set_figure_title(
        figure, f"Local test {word} over the clients\n{title}"
    )
    return figure


def _panel_per_measure(
    runs: Sequence[_Run], titles: Mapping[str, str], word: str
) -> tuple[Figure, Sequence[Any]]:
    figure = figure_layout.new_figure(4.6)
    grid: Any = figure.subplots(2, 2, sharex=True)
    for axes, (name, title) in zip(grid.flat, titles.items()):
        shown: list[float] = []
        for run in runs:
            line = {"linestyle": "--"} if run.words else {}
            figure_layout.draw_curve(
                axes, [run.curves[name]], run.style, label=run.label, **line
            )
            shown += run.curves[name].tolist()
        if word == "accuracy":
            figure_layout.share_limits(axes, shown)
        axes.set_title(title)
    for axes in grid.flat[len(titles) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel(figure_layout.ROUNDS)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure, list(grid.flat)


def _panel_per_run(
    runs: Sequence[_Run], titles: Mapping[str, str], word: str
) -> tuple[Figure, Sequence[Any]]:
    bases = {
        run.words: run for run in reversed(runs) if run.name in run_styles.BASELINES
    }
    others = [run for run in runs if not any(run is base for base in bases.values())]
    figure, all_axes = figure_layout.panels(len(others))
    of_panels = dict(zip(titles, _PANEL_LINES))
    shown: list[float] = []
    for axes, run in zip(all_axes, others):
        base = bases.get(run.words, bases.get("")) if bases else None
        if base is not None:
            axes.axhline(0, color=base.style.color, **run_styles.BEHIND)
        for name, line in of_panels.items():
            curve = run.curves[name]
            if base is not None:
                factor = 100 if word == "accuracy" else 1
                curve = factor * (curve - base.curves[name]).dropna()
            figure_layout.draw_curve(axes, [curve], run.style, linestyle=line)
            shown += curve.tolist()
        figure_layout.name_panel(axes, f"{run.style.label}\n{run.words}")
    handles = [
        figure_layout.legend_handle(titles[name], linestyle=line)
        for name, line in of_panels.items()
    ]
    handles += [
        figure_layout.legend_handle(style.label, style.color, **run_styles.BEHIND)
        for style in dict.fromkeys(base.style for base in bases.values())
    ]
    up = word
    if bases:
        margin = max(0.05 * (max(shown) - min(shown)), 0.1)
        all_axes[0].set_ylim(min(0, *shown) - margin, max(0, *shown) + margin)
        points = ", points" if word == "accuracy" else ""
        up = f"{word}{points} from {handles[-1].get_label()}"
    elif word == "accuracy":
        figure_layout.share_limits(all_axes[0], shown)
    figure_layout.label_axes(figure, all_axes, up, handles)
    return figure, all_axes
