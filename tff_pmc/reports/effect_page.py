"""The page of `effect`: distances of weights, and differences in accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tff_pmc.reports import paired
from tff_pmc.reports.pages import Block, Grid, Heading, Page, Table
from tff_pmc.reports.read import Run
from tff_pmc.reports.rounds_to_target import reach_rule


def page(
    rows: pd.DataFrame,
    apart: pd.DataFrame,
    run: Run,
    seeds: Sequence[int],
    *,
    baseline: str,
    strictly_above: bool,
) -> Page:
    """Returns the page.

    Args:
        rows: the effects, as `effect.effect_rows` gives them.
        apart: the distances, as `effect.distances` gives them; left out if empty.
        run: any of the runs, for the data and the experiment.
        seeds: the seeds of the runs.
        baseline: the label of the runs that the others are held against.
        strictly_above: see `rounds_to_target`.
    """
    blocks: list[Block] = [
        f"{run.data['name']} ({run.source}), {run.data['clients']} clients, "
        f"{len(run.correct)} rounds, the "
        f"seeds {', '.join(map(str, seeds))}. Each ordering minus {baseline} under the "
        "same seed: mean ± half the 95 % interval. The noise floor is the standard "
        f"deviation of {baseline} minus {baseline} under another seed: of one such "
        f"difference, and of the mean of {len(seeds)}, to hold the means against. "
        f"For rounds, less is better. {reach_rule(strictly_above)}",
        f"How far apart the weights are, on the cohorts of the runs of {baseline} "
        f"(total variation: the share of weight that moves away from {baseline}, or "
        "from the ordering's own first criterion alone):",
        Table(_weights(rows, baseline)),
    ]
    if len(apart):
        grid = [["", *apart.columns]]
        grid += [
            [str(name), *map("{:.4f}".format, row)] for name, *row in apart.itertuples()
        ]
        blocks += ["From each other:", Table(grid)]
    for measure, part in rows.groupby("measure", sort=False):
        digits = 4 if str(measure).endswith("accuracy") else 1
        grid = paired.grid(part, "ordering", baseline, digits)
        blocks += [Heading(str(measure)), Table(grid)]
    blocks += paired.closing(rows, len(seeds))
    if rows["mean"].isna().any():
        blocks.append(
            f"Censored: under some seed the ordering or {baseline} did not reach the "
            "target before the runs ended. How much later it would have is not known, "
            "so there is no mean, only who came later, and where neither came, not "
            f"even that; and no noise floor where a run of {baseline} did not come."
        )
    return Page(f"Is there an effect? {run.settings['experiment']}", blocks)


def _weights(rows: pd.DataFrame, baseline: str) -> Grid:
    lines = [
        [
            "ordering",
            "coefficient of variation",
            "effective clients",
            f"total variation from {baseline}",
            "from its own first criterion",
        ]
    ]
    for ordering, part in rows.groupby("ordering", sort=False):
        first = part.iloc[0]
        lines.append(
            [
                str(ordering),
                f"{first.coefficient_of_variation:.4f}",
                f"{first.effective_clients:.2f}",
                f"{first.total_variation:.4f}",
                paired.number(first.from_first, ".4f"),
            ]
        )
    return lines
