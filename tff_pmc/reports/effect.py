"""The effect of orderings against DS on paired seeds, beside the noise floor.

A run with one seed proves nothing: seeds alone move the rounds to a target by more than
orderings do. Here every ordering is held against DS under the same seed (partition,
initial weights, cohorts, batches), seed by seed, and beside it stands the A/A control:
DS against DS under other seeds.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Optional

import pandas as pd

from tff_pmc.reports import (
    effect_page,
    escape,
    first_criterion,
    pages,
    paired,
    recorded_settings,
)
from tff_pmc.reports.read import BASELINE, Run, with_caveat
from tff_pmc.reports.record_error import RecordError
from tff_pmc.reports.rounds_to_target import rounds_to_target
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
    strictly_above: bool = False,
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
        strictly_above: see `rounds_to_target`.

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
    values = paired.by_measure(
        by_seed, lambda run: _measures(run, targets, strictly_above)
    )
    weights = _weights(by_seed, baseline)
    rows = [
        {
            "ordering": label,
            "measure": measure,
            **paired.difference(own, values[measure, baseline]),
            **weights.get(label.split(" ")[0], {}),
        }
        for label in labels
        for (measure, of), own in values.items()
        if label == of != baseline
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


def write(
    by_seed: Mapping[int, Sequence[Run]],
    folder: str,
    *,
    baseline: str = BASELINE,
    strictly_above: Optional[bool] = None,
) -> str:
    """Writes the effects; returns the page as text.

    `effect.csv` has `effect_rows`, `effect_distances.csv` has `distances`,
    `effect_first_criterion.csv` has `first_criterion.rows` (these two are not there
    where they are empty), and the page `effect.md` all three.

    Args:
        by_seed: the runs of each seed, whose own targets are taken.
        folder: the folder for the files, which are replaced.
        baseline: the label of the runs that the others are held against.
        strictly_above: see `rounds_to_target`; by default the runs' own rule.

    Raises:
        RecordError: see `effect_rows`; or two runs have different targets, or rules
            where none is given.
    """
    runs = [run for runs in by_seed.values() for run in runs]
    above = recorded_settings.strictly_above(runs, strictly_above)
    targets = recorded_settings.targets(runs)
    rows = effect_rows(by_seed, targets, baseline=baseline, strictly_above=above)
    path = os.path.join(folder, "effect.csv")
    escape.write_csv(with_caveat(rows, runs), path, index=False, float_format="%.6g")
    apart = distances(by_seed, baseline)
    if len(apart):
        path = os.path.join(folder, "effect_distances.csv")
        escape.write_csv(with_caveat(apart, runs), path, float_format="%.6g")
    together = first_criterion.rows(
        by_seed, targets, baseline=baseline, strictly_above=above
    )
    if len(together):
        path = os.path.join(folder, first_criterion.FILE)
        table = with_caveat(together, runs)
        escape.write_csv(table, path, index=False, float_format="%.6g")
    page = effect_page.page(
        rows, apart, runs[0], list(by_seed), baseline=baseline, strictly_above=above
    )
    more = first_criterion.blocks(together, baseline, len(by_seed))
    page = page._replace(blocks=[*page.blocks, *more])
    pages.write(os.path.join(folder, "effect"), page)
    return pages.markdown(page)


def _measures(
    run: Run, targets: Sequence[int], strictly_above: bool
) -> dict[str, float]:
    """Returns the measures of a run; rounds are infinite without the target."""
    reached = rounds_to_target(
        run.correct, run.examples, targets, [SHARE], strictly_above=strictly_above
    )
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
