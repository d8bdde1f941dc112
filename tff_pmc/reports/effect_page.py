"""The page of `effect`: its sentences, and the tables of paired differences."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.record.read import Run, conditions_of
from tff_pmc.reports.pages import Block, Heading, Items, Table, number
from tff_pmc.reports.paired import MIN_SEEDS, BySeed
from tff_pmc.reports.rounds_to_target import reach_rule
from tff_pmc.reports.weight_distances import FIGURES


def intro(run: Run, seeds: Sequence[int], baseline: str, reach: str) -> list[str]:
    """Returns what orderings are held against, and how the numbers are read."""
    return [
        f"{run.data['name']} ({run.source}), {run.data['clients']} clients, "
        f"{len(run.correct)} rounds, the "
        f"seeds {', '.join(map(str, seeds))}. Each ordering minus {baseline} under the "
        "same seed: mean ± half the 95 % interval. The noise floor is the standard "
        f"deviation of {baseline} minus {baseline} under another seed: of one such "
        f"difference, and of the mean of {len(seeds)}, to hold the means against. "
        "Accuracy is the mean over the second half of the rounds. For rounds, less is "
        f"better. {reach_rule(reach)}",
        f"How far apart the weights are, on the cohorts of the runs of {baseline} "
        f"(total variation: the share of weight that moves away from {baseline}, or "
        "from the ordering's own first criterion alone):",
    ]


def intro_of_systems(
    by_seed: BySeed, baseline: str, means: pd.DataFrame, of_accuracy: bool
) -> list[Block]:
    """Returns the same of systems, and each system's `means` over the seeds.

    Where all measures are accuracies they are named by their rounds alone.
    """
    what, best, title = "", "", "Means over the seeds:"
    if of_accuracy:
        what = ", accuracy on the reported images"
        best = "The best round is chosen on the reported images. "
        title = "Mean accuracy over the seeds:"
    lines = [
        [str(label), *(f"{v:.4f}" if math.isfinite(v) else "–" for v in values)]
        for label, *values in means.itertuples()
    ]
    return [
        f"Each system minus {baseline} on the same data and under the same seed{what}: "
        "mean ± half the 95 % interval. The noise "
        "floor is the standard deviation of the baseline minus itself under another "
        f"seed: of one such difference, and of the mean of {len(by_seed)}, to hold the "
        f"means against. {best}A seed "
        "decides the initial weights, the batches and what of the data is drawn at "
        "random. "
        f"Seeds: {', '.join(map(str, by_seed))}; under the first:",
        Items(conditions_of(next(iter(by_seed.values())))),
        title,
        Table([["", *means], *lines]),
    ]


def weights(rows: pd.DataFrame, apart: pd.DataFrame, baseline: str) -> list[Block]:
    """Returns how unequal the weights of orderings are, and their distances."""
    head = ["ordering", "coefficient of variation", "effective clients"]
    head += [f"total variation from {baseline}", "from its own first criterion"]
    grid = [head]
    for row in rows.drop_duplicates("ordering").to_dict("records"):
        figures = zip((row[name] for name in FIGURES), (".4f", ".2f", ".4f"))
        cells = [number(value, form) or "–" for value, form in figures]
        grid.append([str(row["ordering"]), *cells, number(row["from_first"], ".4f")])
    found: list[Block] = [Table(grid)]
    if rows["total_variation"].isna().any():
        found.append(f"–: no ordering of the criteria of {baseline}'s runs.")
    if len(apart):
        square = [
            [str(name), *map("{:.4f}".format, row)] for name, *row in apart.itertuples()
        ]
        found += ["From each other:", Table([["", *apart.columns], *square])]
    return found


def differences(rows: pd.DataFrame, what: str, baseline: str) -> list[Block]:
    """Returns a table for each measure of each `what`, and below what was found."""
    made: list[Block] = []
    for name, part in rows.groupby("measure", sort=False):
        digits = 1 if str(name).startswith("rounds to") else 4
        made += [Heading(str(name)), Table(_grid(part, what, baseline, digits))]
    made += _closing(rows)
    if rows["mean"].isna().any():
        made.append(
            f"Censored: under some seed the {what} or {baseline} did not reach the "
            "target before the runs ended. How much later it would have is not known, "
            "so there is no mean, only who came later, and where neither came, not "
            f"even that; and no noise floor where a run of {baseline} did not come."
        )
    return made


def by_first_criterion(found: pd.DataFrame, baseline: str) -> list[Block]:
    """Returns the part on `effect.first_criterion_rows`; nothing without any."""
    if not len(found):
        return []
    base = baseline.split(",")[0]
    count = int(found["orderings"].iloc[0])
    made: list[Block] = [
        Heading("By the first criterion"),
        f"The mean of the {count} orderings that begin with a criterion, minus that "
        f"of the {count} that begin with {base}. Where the later criteria hardly move "
        "weight (above: from its own first criterion), these are nearly one algorithm, "
        "and their mean has less of the rounding in it that training amplifies. "
        "Rounds: the mean until 10, 20, ..., 90 % of the devices reach the target.",
    ]
    for measure, part in found.groupby("measure", sort=False):
        digits = 4 if measure == "accuracy" else 2
        within = number(part["within"].iloc[0], f".{digits}f")
        spread = f"; runs of one first criterion and seed: ± {within}" if within else ""
        grid = _grid(part, "first criterion", f"{base} first", digits)
        made += [f"{measure}{spread}", Table(grid)]
    return [*made, *_closing(found)]


def _grid(rows: pd.DataFrame, what: str, baseline: str, digits: int) -> list[list[str]]:
    grid = [[what, f"minus {baseline}", "noise floor", "of the mean", "effect"]]
    for row in rows.to_dict("records"):
        names = ("noise_floor", "noise_floor_of_mean")
        floors = [number(row[name], f".{digits}f") for name in names]
        label = str(row[what.replace(" ", "_")])
        grid.append([label, _mean(row, digits), *floors, str(row["verdict"])])
    return grid


def _closing(rows: pd.DataFrame) -> list[str]:
    """Returns sentences on the number of differences found, and expected by chance."""
    counts, lines = rows["verdict"].value_counts(), []
    found = int(counts.reindex(["more", "less"]).sum())
    decided = found + int(counts.get("not shown", 0))
    if decided:
        lines.append(
            f"{found} of {decided} comparisons lie outside their interval; about "
            f"{decided / 20:.1f} would by chance."
        )
    if (rows["seeds"] < MIN_SEEDS).any():
        lines.append(f"Under {MIN_SEEDS} seeds nothing is claimed.")
    return lines


def _mean(row: Mapping[Hashable, Any], digits: int) -> str:
    """Returns the mean and its interval; of censored rounds, the signs alone."""
    if math.isnan(row["mean"]):
        return (
            f"later in {row['more_in']} and earlier in {row['less_in']} of "
            f"{row['seeds']} seeds"
        )
    interval = number(row["interval"], f".{digits}f")
    return f"{row['mean']:+.{digits}f}{interval and f' ± {interval}'}"
