"""Which reading of PMC's network has the rounds that Table 4 prints for DS?

    .venv/bin/python -m tff_pmc.reports.papers.pmc_readings results/reproduced DIR

Section 5.1 names ReLU for the dense layer alone, and no distribution of initial
kernels. So there are four readings: convolutions with ReLU or without, kernels of
Glorot's uniform or normal distribution. This writes `readings.csv`, `.md` and `.png`
into DIR, from the kept runs of DS on MNIST, non-IID.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tff_pmc.record.read import BASELINE, Run
from tff_pmc.reports import Report, figures, output
from tff_pmc.reports.accuracy_plot import shape
from tff_pmc.reports.kept import kept_runs
from tff_pmc.reports.pages import Heading, Page, Table
from tff_pmc.reports.papers import published
from tff_pmc.reports.rounds_to_target import DEVICES, rounds_of
from tff_pmc.reports.styles import Style

ROUNDS = 30
"""The rounds of a run that count, so that all readings have as many."""

_TARGETS = (70, 80, 90)
_FEWEST = 3  # Seeds of which an interval is given.
_METHOD = {
    "experiment": "mnist_noniid",
    "normalization": "sum",
    "learning_rate": 0.1,
    "cohort_rounding": "up",
    "reach": "at_least",
}
_READINGS = {
    ("none", "glorot_uniform"): Style("#117733", "-", "no ReLU, uniform"),
    ("none", "glorot_normal"): Style("#332288", "-", "no ReLU, normal"),
    ("relu", "glorot_uniform"): Style("#cc6677", "--", "ReLU, uniform"),
    ("relu", "glorot_normal"): Style("#ddaa33", "--", "ReLU, normal"),
}
"""(activation of the convolutions, initial kernels) -> how it is drawn and called."""

_COLUMNS = (
    *("conv_activation", "initializer", "target_accuracy_pct", "devices", "rounds"),
    *("low", "high", "printed", "inside"),
)
Readings = Mapping[tuple[str, str], Mapping[int, Run]]
"""Reading -> seed -> run of DS."""


def readings(runs: Iterable[Run]) -> Readings:
    """Returns the runs of each reading, of at least `ROUNDS` rounds, by their seeds."""
    found: dict[tuple[str, str], dict[int, Run]] = {key: {} for key in _READINGS}
    for run in runs:
        of = run.settings
        if (
            run.label == BASELINE
            and len(run.rounds) >= ROUNDS
            and all(of.get(name) == value for name, value in _METHOD.items())
        ):
            own = found[of["conv_activation"], of["initializer"]]
            own.setdefault(int(of["batch_seed"]), run)
    return {key: dict(sorted(own.items())) for key, own in found.items() if own}


def cells(found: Readings) -> pd.DataFrame:
    """Returns a row for each reading, target and share of the devices.

    `rounds` are those of the seeds in order, a dash where a seed does not arrive, `low`
    and `high` the 95 % prediction interval for one more run, empty where a seed does
    not arrive, and `inside` says whether the interval has the printed round.
    """
    printed, rows = published.rounds_of_ds("pmc_table4"), []
    for key, own in found.items():
        of_seeds = [rounds_of(run, _TARGETS) for run in own.values()]
        for cell in itertools.product(_TARGETS, DEVICES):
            reached = (one[cell] or math.inf for one in of_seeds)
            arrived = [rounds if rounds <= ROUNDS else math.inf for rounds in reached]
            low, high = prediction_interval(arrived)
            shown = " ".join("-" if r == math.inf else f"{r}" for r in arrived)
            where = (*key, cell[0], f"{cell[1]}%", shown)
            inside = low <= printed[cell] <= high
            rows.append((*where, low, high, printed[cell], inside))
    return pd.DataFrame(rows, columns=_COLUMNS)


def prediction_interval(values: list[float]) -> tuple[float, float]:
    """Returns the 95 % interval for one more value of the same normal distribution.

    It is the mean -+ t s sqrt(1 + 1/n) of n values. Both ends are NaN where a value is
    not finite, and below three values, whose deviation says little.
    """
    if len(values) < _FEWEST or not np.isfinite(values).all():
        return math.nan, math.nan
    count, mean = len(values), float(np.mean(values))
    half = stats.t.ppf(0.975, count - 1) * np.std(values, ddof=1)
    half *= math.sqrt(1 + 1 / count)
    return mean - half, mean + half


def page(found: Readings, table: pd.DataFrame) -> Page:
    """Returns the page: the rounds at each target, and how many printed ones fit."""
    blocks: list[Any] = [
        f"MNIST, non-IID, DS, rate 0.1, the first {ROUNDS} rounds. In each cell the "
        "rounds in which so many of the devices reach the target: the lowest and the "
        "highest seed, and in brackets the 95 % prediction interval for one more run. "
        "A star marks an interval that has the printed round. There is none of fewer "
        "than three seeds, nor where a seed does not arrive."
    ]
    of_reading = table.groupby(["conv_activation", "initializer"], sort=False)
    shown = [(key, _READINGS[key], own) for key, own in of_reading]
    for target, at_target in table.groupby("target_accuracy_pct"):
        printed = at_target.drop_duplicates("devices")["printed"]
        grid = [["", *(f"{share} %" for share in DEVICES)]]
        grid += [["Table 4", *(f"{value:.0f}" for value in printed)]]
        for _, style, own in shown:
            cells_of = own[own["target_accuracy_pct"] == target].to_dict("records")
            grid.append([style.label, *map(_cell, cells_of)])
        blocks += [Heading(f"{target} %"), Table(grid)]
    counts = [["", "seeds", *(f"{t} %" for t in _TARGETS), "all"]]
    for key, style, own in shown:
        seeds, inside = len(found[key]), own.set_index("target_accuracy_pct")["inside"]
        numbers = [
            f"{one.sum()} of {len(one)}" if seeds >= _FEWEST else "-"
            for one in (*(inside[[target]] for target in _TARGETS), inside)
        ]
        counts.append([style.label, str(seeds), *numbers])
    blocks += [Heading("Printed rounds inside the interval"), Table(counts)]
    return Page("Which network has Table 4's rounds of DS?", blocks)


def _cell(row: Mapping[Any, Any]) -> str:
    texts = row["rounds"].split()
    rounds = [int(text) for text in texts if text != "-"]
    if len(rounds) < len(texts):
        return f"{len(rounds)} of {len(texts)} arrive"
    span = f"{min(rounds)} to {max(rounds)}"
    if math.isnan(row["low"]):
        return span
    star = "*" if row["inside"] else ""
    return f"{span} ({row['low']:.1f}, {row['high']:.1f}){star}"


@figures.styled
def figure(found: Readings) -> Any:
    """Returns the curves of accuracy, with the rounds that Table 4 prints for half."""
    drawn, axes = figures.single()
    for key, own in found.items():
        tables = (run.rounds.set_index("round") for run in own.values())
        curves = [table["accuracy"][:ROUNDS] for table in tables]
        style = _READINGS[key]
        figures.curve(axes, curves, style, label=f"{style.label}, {len(own)} seeds")
    printed = published.rounds_of_ds("pmc_table4")
    for target in _TARGETS:  # On the axis: they are of no reading.
        axes.scatter(
            printed[target, 50],
            0,
            marker=shape(target),
            s={70: 14, 80: 45}.get(target, 30),  # Two are of one round.
            facecolors="none",
            edgecolors="black",
            clip_on=False,
            zorder=4,
            label=f"Table 4: half of the\ndevices reach {target} %",
        )
    figures.round_axis(axes, ROUNDS)
    axes.set_ylim(0, 1)
    title = "DS on MNIST, non-IID: readings of PMC's network"
    band = "line: mean of the seeds; band: lowest to highest"
    handles, _ = axes.get_legend_handles_labels()
    figures.finish(axes, title, "accuracy", handles, "reading", band)
    return drawn


def report(runs: Iterable[Run]) -> Report:
    """Returns `readings.csv`, `readings.md` and `readings.png` of kept runs."""
    found = readings(runs)
    table = cells(found)
    return Report(
        tables={"readings": table},
        pages={"readings": page(found, table)},
        figures={"readings": figure(found)},
        digits=6,
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tff_pmc.reports.papers.pmc_readings RESULTS DIR")
    about = "MNIST, non-IID, 100 clients"
    output.write(report(kept_runs(sys.argv[1])), sys.argv[2], about)
