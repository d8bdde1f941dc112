"""Is there an effect? Orderings against DS on paired seeds, beside the noise floor.

A run with one seed proves nothing: seeds alone move the rounds to a target by more than
orderings do. Here every ordering is held against DS under the same seed (partition,
initial weights, cohorts, batches), seed by seed, and beside it stands the A/A control:
DS against DS under other seeds.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from tff_pmc import scores
from tff_pmc.reports.ordering_distances import ordering_distances
from tff_pmc.reports.read import BASELINE, Run
from tff_pmc.reports.rounds_to_target import rounds_to_target

MIN_SEEDS = 5
"""Below this many seeds nothing is claimed."""

SHARE = 50
"""Of the devices, percent, whose round counts."""

COLUMNS = (
    *("ordering", "measure", "seeds", "mean", "deviation", "interval", "noise_floor"),
    *("coefficient_of_variation", "effective_clients", "total_variation"),
    *("from_first", "verdict"),
)


def effect_rows(
    by_seed: Mapping[int, Sequence[Run]], targets: Sequence[int]
) -> pd.DataFrame:
    """The paired differences of every ordering from DS.

    The measures are `accuracy`, the mean over the second half of the rounds, and
    `rounds to T %`, until half of the devices reach the target (the run's length plus
    one where they never do). A difference is the ordering's minus that of DS under the
    same seed.

    Args:
        by_seed: the runs of each seed, of the same orderings, DS among them.
        targets: target accuracies, percent.

    Returns:
        The columns `COLUMNS`. `mean` and `deviation` are of the differences over the
        seeds, `interval` is half the width of the 95 % confidence interval of the
        mean (Student's t; empty below five seeds). `noise_floor` is the standard
        deviation of the difference between DS and DS of another seed. How unequal the
        weights are, how far (total variation) from those of DS and, `from_first`,
        from those by the ordering's own first criterion alone, is the mean over the
        cohorts of the runs of DS. `verdict` is `none`, `more` or `less` than DS by the
        interval (more rounds are worse), and `undecided` below five seeds or where
        neither reached the target under some seed. Eight orderings and several
        measures are many comparisons: one in twenty verdicts is chance.

    Raises:
        ValueError: a seed lacks DS, or has other orderings than the others.
    """
    labels = [run.label for run in next(iter(by_seed.values()))]
    values: dict[tuple[str, str], list[float]] = {}
    never: dict[tuple[str, str], list[bool]] = {}
    for seed, runs in by_seed.items():
        if [run.label for run in runs] != labels or BASELINE not in labels:
            raise ValueError(
                f"seed {seed} has the runs {', '.join(r.label for r in runs)}; each "
                f"seed needs the same, {BASELINE} among them"
            )
        for run in runs:
            for measure, value in _measures(run, targets).items():
                values.setdefault((run.label, measure), []).append(value)
                late = measure != "accuracy" and value > len(run.correct)
                never.setdefault((run.label, measure), []).append(late)
    censored = {
        (label, measure): any(a and b for a, b in zip(late, never[BASELINE, measure]))
        for (label, measure), late in never.items()
    }
    weights = _weights(by_seed)
    rows: list[dict[str, Any]] = []
    for (label, measure), own in values.items():
        if label == BASELINE:
            continue
        base = values[BASELINE, measure]
        floor = [a - b for a, b in itertools.permutations(base, 2)]
        rows.append(
            {
                "ordering": label,
                "measure": measure,
                **_paired(np.subtract(own, base), censored[label, measure]),
                "noise_floor": float(np.std(floor)) if floor else math.nan,
                **weights.get(label.split(" ")[0], {}),
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write(
    by_seed: Mapping[int, Sequence[Run]], targets: Sequence[int], folder: str
) -> str:
    """Writes `effect.csv` and `effect.md`; returns the page as text."""
    rows = effect_rows(by_seed, targets)
    rows.to_csv(os.path.join(folder, "effect.csv"), index=False, float_format="%.6g")
    run = next(iter(by_seed.values()))[0]
    page = _page(rows, run, list(by_seed))
    with open(os.path.join(folder, "effect.md"), "w", encoding="utf-8") as file:
        file.write(page)
    return page


def _measures(run: Run, targets: Sequence[int]) -> dict[str, float]:
    accuracy = run.correct.sum(axis=1) / run.examples.sum()
    reached = rounds_to_target(run.correct, run.examples, targets, [SHARE])
    never = len(run.correct) + 1
    return {
        "accuracy": float(accuracy[len(accuracy) // 2 :].mean()),
        **{
            f"rounds to {target} %": float(reached[target, SHARE] or never)
            for target in targets
        },
    }


def _paired(differences: npt.NDArray[np.float64], censored: bool) -> dict[str, Any]:
    count = len(differences)
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1)) if count > 1 else math.nan
    if count < MIN_SEEDS or censored:
        interval, verdict = math.nan, "undecided"
    else:
        quantile = float(stats.t.ppf(0.975, count - 1))
        interval = quantile * deviation / math.sqrt(count)
        verdict = "none" if abs(mean) <= interval else "more" if mean > 0 else "less"
    return {
        "seeds": count,
        "mean": mean,
        "deviation": deviation,
        "interval": interval,
        "verdict": verdict,
    }


def _weights(by_seed: Mapping[int, Sequence[Run]]) -> dict[str, dict[str, float]]:
    """How unequal each ordering's weights were on the cohorts of the runs of DS."""
    base = [run for runs in by_seed.values() for run in runs if run.label == BASELINE]
    names = ["coefficient_of_variation", "effective_clients", "total_variation"]
    tables = pd.concat([run.weights for run in base])
    means = tables.groupby("ordering", sort=False)[names].mean()
    means["from_first"] = _from_first(base, [str(label) for label in means.index])
    return {
        str(label): {str(name): float(value) for name, value in row.items()}
        for label, row in means.iterrows()
    }


def _from_first(runs: Sequence[Run], labels: Sequence[str]) -> pd.Series[float]:
    """`from_first` by label, from the raw criteria on record; NaN without them."""
    settings, cohorts = runs[0].info["settings"], []
    for run in runs:
        if run.cohort is None:
            return pd.Series(math.nan, labels)
        counted = run.cohort[run.cohort["excluded"] == 0]
        columns = counted.groupby("round")[settings["criteria"]]
        cohorts += [part.to_numpy(float) for _, part in columns]
    ranges = tuple(map(tuple, settings.get("criteria_ranges", ())))
    return ordering_distances(
        cohorts,
        settings["criteria"],
        [tuple(label.split(",")) for label in labels],
        scores.Normalization(settings.get("normalization", "sum"), ranges),
    )["from_first"]


def _page(rows: pd.DataFrame, run: Run, seeds: Sequence[int]) -> str:
    data, settings = run.info["data"], run.info["settings"]
    lines = [
        f"# Is there an effect? {settings['experiment']}",
        "",
        f"{data['name']} ({data['origin']['source']}), {data['clients']} clients, "
        f"{len(run.correct)} rounds, the "
        f"seeds {', '.join(map(str, seeds))}. Each ordering minus {BASELINE} under the "
        "same seed: mean ± half the 95 % interval. The noise floor is the standard "
        f"deviation of {BASELINE} minus {BASELINE} under another seed.",
        "",
        f"How far apart the weights are, on the cohorts of the runs of {BASELINE} "
        f"(total variation: the share of weight that moves away from {BASELINE}, or "
        "from the ordering's own first criterion alone):",
        "",
        "| ordering | coefficient of variation | effective clients "
        f"| total variation from {BASELINE} | from its own first criterion |",
        "|---|---:|---:|---:|---:|",
    ]
    for ordering, part in rows.groupby("ordering", sort=False):
        first = part.iloc[0]
        unknown = math.isnan(first.from_first)
        lines.append(
            f"| {ordering} | {first.coefficient_of_variation:.4f} | "
            f"{first.effective_clients:.2f} | {first.total_variation:.4f} | "
            f"{'' if unknown else f'{first.from_first:.4f}'} |"
        )
    for measure, part in rows.groupby("measure", sort=False):
        digits = 4 if measure == "accuracy" else 1
        lines += [
            "",
            f"## {measure}",
            "",
            f"| ordering | minus {BASELINE} | noise floor | effect |",
            "|---|---:|---:|---|",
        ]
        for row in part.itertuples():
            half: Any = row.interval
            interval = "" if math.isnan(half) else f" ± {half:.{digits}f}"
            lines.append(
                f"| {row.ordering} | {row.mean:+.{digits}f}{interval} | "
                f"{row.noise_floor:.{digits}f} | {row.verdict} |"
            )
    decided = rows[rows["verdict"] != "undecided"]
    found = int((decided["verdict"] != "none").sum())
    if len(decided):
        lines += [
            "",
            f"{found} of {len(decided)} comparisons lie outside their interval; about "
            f"{len(decided) / 20:.1f} would by chance. For rounds, less is better.",
        ]
    if len(seeds) < MIN_SEEDS:
        lines += ["", f"Under {MIN_SEEDS} seeds nothing is claimed."]
    return "\n".join(lines) + "\n"
