"""The page of `effect`: how far apart the weights are, and what it did to accuracy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.reports import grids
from tff_pmc.reports.read import BASELINE, Run
from tff_pmc.reports.rounds_to_target import reach_rule

MIN_SEEDS = 5
"""Below this many seeds nothing is claimed."""

NOT_DECIDED = ("undecided", "censored")


def page(
    rows: pd.DataFrame,
    apart: pd.DataFrame,
    run: Run,
    seeds: Sequence[int],
    *,
    strictly_above: bool = False,
) -> str:
    """The page as Markdown.

    Args:
        rows: as `effect.effect_rows` gives them.
        apart: as `effect.distances` gives them; left out if empty.
        run: any of the runs.
        seeds: of the runs.
        strictly_above: see `rounds_to_target`.
    """
    data, settings = run.info["data"], run.info["settings"]
    lines = [
        f"# Is there an effect? {settings['experiment']}",
        "",
        f"{data['name']} ({data['origin']['source']}), {data['clients']} clients, "
        f"{len(run.correct)} rounds, the "
        f"seeds {', '.join(map(str, seeds))}. Each ordering minus {BASELINE} under the "
        "same seed: mean ± half the 95 % interval. The noise floor is the standard "
        f"deviation of {BASELINE} minus {BASELINE} under another seed: of one such "
        f"difference, and of the mean of {len(seeds)}, to hold the means against. "
        f"{reach_rule(strictly_above)}",
        "",
        f"How far apart the weights are, on the cohorts of the runs of {BASELINE} "
        f"(total variation: the share of weight that moves away from {BASELINE}, or "
        "from the ordering's own first criterion alone):",
        "",
        *_weights(rows),
    ]
    if len(apart):
        grid = [["", *apart.columns]]
        grid += [
            [str(name), *map("{:.4f}".format, row)] for name, *row in apart.itertuples()
        ]
        lines += ["", "From each other:", "", grids.markdown(grid)]
    for measure, part in rows.groupby("measure", sort=False):
        lines += ["", f"## {measure}", "", *_differences(str(measure), part)]
    decided = rows[~rows["verdict"].isin(NOT_DECIDED)]
    found = int((decided["verdict"] != "not shown").sum())
    if len(decided):
        lines += [
            "",
            f"{found} of {len(decided)} comparisons lie outside their interval; about "
            f"{len(decided) / 20:.1f} would by chance. For rounds, less is better.",
        ]
    if rows["mean"].isna().any():
        lines += [
            "",
            f"Censored: under some seed the ordering or {BASELINE} did not reach the "
            "target before the runs ended. How much later it would have is not known, "
            "so there is no mean, only who came later, and where neither came, not "
            f"even that; and no noise floor where a run of {BASELINE} did not come.",
        ]
    if len(seeds) < MIN_SEEDS:
        lines += ["", f"Under {MIN_SEEDS} seeds nothing is claimed."]
    return "\n".join(lines) + "\n"


def _weights(rows: pd.DataFrame) -> list[str]:
    lines = [
        "| ordering | coefficient of variation | effective clients "
        f"| total variation from {BASELINE} | from its own first criterion |",
        "|---|---:|---:|---:|---:|",
    ]
    for ordering, part in rows.groupby("ordering", sort=False):
        first = part.iloc[0]
        lines.append(
            f"| {ordering} | {first.coefficient_of_variation:.4f} | "
            f"{first.effective_clients:.2f} | {first.total_variation:.4f} | "
            f"{_number(first.from_first, '.4f')} |"
        )
    return lines


def _differences(measure: str, rows: pd.DataFrame) -> list[str]:
    digits = 4 if measure.endswith("accuracy") else 1
    lines = [
        f"| ordering | minus {BASELINE} | noise floor | of the mean | effect |",
        "|---|---:|---:|---:|---|",
    ]
    for row in rows.to_dict("records"):
        floors = [
            _number(row[name], f".{digits}f")
            for name in ("noise_floor", "noise_floor_of_mean")
        ]
        lines.append(
            f"| {row['ordering']} | {_difference(row, digits)} | "
            f"{' | '.join(floors)} | {row['verdict']} |"
        )
    return lines


def _difference(row: Mapping[Hashable, Any], digits: int) -> str:
    """The mean and its interval; of censored rounds, who came later."""
    if math.isnan(row["mean"]):
        return (
            f"later in {row['more_in']} and earlier in {row['less_in']} of "
            f"{row['seeds']} seeds"
        )
    interval = _number(row["interval"], f".{digits}f")
    return f"{row['mean']:+.{digits}f}{interval and f' ± {interval}'}"


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)
