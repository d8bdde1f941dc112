"""The effect of orderings, or systems, on paired seeds, beside the noise floor.

A run with one seed proves nothing: seeds alone move the rounds to a target by more than
orderings do. Here every ordering is held against DS, and every system against its
baseline, under the same seed (partition, initial weights, cohorts, batches), seed by
seed, and beside it stands the A/A control: the baseline against itself under other
seeds.

Orderings that begin with the same criterion are also taken together. With normalized
criteria the second priority counts about 1/m as much as the first in a cohort of m
(`docs/pmc.md`), so that such orderings are nearly one algorithm. Under one seed their
runs then differ by little but rounding, which training amplifies. The mean of several
of them has less of it than a single run, and their spread says how much of it there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tff_pmc.record.read import BASELINE, Run, with_caveat
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import Report, effect_page, paired, summary
from tff_pmc.reports.pages import Block, Page
from tff_pmc.reports.paired import BySeed
from tff_pmc.reports.rounds_to_target import (
    DEVICES,
    HALF,
    reach_of,
    rounds_of,
    targets_of,
    untested,
)
from tff_pmc.reports.weight_distances import (
    FIGURES,
    ordering_distances,
    pairwise_distances,
    recorded,
)

FIRST_ROUNDS = 5
"""The number of rounds of a system that count as early."""

_WEIGHTS = list(FIGURES)
COLUMNS = (
    *("ordering", "measure", *paired.COLUMNS[:-1]),
    *(*_WEIGHTS, "from_first", "verdict"),
)
FIRST_COLUMNS = ("first_criterion", "measure", "orderings", *paired.COLUMNS, "within")
"""The columns of `effect_first_criterion.csv`."""


def report(by_seed: BySeed, *, baseline: str = BASELINE) -> Report:
    """Returns the effects of orderings at the runs' own targets, as tables and a page.

    `effect.csv` has `effect_rows`, `effect_distances.csv` the total variations of each
    two orderings' weights (the mean over the cohorts of the baseline's runs),
    `effect_first_criterion.csv` has `first_criterion_rows` (these two are not there
    where they are empty), and the page `effect.md` all three. Runs of different targets
    or rules are a `RecordError`.
    """
    runs, labels = paired.every(by_seed), paired.labels(by_seed)
    reach, targets = reach_of(runs), targets_of(runs)
    rows = effect_rows(by_seed, targets, baseline=baseline)
    bases = [run for run in runs if run.label == baseline]
    apart = pairwise_distances(*recorded(bases, labels))
    together = first_criterion_rows(by_seed, targets, baseline)
    blocks = [
        *effect_page.intro(runs[0], list(by_seed), baseline, reach),
        *untested(runs),
        *effect_page.weights(rows, apart, baseline),
        *effect_page.differences(rows, "ordering", baseline),
        *effect_page.by_first_criterion(together, baseline),
    ]
    tables = {
        "effect": rows,
        "effect_distances": apart,
        "effect_first_criterion": together,
    }
    return _made(runs, blocks, tables)


def systems_report(by_seed: BySeed, *, baseline: str) -> Report:
    """Returns `effect.csv` and `effect.md` of systems; see `system_rows`."""
    return _of_systems(by_seed, baseline, _accuracies)


def spread_report(by_seed: BySeed, *, baseline: str) -> Report:
    """Returns the same of other measures, but for the last over the second half.

    They are the mean accuracy, that of each round's worst tenth of the clients, Jain's
    index; and the rounds until half of the clients reach the first target.
    """
    return _of_systems(by_seed, baseline, _spread)


def _of_systems(by_seed: BySeed, baseline: str, measures: paired.Measures) -> Report:
    runs = paired.every(by_seed)
    rows = system_rows(by_seed, baseline, measures)
    measured = [{"": run.label, **measures(run)} for run in runs]
    means = pd.DataFrame(measured).groupby("", sort=False).mean()
    of_accuracy = measures is _accuracies
    blocks = [
        *effect_page.intro_of_systems(by_seed, baseline, means, of_accuracy),
        *effect_page.differences(rows, "system", baseline),
        *([] if of_accuracy else untested(runs)),
    ]
    return _made(runs, blocks, {"effect": rows})


def _made(
    runs: Sequence[Run], blocks: Sequence[Block], tables: Mapping[str, pd.DataFrame]
) -> Report:
    page = Page(f"Is there an effect? {runs[0].settings['experiment']}", blocks)
    marked = {
        name: with_caveat(table, runs)
        for name, table in tables.items()
        if len(table) or name == "effect"
    }
    return Report(page.markdown(), marked, {"effect": page}, digits=6)


def effect_rows(
    by_seed: BySeed, targets: Sequence[int], *, baseline: str = BASELINE
) -> pd.DataFrame:
    """Returns the paired differences of every ordering from the baseline.

    The measures, on all clients' test examples, are `accuracy`, the mean over the
    second half of the rounds, and `best accuracy`, that of the best round; and `rounds
    to T %`, until half of the devices reach the target. A difference is the ordering's
    minus that of the baseline under the same seed. A run that never reaches the target
    has a count of rounds that is only known to be larger than its length: it is
    censored. Where either side is, under any seed, a mean would depend on when the runs
    ended, and only the signs are given.

    The columns `COLUMNS` are those of `paired.difference` (`more` rounds than DS are
    worse), and of the weights: how unequal they are, how far (total variation) from
    those of DS and, `from_first`, from those by the ordering's own first criterion
    alone, as the mean over the cohorts of the runs of DS. Eight orderings and several
    measures are many comparisons: one in twenty verdicts is chance.

    Runs without the baseline, or of other orderings or rounds under one of the seeds,
    are a `RecordError`.
    """
    labels = paired.labels(by_seed)
    if baseline not in labels:
        raise RecordError(f"no run is of {baseline}: there are {', '.join(labels)}")
    first, *others = next(iter(by_seed.values()))
    length = len(first.rounds)
    for run in others:
        if (own := len(run.rounds)) != length:
            raise RecordError(f"{run.path} has {own} rounds, {first.path} {length}")

    def measures(run: Run) -> dict[str, float]:
        best = float(run.accuracy.max())
        rounds = rounds_to(run, targets, [HALF])
        return {"accuracy": run.late_accuracy, "best accuracy": best, **rounds}

    bases = [run for run in paired.every(by_seed) if run.label == baseline]
    tables = pd.concat([run.weights for run in bases])
    weights = tables.groupby("ordering", sort=False)[_WEIGHTS].mean()
    cohorts = recorded(bases, labels)
    base = tuple(paired.ordering_of(baseline).split(","))
    distances = ordering_distances(*cohorts, base)
    # An ordering of some of the criteria has no row in the file.
    if cohorts[2] and {*base} <= {*cohorts[1]}:
        named = distances.rename(columns={"from_baseline": "total_variation"})
        weights = weights.combine_first(named[_WEIGHTS])
    weights["from_first"] = distances["from_first"]
    rows = paired.table(by_seed, measures, dict.fromkeys(labels, baseline))
    rows = rows.sort_values(
        "label", key=lambda of: of.map(labels.index), kind="stable", ignore_index=True
    )
    of_rows = weights.reindex(rows["label"].map(paired.ordering_of))
    table = pd.concat([rows, of_rows.reset_index(drop=True)], axis=1)
    return table.rename(columns={"label": "ordering"})[list(COLUMNS)]


def groups(labels: Sequence[str]) -> dict[str, list[str]]:
    """Returns first criterion -> the orderings that begin with it.

    Empty unless two or more first criteria have equally many orderings, more than one
    each, and no label is more than an ordering (of an adjusted run, say), but for what
    all labels end in.
    """
    by_first: dict[str, list[str]] = {}
    for label in labels:
        by_first.setdefault(label.split(",")[0], []).append(label)
    sizes = {len(members) for members in by_first.values()}
    comparable = len(by_first) > 1 and len(sizes) == 1 and min(sizes) > 1
    # What sets runs apart, such as the server's optimizer, is that of all.
    rest = {label.removeprefix(paired.ordering_of(label)) for label in labels}
    alike = len(rest) == 1 and not {*rest}.pop().startswith(" ")
    return by_first if comparable and alike else {}


def first_criterion_rows(
    by_seed: BySeed, targets: Sequence[int], baseline: str = BASELINE
) -> pd.DataFrame:
    """Returns each first criterion's differences from that of the baseline.

    The measures are `accuracy`, the mean over the second half of the rounds, and
    `rounds to T %`, the mean of the rounds until 10, 20, ..., 90 % of the devices reach
    the target, which moves less than the round of a single share. A run counts with its
    group's mean under its seed. `within` is the standard deviation of runs of one group
    under one seed (root mean square over groups and seeds). Empty where `groups` is.
    """
    found = groups(paired.labels(by_seed))
    base = baseline.split(",")[0]
    if base not in found:
        return pd.DataFrame(columns=list(FIRST_COLUMNS))
    values = paired.by_measure(
        by_seed,
        lambda run: {"accuracy": run.late_accuracy, **rounds_to(run, targets, DEVICES)},
    )
    lines = []
    for measure in dict.fromkeys(measure for measure, _ in values):
        runs = {
            first: np.array([values[measure, label] for label in members])
            for first, members in found.items()
        }
        every = np.stack(list(runs.values()))  # [groups, orderings, seeds]
        within = math.nan
        if np.isfinite(every).all():
            within = float(np.sqrt(every.var(axis=1, ddof=1).mean()))
        for first in (one for one in runs if one != base):
            own = runs[first]
            differs = paired.difference(own.mean(axis=0), runs[base].mean(axis=0))
            lines.append((first, measure, len(own), *differs.values(), within))
    return pd.DataFrame(lines, columns=list(FIRST_COLUMNS))


def system_rows(
    by_seed: BySeed, baseline: str, measures: paired.Measures | None = None
) -> pd.DataFrame:
    """Returns the paired differences of every system from the baseline on its data.

    The measures are by default of the accuracy on the reported images: the mean over
    the first five rounds (where there are more), over all rounds, that of the best
    round (chosen on these images) and that of the last. The columns are `system`,
    `baseline`, `measure` and `paired.COLUMNS`.
    """
    paired.labels(by_seed)
    first = next(iter(by_seed.values()))
    # The plain baseline comes first: not that with another server's optimizer, say.
    plain = [run for run in reversed(first) if run.system == baseline]
    on_data = {run.note: run.label for run in plain}
    for run in first:
        if run.note not in on_data:
            raise RecordError(f"{run.label}: there is no run of {baseline} on its data")
    base_of = {run.label: on_data[run.note] for run in first}
    table = paired.table(by_seed, measures or _accuracies, base_of)
    table.insert(1, "baseline", table["label"].map(base_of))
    return table.rename(columns={"label": "system"})


def _spread(run: Run) -> dict[str, float]:
    late = run.correct[len(run.correct) // 2 :]
    figures = summary.measured(late, run.examples)
    return {
        "accuracy": run.late_accuracy,
        "worst tenth": float(figures["worst_tenth"].mean()),
        "Jain's index": float(figures["jain_index"].mean()),
        **rounds_to(run, run.targets[:1], [HALF]),
    }


def _accuracies(run: Run) -> dict[str, float]:
    accuracy = run.rounds["accuracy"]
    first = accuracy[:FIRST_ROUNDS]
    early = {f"rounds 1 to {FIRST_ROUNDS}": float(first.mean())}
    return {
        **(early if len(first) < len(accuracy) else {}),
        "all rounds": float(accuracy.mean()),
        "best round": float(accuracy.max()),
        "last round": float(accuracy.iloc[-1]),
    }


def rounds_to(
    run: Run, targets: Sequence[int], shares: Sequence[int]
) -> dict[str, float]:
    """Returns the mean rounds to the targets; infinite where a share is not there."""
    reached = rounds_of(run, targets, shares)
    return {
        f"rounds to {target} %": float(
            np.mean([reached[target, share] or math.inf for share in shares])
        )
        for target in targets
    }
