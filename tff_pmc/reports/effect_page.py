"""The page of `effect`: how far apart the weights are, and what it did to accuracy."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tff_pmc.reports import grids, paired
from tff_pmc.reports.read import BASELINE, Run
from tff_pmc.reports.rounds_to_target import reach_rule


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
        f"For rounds, less is better. {reach_rule(strictly_above)}",
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
        digits = 4 if str(measure).endswith("accuracy") else 1
        lines += ["", f"## {measure}", ""]
        lines += paired.markdown(part, "ordering", BASELINE, digits)
    lines += paired.closing(rows, len(seeds))
    if rows["mean"].isna().any():
        lines += [
            "",
            f"Censored: under some seed the ordering or {BASELINE} did not reach the "
            "target before the runs ended. How much later it would have is not known, "
            "so there is no mean, only who came later, and where neither came, not "
            f"even that; and no noise floor where a run of {BASELINE} did not come.",
        ]
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
            f"{paired.number(first.from_first, '.4f')} |"
        )
    return lines
