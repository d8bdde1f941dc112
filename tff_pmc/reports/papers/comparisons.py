"""What claims compare: a number of a run under each seed, with that of another run.

    rounds_saved(results.mnist_noniid, "LD", at=AT_70_AND_80).is_more()
    points(results.adafed_2, "AdaFed", LAST_ROUND, base="FedAvg").is_between(1.5, 6)

Rounds are those saved, so that more is better in all of them.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import pandas as pd

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.record.results import BASELINE, KEY, Results
from tff_pmc.reports import measures
from tff_pmc.reports.papers import published
from tff_pmc.reports.papers.evidence import Run, Runs
from tff_pmc.reports.papers.judging import Difference, Differences
from tff_pmc.reports.rounds_to_target import DEVICES, HALF, rounds_to_target

EVERY_RUN = "every run"
"""Stands for all runs of a folder and seed."""

Cells = Sequence[tuple[int, int]]
"""Columns of a published table: (target accuracy, share of the devices), percent."""

Labels = Union[str, Sequence[str]]


class Columns(NamedTuple):
    """Columns of a published table, and their name for the reader."""

    name: str
    cells: Cells


_SHARES = (*DEVICES, 75)
NO_COLUMNS = Columns("", ())

At = Union[Columns, Sequence[Columns]]


def columns(name: str, of: Mapping[int, Sequence[int]]) -> Columns:
    """Returns columns from target -> the shares of the devices, both in percent."""
    return Columns(name, [(target, share) for target in of for share in of[target]])


class Number(NamedTuple):
    """A number of a run and columns.

    It takes so many `rounds`, and the runs of the labels `also` of the same seed.
    """

    of: Callable[[Run, Cells], float]
    rounds: int = 0
    also: Sequence[str] = ()


Printed = Callable[[str, str, Cells], float]
"""A published table, a label and columns -> the number printed; NaN for none."""

Together = Callable[[Sequence[float]], float]


class _Side(NamedTuple):
    """One side of a difference: the runs of each seed, those that count, columns."""

    seeds: Sequence[Mapping[str, Run]]
    labels: Sequence[str]
    cells: Cells
    table: str

    def runs(self, also: Sequence[str]) -> list[Run]:
        """Returns the runs of all seeds, and those of other labels."""
        labels = [*also, *self.labels]
        return [of_seed[label] for of_seed in self.seeds for label in labels]

    def values(self, number: Number, join: Together) -> list[float]:
        """Returns the number of the runs of each seed."""
        found = []
        for of_seed in self.seeds:
            labels = of_seed if EVERY_RUN in self.labels else self.labels
            found.append(join([number.of(of_seed[x], self.cells) for x in labels]))
        return found

    def printed(self, of: Printed, join: Together) -> float:
        """Returns what the published table prints of the runs; NaN for nothing."""
        values = [of(self.table, label, self.cells) for label in self.labels]
        return join(values) if all(map(math.isfinite, values)) else math.nan


def compare(
    runs: Runs | Sequence[Runs],
    own: Labels,
    number: Number,
    base: Labels | float | None = BASELINE,
    *,
    at: At = NO_COLUMNS,
    minus: Columns | None = None,
    together: Together | None = None,
    printed: Printed | None = None,
    name: str = "{run} {columns}",
    **options: Any,
) -> Differences:
    """Returns the differences of a number between runs under each seed.

    Args:
        runs: the runs of an experiment; or of two, of which the second has what the
            first is compared with.
        own: their labels; `EVERY_RUN` is all that there are.
        number: the number that is compared.
        base: what it is compared with: a number, or labels, those of them that are not
            `own`; None for the same runs in the other experiment or columns.
        at: the columns of a published table, one difference for each; only those count
            that every run reaches.
        minus: the columns of the other side, where these differ.
        together: `max` or `statistics.fmean` of all runs of a side; None for one
            difference for each run.
        printed: what the published table prints of a run.
        name: of the difference, with `{run}`, `{columns}`, `{minus}` and `{base}`.
        options: `digits`, `least_rounds` and `shows` of `Difference`.

    Raises:
        RecordError: no seed has all of the runs, or a record lacks what is measured.
    """
    experiments = [runs] if isinstance(runs, Runs) else [*runs]
    labels = [own] if isinstance(own, str) else [*own]
    bases = [base] if isinstance(base, str) else []
    bases = [*base] if isinstance(base, (list, tuple)) else bases
    first = number.also or [BASELINE] * (EVERY_RUN in labels)
    needed = [*first, *bases, *(label for label in labels if label != EVERY_RUN)]
    chosen = [one.by_seed(needed, number.rounds) for one in experiments]
    common = sorted(set.intersection(*map(set, chosen)))
    if not common:
        both = " and ".join(one.name for one in experiments)
        raise RecordError(f"the runs of {both} have no seed in common")
    seeds = [[of_seed[seed] for seed in common] for of_seed in chosen]
    # Seed by seed, as they are listed.
    options["runs"] = [
        run
        for of_seed in itertools.chain(*zip(*seeds))
        for label, run in of_seed.items()
        if EVERY_RUN in labels or label in needed
    ]
    sides = [labels] if together else [[label] for label in labels]
    found = []
    for of_side, asked in itertools.product(
        sides, [at] if isinstance(at, Columns) else at
    ):
        others = [label for label in bases if label not in of_side]
        others = others or ([] if isinstance(base, (int, float)) else of_side)
        words = {
            "run": ", ".join(of_side),
            "columns": asked.name,
            "minus": minus.name if minus else "",
            "base": " or ".join(others),
        }
        mine = _Side(seeds[0], of_side, asked.cells, experiments[0].table)
        cells = minus.cells if minus else asked.cells
        theirs = _Side(seeds[-1], others, cells, experiments[-1].table)
        alone = len(experiments) == 1
        one = Difference(
            name.format(**words).strip(),
            own=(),
            base=(),
            equal=alone and _equal_weights(mine, theirs),
            **options,
        )
        try:
            left = _reached(mine, theirs, number.also, same=alone and not minus)
            join = together or statistics.fmean
            ours = left[0].values(number, join)
            fixed = [float(base)] * len(common) if not others else []  # type: ignore
            base_of = fixed or left[1].values(number, join)
        except TooShortError as error:
            why = f"{asked.name}: {error}" if asked.name else str(error)
            found.append(one._replace(lacks=why))
            continue
        size = math.nan
        if printed and others and mine.table:
            size = left[0].printed(printed, join) - left[1].printed(printed, join)
        counts = dict.fromkeys(
            (len(one.cells), len(all_of.cells))
            for one, all_of in zip(left, (mine, theirs))
        )
        found.append(
            one._replace(
                own=ours,
                base=base_of,
                printed=(size, size) if math.isfinite(size) else (),
                part=", ".join(f"{n} of {m} columns" for n, m in counts if n < m),
            )
        )
    return Differences(found)


def _reached(
    mine: _Side, theirs: _Side, also: Sequence[str], same: bool
) -> tuple[_Side, _Side]:
    """Returns both sides in the columns that all of their runs reach.

    They are the same columns on both sides, or each side has those of its own.
    """
    if not mine.cells:
        return mine, theirs
    runs = mine.runs(also), theirs.runs(also)
    cells = reached_by([*runs[0], *runs[1]] if same else runs[0], mine.cells)
    others = cells if same else reached_by(runs[1], theirs.cells)
    if not (cells and others):
        length = max(run.length for run in [*runs[0], *runs[1]])
        raise TooShortError(f"not all runs arrive in {length} rounds")
    return mine._replace(cells=cells), theirs._replace(cells=others)


def _equal_weights(mine: _Side, theirs: _Side) -> bool:
    """Returns whether two runs had equal weights in every round under every seed."""
    if len(mine.labels) != 1 or len(theirs.labels) != 1 or mine.labels == theirs.labels:
        return False
    for both in zip(mine.runs([]), theirs.runs([])):
        # An algorithm that does more than weigh, as momentum does, is another one.
        if len({run.setting("system") for run in both}) > 1:
            return False
        cohorts = [run.table("cohort") for run in both]
        columns = ["round", "client", "weight"]
        first, second = (cohort[columns].to_numpy() for cohort in cohorts)
        if not len(first) or not np.array_equal(first, second):
            return False
    return True


def _arrivals(results: Results, target: int) -> dict[tuple[int, str, int], float]:
    """Returns (seed, label, share) -> the round in which so many reach a target."""
    table = rounds_to_target(results, [target], _SHARES)
    found: dict[tuple[int, str, int], float]
    found = table.set_index([*KEY, "devices"])["rounds"].to_dict()
    return found


def arrival(run: Run, target: int, share: int = HALF) -> Optional[float]:
    """Returns the round in which a share of the devices reaches a target, if any."""
    found = run.folder.of(_arrivals, target)[run.seed, run.label, share]
    return None if math.isnan(found) else found


def reached_by(runs: Iterable[Run], cells: Cells) -> Cells:
    """Returns the columns that all of some runs reach."""
    every = list(runs)
    return [c for c in cells if all(arrival(run, *c) is not None for run in every)]


def mean_rounds(run: Run, cells: Cells) -> float:
    """Returns the mean over columns of the rounds until they are reached.

    A run that does not arrive counts as arriving in its last round, as in PMC's Table
    6.
    """
    return sum(arrival(run, *cell) or run.length for cell in cells) / len(cells)


def _gain(run: Run, cells: Cells) -> float:
    return mean_rounds(run.other(BASELINE), cells) - mean_rounds(run, cells)


def _printed_gain(table: str, label: str, cells: Cells) -> float:
    saved = published.rounds_saved(table, label)
    return statistics.fmean(saved.get(cell, math.nan) for cell in cells)


def rounds_saved(
    runs: Runs | Sequence[Runs],
    own: Labels,
    at: At,
    base: Labels | float = BASELINE,
    **options: Any,
) -> Differences:
    """Returns the rounds that runs save over others, mean over columns.

    Only those columns count that every run reaches. `options` are those of `compare`.
    """
    number = Number(lambda run, cells: -mean_rounds(run, cells))
    options = {"printed": _printed_gain, **options}
    return compare(runs, own, number, base, at=at, **options)


def share_of_rounds(runs: Runs, own: Labels, at: At, **options: Any) -> Differences:
    """Returns how much later than DS runs reach columns, as a share of its rounds."""

    def share(run: Run, cells: Cells) -> float:
        return mean_rounds(run, cells) / mean_rounds(run.other(BASELINE), cells) - 1

    number = Number(share, also=[BASELINE])
    return compare(runs, own, number, 0.0, at=at, digits=2, **options)


def gain_grows(
    runs: Runs | Sequence[Runs],
    own: Labels,
    at: Columns,
    minus: Columns,
    **options: Any,
) -> Differences:
    """Returns the rounds saved over DS in columns, minus those saved in others."""
    number = Number(_gain, also=[BASELINE])
    options = {"printed": _printed_gain, **options}
    return compare(runs, own, number, None, at=at, minus=minus, **options)


def share_that_loses(
    runs: Runs, own: Labels, at: Columns, minus: Columns, **options: Any
) -> Differences:
    """Returns the share of columns in which DS is sooner, minus that in others.

    In percent, mean over the runs.
    """

    def lose(gain: Callable[[Cells], float], cells: Cells) -> float:
        gains = [gain([cell]) for cell in cells]
        known = all(map(math.isfinite, gains))
        return 100 * statistics.fmean(g < 0 for g in gains) if known else math.nan

    return compare(
        runs,
        own,
        Number(
            lambda run, cells: lose(lambda c: _gain(run, c), cells), also=[BASELINE]
        ),
        None,
        at=at,
        minus=minus,
        together=statistics.fmean,
        printed=lambda table, label, cells: lose(
            lambda c: _printed_gain(table, label, c), cells
        ),
        **options,
    )


LAST_ROUND = Number(lambda run, _: 100 * run.value(measures.last_round))
BEST_ROUND = Number(lambda run, _: 100 * run.value(measures.best_round))
SECOND_HALF = Number(lambda run, _: 100 * run.value(measures.second_half))


def mean_of(first: int, last: int, column: str = "accuracy") -> Number:
    """Returns the mean of a column of `rounds` over some rounds, in points."""

    def number(run: Run, _: Cells) -> float:
        table = run.folder.results.rounds
        if column not in table:
            raise RecordError(f"the run of {run.label} has no {column} on record")
        if run.length < last:
            raise TooShortError(f"{run.label} ends in round {run.length}, not {last}")
        return 100 * run.value(measures.mean_of_rounds, first, last, column)

    return Number(number, rounds=last)


def round_of_half(target: int) -> Number:
    """Returns the round in which half of the devices reach a target, percent."""
    return Number(lambda run, _: arrival(run, target) or math.inf)


def round_of(run: Run, level: float) -> Optional[int]:
    """Returns the first round with an accuracy, in points; None where there is none."""
    rounds = run.table("rounds")
    reached = rounds["round"][100 * rounds["accuracy"] >= level]
    return int(reached.iloc[0]) if len(reached) else None


def of_cohort(run: Run, column: str) -> pd.DataFrame:
    """Returns the rounds, clients and a column of a run's cohorts."""
    cohort = run.table("cohort")
    if cohort.empty:
        raise RecordError(f"the cohort.csv of {run.label} was not kept")
    return cohort[["round", "client", column]]
