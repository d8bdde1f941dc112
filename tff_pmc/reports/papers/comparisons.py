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


def compare(
    runs: Runs | Sequence[Runs],
    own: Labels,
    number: Number,
    base: Labels | float | None = BASELINE,
    *,
    at: At = NO_COLUMNS,
    minus: Columns | None = None,
    together: Together | None = None,
    times: int = 1,
    printed: Printed | None = None,
    name: str = "{run} {columns}",
    digits: int = 1,
    least_rounds: int = 0,
    shows: str = "",
) -> Differences:
    """Returns the differences of a number between runs under each seed.

    Args:
        runs: the runs of an experiment; or of two, of which the second has what the
            first is compared with.
        own: their labels; `EVERY_RUN` is all that there are.
        number: the number that is compared.
        base: what it is compared with: a number, or labels, those of them that are not
            `own`; None for the same runs in the other experiment or columns.
        at: the columns of a published table; one difference for each.
        minus: the columns of the other side, where these differ.
        together: `max` or `statistics.fmean` of all runs of a side; None for one
            difference for each run.
        times: a factor of the number of `own`.
        printed: what the published table prints of a run.
        name: of the difference, with `{run}`, `{columns}`, `{minus}` and `{base}`.
        digits: decimals that are shown.
        least_rounds: the fewest rounds that decide.
        shows: `clients` or `epochs`, the number of which is shown.

    Raises:
        RecordError: no seed has all of the runs, or a record lacks what is measured.
    """
    experiments = [runs] if isinstance(runs, Runs) else [*runs]
    labels = [own] if isinstance(own, str) else [*own]
    fixed = float(base) if isinstance(base, (int, float)) else None
    bases = _listed(() if base is None or fixed is not None else base)  # type: ignore
    needed = [*number.also, *bases, *(one for one in labels if one != EVERY_RUN)]
    needed += [BASELINE] * (EVERY_RUN in labels and not number.also)
    needed = list(dict.fromkeys(needed))
    chosen = [one.by_seed(needed, number.rounds) for one in experiments]
    common = sorted(set.intersection(*map(set, chosen)))
    if not common:
        both = " and ".join(one.name for one in experiments)
        raise RecordError(f"the runs of {both} have no seed in common")
    seeds = [[of_seed[seed] for of_seed in chosen] for seed in common]
    used = [
        run
        for of_seed in itertools.chain(*seeds)
        for label, run in of_seed.items()
        if EVERY_RUN in labels or label in needed
    ]
    join = together or statistics.fmean

    def side(of_seed: Mapping[str, Run], which: Sequence[str], cells: Cells) -> float:
        every = [*of_seed] if EVERY_RUN in which else which
        return join([number.of(of_seed[label], cells) for label in every])

    found = []
    sides = [labels] if together else [[label] for label in labels]
    sets = [at] if isinstance(at, Columns) else [*at]
    for mine, (of_columns, asked) in itertools.product(sides, sets):
        cells, theirs = asked, minus.cells if minus else asked
        others = [label for label in bases if label not in mine]
        others = others or ([] if fixed is not None else mine)
        words = {
            "run": ", ".join(mine),
            "columns": of_columns,
            "minus": minus.name if minus else of_columns,
            "base": " or ".join(others) or f"{fixed:g}",
        }
        one = Difference(
            name.format(**words).strip(),
            own=(),
            base=(),
            digits=digits,
            equal=_equal(mine, others, seeds),
            runs=used,
            least_rounds=least_rounds,
            shows=shows,
        )
        try:
            if asked:
                first, last = (
                    [
                        of_seed[place][x]
                        for of_seed in seeds
                        for x in (*number.also, *of)
                    ]
                    for place, of in ((0, mine), (-1, others))
                )
                same = minus is None and len(experiments) == 1
                cells = reached_by([*first, *last] if same else first, asked)
                theirs = cells if same else reached_by(last, theirs)
                if not (cells and theirs):
                    length = max(run.length for run in [*first, *last])
                    raise TooShortError(
                        f"{of_columns}: not all runs arrive in {length} rounds"
                    )
            ours = [times * side(of_seed[0], mine, cells) for of_seed in seeds]
            if fixed is None:
                base_of = [side(of_seed[-1], others, theirs) for of_seed in seeds]
            else:
                base_of = [fixed] * len(seeds)
        except TooShortError as error:
            found.append(one._replace(lacks=str(error)))
            continue
        before = len(asked), len(minus.cells if minus else asked)
        counts = dict.fromkeys(zip((len(cells), len(theirs)), before))
        size: Sequence[float] = ()
        if printed and others and times == 1 and experiments[0].table:
            sizes = [
                join([printed(one.table, label, of) for label in which])
                for one, which, of in (
                    (experiments[0], mine, cells),
                    (experiments[-1], others, theirs),
                )
            ]
            size = (sizes[0] - sizes[1],) * 2
        found.append(
            one._replace(
                own=ours,
                base=base_of,
                printed=size if np.isfinite(size).all() else (),
                part=", ".join(f"{n} of {m} columns" for n, m in counts if n < m),
            )
        )
    return Differences(found)


def _listed(labels: Labels) -> list[str]:
    return [labels] if isinstance(labels, str) else [*labels]


def _equal(
    own: Sequence[str],
    others: Sequence[str],
    seeds: Sequence[Sequence[Mapping[str, Run]]],
) -> bool:
    """Returns whether two runs had equal weights in every round under every seed."""
    if len(own) != 1 or len(others) != 1 or [*own] == [*others]:
        return False
    for of_seed in seeds:
        both = of_seed[0][own[0]], of_seed[-1][others[0]]
        # An algorithm that does more than weigh, as momentum does, is another one.
        if len(of_seed) > 1 or len({run.setting("system") for run in both}) > 1:
            return False
        first, second = (run.table("cohort") for run in both)
        if first is None or second is None:
            return False
        weights = [
            one[["round", "client", "weight"]].to_numpy() for one in (first, second)
        ]
        if not np.array_equal(*weights):
            return False
    return True


def _arrivals(results: Results, target: int) -> dict[tuple[int, str, int], float]:
    """Returns (seed, label, share) -> the round in which so many reach a target."""
    found = rounds_to_target(results, [target], _SHARES)
    return found.set_index([*KEY, "devices"])["rounds"].to_dict()


def arrival(run: Run, target: int, share: int = HALF) -> Optional[int]:
    """Returns the round in which a share of the devices reaches a target, if any."""
    found = run.folder.of(_arrivals, target)[run.seed, run.label, share]
    return None if math.isnan(found) else int(found)


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
    assert rounds is not None
    reached = rounds["round"][100 * rounds["accuracy"] >= level]
    return int(reached.iloc[0]) if len(reached) else None


def of_cohort(run: Run, column: str) -> pd.DataFrame:
    """Returns the rounds, clients and a column of a run's cohorts."""
    cohort = run.table("cohort")
    if cohort is None:
        raise RecordError(f"the cohort.csv of {run.label} was not kept")
    return cohort[["round", "client", column]]
