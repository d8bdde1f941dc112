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


class _Row(NamedTuple):
    """What is drawn of a row: its names, and of each seed each figure by round."""

    name: str
    words: str
    label: str
    tables: Mapping[int, pd.DataFrame]

    def curves(self, figure: str) -> list[pd.Series[float]]:
        """Returns a figure by round, of each seed."""
        return [table[figure] for table in self.tables.values()]

    def differences(self, figure: str, base: _Row) -> list[pd.Series[float]]:
        """Returns a figure less that of another row, of each seed of both."""
        return [
            (self.tables[seed][figure] - base.tables[seed][figure]).dropna()
            for seed in self.tables
            if seed in base.tables
        ]

    @property
    def style(self) -> run_styles.Style:
        """How it is drawn."""
        return run_styles.style_of(self.name)


@figure_layout.with_style
def fairness_plot(results: Results, *, title: str = "") -> Figure:
    """Draws how accuracy is spread over the clients, over the rounds.

    Up to four rows are lines of panels, one for each of `run_summary.SPREAD`; a row
    whose ordering was adjusted is dashed, in the color of the ordering that it began
    with. If there are more, each has a panel, with the 10th percentile and the mean of
    the worst tenth: their differences from the baseline, which is the line at 0.
    Without a baseline the values themselves are drawn. With several seeds a line is the
    mean and its band extends from the lowest to the highest; differences are from the
    baseline of the same seed.
    """
    measure = run_summary.results_metric(results)
    spread = dict(
        list(run_summary.spread_by_round(results).groupby(level=RUN_KEY, sort=False))
    )
    rows = []
    for _, runs in results.runs.groupby("label", sort=False):
        keys = zip(runs["seed"], runs["label"])
        tables = {key[0]: spread[key].droplevel(RUN_KEY) for key in keys}
        first = runs.iloc[0]
        rows.append(
            _Row(*run_labels.group_of(first), run_labels.label_of(first), tables)
        )
    names = run_styles.sort_names(row.name for row in rows)
    kinds = list(dict.fromkeys(["", *(row.words for row in rows)]))
    rows.sort(key=lambda row: (kinds.index(row.words), names.index(row.name)))
    word = "accuracy" if measure is ACCURACY else "loss"
    titles = {
        name: spread.title for name, spread in run_summary.spread_of(measure).items()
    }
    draw = _panel_per_measure if len(rows) <= MAX_RUNS_PER_PANEL else _panel_per_row
    band = figure_layout.band_words(len(results.seeds))
    figure, all_axes = draw(rows, titles, word, band)
    # All panels share it. With several seeds a curve ends with the shortest run.
    last = results.length.groupby(level="label").min().max()
    figure_layout.round_axis(all_axes[0], int(last))
    figure_layout.set_figure_title(
        figure, f"Local test {word} over the clients\n{title}"
    )
    return figure


def _panel_per_measure(
    rows: Sequence[_Row], titles: Mapping[str, str], word: str, band: str
) -> tuple[Figure, Sequence[Any]]:
    columns = 1 if figure_layout.is_narrow() else 2
    figure = figure_layout.new_figure(9.2 / columns)
    grid: Any = figure.subplots(4 // columns, columns, sharex=True, squeeze=False)
    for axes, (name, title) in zip(grid.flat, titles.items()):
        shown: list[float] = []
        for row in rows:
            line = {"linestyle": "--"} if row.words else {}
            curves = row.curves(name)
            figure_layout.draw_curve(axes, curves, row.style, label=row.label, **line)
            shown += pd.concat(curves).tolist()
        if word == "accuracy":
            figure_layout.share_limits(axes, shown)
        axes.set_title(title)
    for axes in grid.flat[len(titles) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel(figure_layout.ROUNDS)
    handles, _ = grid.flat[0].get_legend_handles_labels()
    figure_layout.add_legend(figure, handles, band.replace("; ", "\n"))
    return figure, list(grid.flat)


def _panel_per_row(
    rows: Sequence[_Row], titles: Mapping[str, str], word: str, band: str
) -> tuple[Figure, Sequence[Any]]:
    bases = {
        row.words: row for row in reversed(rows) if row.name in run_styles.BASELINES
    }
    others = [row for row in rows if not any(row is base for base in bases.values())]
    figure, all_axes = figure_layout.panels(len(others))
    line_of_measure = dict(zip(titles, _PANEL_LINES))
    shown: list[float] = []
    for axes, row in zip(all_axes, others):
        base = bases.get(row.words, bases.get("")) if bases else None
        if base is not None:
            axes.axhline(0, color=base.style.color, **run_styles.BEHIND)
        for name, line in line_of_measure.items():
            curves = row.curves(name)
            if base is not None:
                factor = 100 if word == "accuracy" else 1
                curves = [factor * curve for curve in row.differences(name, base)]
            figure_layout.draw_curve(axes, curves, row.style, linestyle=line)
            shown += pd.concat(curves).tolist()
        figure_layout.name_panel(axes, f"{row.style.label}\n{row.words}")
    handles = [
        figure_layout.legend_handle(titles[name], linestyle=line)
        for name, line in line_of_measure.items()
    ]
    base_styles = list(dict.fromkeys(base.style for base in bases.values()))
    handles += [
        figure_layout.legend_handle(style.label, style.color, **run_styles.BEHIND)
        for style in base_styles
    ]
    if band:
        handles.append(figure_layout.legend_handle(band.replace("; ", "\n"), "none"))
    up = word
    if bases:
        margin = max(0.05 * (max(shown) - min(shown)), 0.1)
        all_axes[0].set_ylim(min(0, *shown) - margin, max(0, *shown) + margin)
        points = ", points" if word == "accuracy" else ""
        up = f"{word}{points} from {base_styles[-1].label}"
    elif word == "accuracy":
        figure_layout.share_limits(all_axes[0], shown)
    figure_layout.label_axes(figure, all_axes, up, handles)
    return figure, all_axes
