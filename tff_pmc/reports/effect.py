"""Is there an effect? Orderings against DS on paired seeds, beside the noise floor.

A run with one seed proves nothing: seeds alone move the rounds to a target by more than
orderings do. Here every ordering is held against DS under the same seed (partition,
initial weights, cohorts, batches), seed by seed, and beside it stands the A/A control:
DS against DS under other seeds.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.reports import effect_page, paired
from tff_pmc.reports.ordering_distances import (
    ordering_distances,
    pairwise_distances,
    recorded,
)
from tff_pmc.reports.read import BASELINE, Run, with_caveat
from tff_pmc.reports.rounds_to_target import rounds_to_target

SHARE = 50
"""Of the devices, percent, whose round counts."""

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
    strictly_above: bool = False,
) -> pd.DataFrame:
    """The paired differences of every ordering from DS.

    The measures, on all clients' test examples, are `accuracy`, the mean over the
    second half of the rounds, and `best accuracy`, that of the best round; and `rounds
    to T %`, until half of the devices reach the target. A difference is the ordering's
    minus that of DS under the same seed. A run that never reaches the target has a
    count of rounds that is only known to be larger than its length (it is censored):
    where either side is, under any seed, a mean would depend on when the runs ended,
    and only the signs are given.

    Args:
        by_seed: the runs of each seed, of the same orderings, DS among them, all of
            equally many rounds.
        targets: target accuracies, percent.
        strictly_above: see `rounds_to_target`.

    Returns:
        The columns `COLUMNS`: those of `paired.difference` (`more` rounds than DS are
        worse), and of the weights: how unequal they are, how far (total variation)
        from those of DS and, `from_first`, from those by the ordering's own first
        criterion alone, as the mean over the cohorts of the runs of DS. Eight orderings
        and several measures are many comparisons: one in twenty verdicts is chance.

    Raises:
        ValueError: a seed lacks DS, or has other orderings or rounds than the others.
    """
    labels = _labels(by_seed)
    length = len(next(iter(by_seed.values()))[0].correct)
    values: dict[tuple[str, str], list[float]] = {}
    for seed, runs in by_seed.items():
        if [run.label for run in runs] != labels or BASELINE not in labels:
            raise ValueError(
                f"seed {seed} has the runs {', '.join(r.label for r in runs)}; each "
                f"seed needs the same, {BASELINE} among them"
            )
        for run in runs:
            if len(run.correct) != length:
                raise ValueError(
                    f"seed {seed}: {run.label} has {len(run.correct)} rounds, not "
                    f"{length}"
                )
            for measure, value in _measures(run, targets, strictly_above).items():
                values.setdefault((run.label, measure), []).append(value)
    weights = _weights(by_seed)
    rows: list[dict[str, Any]] = []
    for (label, measure), own in values.items():
        if label == BASELINE:
            continue
        rows.append(
            {
                "ordering": label,
                "measure": measure,
                **paired.difference(own, values[BASELINE, measure]),
                **weights.get(label.split(" ")[0], {}),
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def distances(by_seed: Mapping[int, Sequence[Run]]) -> pd.DataFrame:
    """How far the weights by each ordering are from those by every other.

    Computed from the raw criteria that the runs of DS have on record.

    Returns:
        Total variations, a row and a column an ordering, the mean over the cohorts;
        empty where a run of DS has no raw criteria on record.
    """
    return pairwise_distances(*recorded(_baselines(by_seed), _labels(by_seed)))


def write(
    by_seed: Mapping[int, Sequence[Run]],
    targets: Sequence[int],
    folder: str,
    *,
    strictly_above: bool = False,
) -> str:
    """Writes the effects; returns the page as text.

    `effect.csv` has `effect_rows`, `effect_distances.csv` has `distances` (it is not
    there where they are empty), and the page `effect.md` both.
    """
    runs = [run for runs in by_seed.values() for run in runs]
    rows = effect_rows(by_seed, targets, strictly_above=strictly_above)
    with_caveat(rows, runs).to_csv(
        os.path.join(folder, "effect.csv"), index=False, float_format="%.6g"
    )
    apart = distances(by_seed)
    if len(apart):
        path = os.path.join(folder, "effect_distances.csv")
        with_caveat(apart, runs).to_csv(path, float_format="%.6g")
    page = effect_page.page(
        rows, apart, runs[0], list(by_seed), strictly_above=strictly_above
    )
    with open(os.path.join(folder, "effect.md"), "w", encoding="utf-8") as file:
        file.write(page)
    return page


def _measures(
    run: Run, targets: Sequence[int], strictly_above: bool
) -> dict[str, float]:
    """The measures of a run; infinite rounds where it never reaches the target."""
    accuracy = run.correct.sum(axis=1) / run.examples.sum()
    reached = rounds_to_target(
        run.correct, run.examples, targets, [SHARE], strictly_above=strictly_above
    )
    return {
        "accuracy": float(accuracy[len(accuracy) // 2 :].mean()),
        "best accuracy": float(accuracy.max()),
        **{
            f"rounds to {target} %": float(reached[target, SHARE] or math.inf)
            for target in targets
        },
    }


def _labels(by_seed: Mapping[int, Sequence[Run]]) -> list[str]:
    return [run.label for run in next(iter(by_seed.values()))]


def _baselines(by_seed: Mapping[int, Sequence[Run]]) -> list[Run]:
    return [run for runs in by_seed.values() for run in runs if run.label == BASELINE]


def _weights(by_seed: Mapping[int, Sequence[Run]]) -> dict[str, dict[str, float]]:
    """How unequal each ordering's weights were on the cohorts of the runs of DS."""
    base = _baselines(by_seed)
    names = ["coefficient_of_variation", "effective_clients", "total_variation"]
    tables = pd.concat([run.weights for run in base])
    means = tables.groupby("ordering", sort=False)[names].mean()
    means["from_first"] = ordering_distances(*recorded(base, _labels(by_seed)))[
        "from_first"
    ]
    return {
        str(label): {str(name): float(value) for name, value in row.items()}
        for label, row in means.iterrows()
    }
