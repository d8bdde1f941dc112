"""The effect of orderings against DS on paired seeds, beside the noise floor.

A run with one seed proves nothing: seeds alone move the rounds to a target by more than
orderings do. Here every ordering is held against DS under the same seed (partition,
initial weights, cohorts, batches), seed by seed, and beside it stands the A/A control:
DS against DS under other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from tff_pmc.reports import Report, first_criterion, paired, recorded_settings
from tff_pmc.reports.kept import rounds_of
from tff_pmc.reports.pages import Block, Page, Table
from tff_pmc.reports.read import BASELINE, Run, with_caveat
from tff_pmc.reports.record_error import RecordError
from tff_pmc.reports.rounds_to_target import reach_rule
from tff_pmc.reports.weight_distances import (
    ordering_distances,
    pairwise_distances,
    recorded,
)

SHARE = 50
"""The share of the devices, percent, whose round to a target is compared."""

COLUMNS = (
    *("ordering", "measure", "seeds", "mean", "deviation", "interval", "noise_floor"),
    *("noise_floor_of_mean", "more_in", "less_in"),
    *("coefficient_of_variation", "effective_clients", "total_variation"),
    *("from_first", "verdict"),
)


def effect_rows(
    by_seed: Mapping[int, Sequence[Run]],
    targets: Sequence[int],
    *,
    baseline: str = BASELINE,
) -> pd.DataFrame:
    """Returns the paired differences of every ordering from the baseline.

    The measures, on all clients' test examples, are `accuracy`, the mean over the
    second half of the rounds, and `best accuracy`, that of the best round; and `rounds
    to T %`, until half of the devices reach the target. A difference is the ordering's
    minus that of the baseline under the same seed. A run that never reaches the target
    has a count of rounds that is only known to be larger than its length: it is
    censored. Where either side is, under any seed, a mean would depend on when the runs
    ended, and only the signs are given.

    Args:
        by_seed: the runs of each seed, of the same orderings, the baseline among
            them, all of equally many rounds.
        targets: target accuracies, percent.
        baseline: the label of the runs that the others are held against.

    Returns:
        The columns `COLUMNS`: those of `paired.difference` (`more` rounds than DS are
        worse), and of the weights: how unequal they are, how far (total variation)
        from those of DS and, `from_first`, from those by the ordering's own first
        criterion alone, as the mean over the cohorts of the runs of DS. Eight orderings
        and several measures are many comparisons: one in twenty verdicts is chance.

    Raises:
        RecordError: there is no run of the baseline, or a seed has other orderings or
            rounds than the others.
    """
    labels = paired.labels(by_seed)
    if baseline not in labels:
        raise RecordError(f"no run is of {baseline}: there are {', '.join(labels)}")
    length = len(next(iter(by_seed.values()))[0].correct)
    for seed, runs in by_seed.items():
        for run in runs:
            if len(run.correct) != length:
                raise RecordError(
                    f"seed {seed}: {run.label} has {len(run.correct)} rounds, not "
                    f"{length}"
                )
    weights = _weights(by_seed, baseline)
    found = paired.rows(
        by_seed,
        lambda run: _measures(run, targets),
        dict.fromkeys(labels, baseline),
    )
    rows = [
        {"ordering": row["label"], **row, **weights.get(row["label"].split(" ")[0], {})}
        for row in sorted(found, key=lambda row: labels.index(row["label"]))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def distances(
    by_seed: Mapping[int, Sequence[Run]], baseline: str = BASELINE
) -> pd.DataFrame:
    """Returns the distance of the weights by each ordering from those by every other.

    They are computed from the raw criteria that the runs of the baseline have on
    record.

    Returns:
        Total variations, a row and a column an ordering, the mean over the cohorts;
        empty where a run of the baseline has no raw criteria on record.
    """
    base = _of(by_seed, baseline)
    return pairwise_distances(*recorded(base, paired.labels(by_seed)))


def report(by_seed: Mapping[int, Sequence[Run]], *, baseline: str = BASELINE) -> Report:
    """Returns the effects at the runs' own targets, as tables and a page.

    `effect.csv` has `effect_rows`, `effect_distances.csv` has `distances`,
    `effect_first_criterion.csv` has `first_criterion.rows` (these two are not there
    where they are empty), and the page `effect.md` all three.

    Args:
        by_seed: the runs of each seed.
        baseline: the label of the runs that the others are held against.

    Raises:
        RecordError: see `effect_rows`; or two runs have different targets or rules.
    """
    runs = [run for runs in by_seed.values() for run in runs]
    above = recorded_settings.strictly_above(runs)
    targets = recorded_settings.targets(runs)
    tables = {
        "effect": effect_rows(by_seed, targets, baseline=baseline),
        "effect_distances": distances(by_seed, baseline),
        "effect_first_criterion": first_criterion.rows(by_seed, targets, baseline),
    }
    rows, apart, together = tables.values()
    blocks: list[Block] = [
        *_intro(runs[0], list(by_seed), baseline, above),
        Table(_weights_grid(rows, baseline)),
        *_apart(apart),
        *paired.blocks(rows, "ordering", baseline, _digits),
        *_censored(rows, baseline),
        *first_criterion.blocks(together, baseline),
    ]
    page = Page(f"Is there an effect? {runs[0].settings['experiment']}", blocks)
    marked = {
        name: with_caveat(table, runs)
        for name, table in tables.items()
        if name == "effect" or len(table)
    }
    return Report(page.markdown(), marked, {"effect": page}, digits=6)


def _measures(run: Run, targets: Sequence[int]) -> dict[str, float]:
    """Returns the measures of a run; rounds are infinite without the target."""
    reached = rounds_of(run, targets, [SHARE])
    return {
        "accuracy": run.late_accuracy,
        "best accuracy": float(run.accuracy.max()),
        **{
            f"rounds to {target} %": float(reached[target, SHARE] or math.inf)
            for target in targets
        },
    }


def _of(by_seed: Mapping[int, Sequence[Run]], label: str) -> list[Run]:
    return [run for runs in by_seed.values() for run in runs if run.label == label]


def _weights(
    by_seed: Mapping[int, Sequence[Run]], baseline: str
) -> dict[str, dict[str, float]]:
    """Returns the inequality of each ordering's weights on the baseline's cohorts."""
    base = _of(by_seed, baseline)
    names = ["coefficient_of_variation", "effective_clients", "total_variation"]
    tables = pd.concat([run.weights for run in base])
    means = tables.groupby("ordering", sort=False)[names].mean()
    found = ordering_distances(*recorded(base, paired.labels(by_seed)))
    means["from_first"] = found["from_first"]
    return {
        str(label): {str(name): float(value) for name, value in row.items()}
        for label, row in means.iterrows()
    }


def _digits(measure: str) -> int:
    return 4 if measure.endswith("accuracy") else 1


def _intro(run: Run, seeds: Sequence[int], baseline: str, above: bool) -> list[str]:
    return [
        f"{run.data['name']} ({run.source}), {run.data['clients']} clients, "
        f"{len(run.correct)} rounds, the "
        f"seeds {', '.join(map(str, seeds))}. Each ordering minus {baseline} under the "
        "same seed: mean ± half the 95 % interval. The noise floor is the standard "
        f"deviation of {baseline} minus {baseline} under another seed: of one such "
        f"difference, and of the mean of {len(seeds)}, to hold the means against. "
        f"For rounds, less is better. {reach_rule(above)}",
        f"How far apart the weights are, on the cohorts of the runs of {baseline} "
        f"(total variation: the share of weight that moves away from {baseline}, or "
        "from the ordering's own first criterion alone):",
    ]


def _weights_grid(rows: pd.DataFrame, baseline: str) -> list[list[str]]:
    head = ["ordering", "coefficient of variation", "effective clients"]
    head += [f"total variation from {baseline}", "from its own first criterion"]
    lines = [
        [
            str(first.ordering),
            f"{first.coefficient_of_variation:.4f}",
            f"{first.effective_clients:.2f}",
            f"{first.total_variation:.4f}",
            paired.number(first.from_first, ".4f"),
        ]
        for first in rows.drop_duplicates("ordering").itertuples()
    ]
    return [head, *lines]


def _apart(apart: pd.DataFrame) -> list[Block]:
    if apart.empty:
        return []
    lines = [
        [str(name), *map("{:.4f}".format, row)] for name, *row in apart.itertuples()
    ]
    return ["From each other:", Table([["", *apart.columns], *lines])]


def _censored(rows: pd.DataFrame, baseline: str) -> list[str]:
    if not rows["mean"].isna().any():
        return []
    return [
        f"Censored: under some seed the ordering or {baseline} did not reach the "
        "target before the runs ended. How much later it would have is not known, "
        "so there is no mean, only who came later, and where neither came, not "
        f"even that; and no noise floor where a run of {baseline} did not come."
    ]
