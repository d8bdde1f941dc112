"""What claims compare: a measure of a run under each seed, with that of another run.

    rounds_saved(runs, "LD", at=AT_70_AND_80).is_more()
    compare(runs, "AdaFed", LAST_ROUND, base="FedAvg", name="points").is_between(1.5, 6)

A measure takes the results of a folder, and columns where there are any, and returns a
series by seed and label. Rounds are those saved, so that more is better in all of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import pandas as pd

from tff_pmc.record.record_error import RecordError, RunTooShortError
from tff_pmc.record.results import BASELINE, RUN_KEY, Results
from tff_pmc.reports.papers.judging import Difference, Differences
from tff_pmc.reports.papers.paper_runs import Runs
from tff_pmc.reports.statistics import measures, published
from tff_pmc.reports.statistics.rounds_to_target import DEVICES, HALF, rounds_to_target

Cells = tuple[tuple[int, int], ...]
"""Columns of a published table: (target accuracy, share of the devices), percent."""

Labels = Union[str, Sequence[str]]

EVERY_RUN: Labels = ()
"""All runs of a folder and seed."""

Measure = Callable[..., "pd.Series[Any]"]

Printed = Callable[[str, str, Cells], float]
"""A published table, a label and columns -> the published number; NaN for none."""


class Columns(NamedTuple):
    """Columns of a published table, and their name for the reader."""

    name: str
    cells: Cells


NO_COLUMNS = Columns("", ())

At = Union[Columns, Sequence[Columns]]


def columns(name: str, of: Mapping[int, Sequence[int]]) -> Columns:
    """Returns columns from target -> the shares of the devices, both in percent."""
    return Columns(name, tuple((target, s) for target in of for s in of[target]))


@functools.lru_cache(maxsize=1024)
def _measured(results: Results, measure: Measure, *args: Any) -> Mapping[Any, Any]:
    return {**measure(results, *args).to_dict()}


def values(runs: pd.DataFrame, measure: Measure, *args: Any) -> pd.Series[Any]:
    """Returns a measure of runs as a series by seed and label.

    Raises:
        RecordError: a record lacks what is measured.
    """
    found = []
    for results, *key in zip(runs["results"], runs["seed"], runs["own_label"]):
        try:
            found.append(_measured(results, measure, *args)[tuple(key)])
        except KeyError as error:
            raise RecordError(
                f"the run of {key[1]} has not recorded what is compared"
            ) from error
    return pd.Series(found, index=pd.MultiIndex.from_frame(runs[RUN_KEY]))


def of_label(found: pd.Series[float], label: str) -> pd.Series[float]:
    """Returns for each run what the run of a label has under the same seed."""
    own = found.xs(label, level="label")
    return own.reindex(found.index.get_level_values("seed")).set_axis(found.index)


def compare(
    runs: Runs | Sequence[Runs],
    own: Labels,
    measure: Measure,
    base: Labels | float | None = BASELINE,
    *,
    at: At = NO_COLUMNS,
    minus: Columns = NO_COLUMNS,
    together: str = "",
    printed: Printed | None = None,
    name: str = "{run} {columns}",
    needs: Sequence[str] = (),
    rounds: int = 0,
    **options: Any,
) -> Differences:
    """Returns the differences of a measure between runs under each seed.

    Args:
        runs: the runs of an experiment; or of two, of which the second has what the
            first is compared with.
        own: their labels, or `EVERY_RUN`.
        measure: what is compared.
        base: what it is compared with: a number, or labels, those of them that are not
            `own`; None for the same runs in the other experiment or columns.
        at: the columns of a published table, one difference for each; only those count
            that every run reaches.
        minus: the columns of the other side, where these differ.
        together: `max` or `mean` of all runs of a side; by default there is one
            difference for each run.
        printed: the published table's number for a run.
        name: of the difference, with `{run}`, `{columns}`, `{minus}` and `{base}`.
        needs: the labels of other runs that the measure takes.
        rounds: the rounds that it takes.
        options: `digits`, `least_rounds`, `shows` and `saved` of `Difference`.

    Raises:
        RecordError: no seed has all of the runs, or a record lacks what is measured.
    """
    both = [runs] if isinstance(runs, Runs) else [*runs]
    fixed = isinstance(base, (int, float))
    labels = [own] if isinstance(own, str) else [*own]
    bases = [base] if isinstance(base, str) else []
    bases = [*base] if isinstance(base, (list, tuple)) else bases
    needed = [*needs, *bases, *labels]
    every = [at] if isinstance(at, Columns) else at
    arrivals = any(asked.cells for asked in every)

    def choose(asked: Columns) -> list[pd.DataFrame]:
        cells = {*asked.cells, *minus.cells}

        def show_all(of: pd.DataFrame) -> bool:
            of = of[of["label"].isin(needed)]
            return bool(cells and labels) and all(reaches(of, cell) for cell in cells)

        chosen = [
            one.choose(needed, rounds, arrivals=arrivals, show_all=show_all)
            for one in both
        ]
        seeds = set(chosen[0]["seed"]) & set(chosen[-1]["seed"])
        if not seeds:
            names = " and ".join(one.name for one in both)
            raise RecordError(f"the runs of {names} have no seed in common")
        return [of[of["seed"].isin(seeds)] for of in chosen]

    of_columns = [(asked, choose(asked)) for asked in every]
    labels = labels or [*of_columns[0][1][0]["label"].unique()]

    def difference(
        mine: Sequence[str], asked: Columns, chosen: Sequence[pd.DataFrame]
    ) -> Difference:
        def rows(side: int, of: Sequence[str]) -> pd.DataFrame:
            return chosen[side][chosen[side]["label"].isin(of)]

        theirs = [label for label in bases if label not in mine]
        theirs = theirs or ([] if fixed else [*mine])
        own_rows, base_rows = rows(0, mine), rows(-1, theirs)
        words = {"run": ", ".join(mine), "base": " or ".join(theirs)}
        one = Difference(
            name.format(**words, columns=asked.name, minus=minus.name).strip(),
            equal=len(both) == 1 and _equal_weights(own_rows, base_rows),
            runs=pd.concat(
                [rows(side, [*needed, *labels]) for side in range(len(both))]
            ),
            **options,
        )
        # Both sides in the same columns, or each in all that its runs reach.
        whole = [asked.cells, (minus if minus.cells else asked).cells]
        taken = [rows(0, [*needs, *mine]), rows(-1, [*needs, *theirs])]
        if len(both) == 1 and not minus.cells:
            taken = [pd.concat(taken)] * 2
        try:
            cells = [reached_by(of, every) for of, every in zip(taken, whole)]
            ours = _by_seed(own_rows, measure, cells[0], together, rounds)
            base_of: Any = [base] * len(ours)
            if not fixed:
                base_of = _by_seed(base_rows, measure, cells[1], together, rounds)
            if not np.isfinite([ours, base_of]).all():
                raise RunTooShortError("it is not known under every seed")
        except RunTooShortError as error:
            why = f"{asked.name}: {error}" if asked.name else str(error)
            return one._replace(lacks=why)
        size = math.nan
        if printed and theirs and both[0].table:
            sides = zip((both[0], both[-1]), (mine, theirs), cells)
            sizes = [
                pd.Series([printed(of.table, label, left) for label in every])
                for of, every, left in sides
            ]
            mean, of_base = (of.agg(together or "mean", skipna=False) for of in sizes)
            size = mean - of_base
        counts = dict.fromkeys((len(a), len(b)) for a, b in zip(cells, whole))
        return one._replace(
            own=ours,
            base=base_of,
            printed=(size, size) if math.isfinite(size) else (),
            part=", ".join(f"{n} of {m} columns" for n, m in counts if n < m),
        )

    of_runs = [labels] if together else [[label] for label in labels]
    return Differences(difference(mine, *of) for mine in of_runs for of in of_columns)


def _by_seed(
    runs: pd.DataFrame, measure: Measure, cells: Cells, together: str, rounds: int
) -> Any:
    """Returns a measure of runs under each seed."""
    if (runs["length"] < rounds).any():
        length = runs["length"].min()
        raise RunTooShortError(f"a run ends in round {length}, not {rounds}")
    found = values(runs, measure, *[cells] * bool(cells))
    return found.groupby(level="seed").agg(together or "mean").to_list()


def _equal_weights(own: pd.DataFrame, base: pd.DataFrame) -> bool:
    """Returns whether two runs had equal weights in every round under every seed."""
    labels = {*own["label"]}, {*base["label"]}
    if any(len(of) != 1 for of in labels) or labels[0] == labels[1]:
        return False
    # An algorithm that does more than weigh, as momentum does, is another one.
    if [*own["algorithm"]] != [*base["algorithm"]]:
        return False
    try:
        return [*values(own, _weights)] == [*values(base, _weights)]
    except RecordError:
        return False


def _weights(results: Results) -> pd.Series[Any]:
    """Returns the weights of all rounds of each run, as a number."""
    cohort = results.cohort[["round", "client", "weight"]]
    of_rows = pd.util.hash_pandas_object(cohort, index=False)
    of_run = of_rows.groupby([results.cohort[key] for key in RUN_KEY], sort=False)
    return of_run.agg(lambda rows: hash(tuple(rows)))


@functools.lru_cache(maxsize=256)
def rounds_of_shares(results: Results, target: int) -> pd.DataFrame:
    """Returns the rounds in which shares of the devices reach a target; NaN: never.

    A row a run, by seed and label, and a column a share.
    """
    found = rounds_to_target(results, [target], (*DEVICES, 75))
    return found.pivot(index=RUN_KEY, columns="devices", values="rounds")


def arrival(results: Results, target: int, share: int = HALF) -> pd.Series[float]:
    """Returns the round in which a share of the devices reaches a target."""
    return rounds_of_shares(results, target)[share]


def reaches(runs: pd.DataFrame, cell: tuple[int, int]) -> bool:
    """Returns whether all of some runs reach a column."""
    return bool(values(runs, arrival, *cell).notna().all())


def reached_by(runs: pd.DataFrame, cells: Cells) -> Cells:
    """Returns the columns that all of some runs reach.

    Raises:
        TooShortError: there are none.
    """
    found = tuple(cell for cell in cells if reaches(runs, cell))
    if cells and not found:
        length = runs["length"].max()
        raise RunTooShortError(f"not every run reaches it in {length} rounds")
    return found


def mean_rounds(results: Results, cells: Cells) -> pd.Series[float]:
    """Returns the mean over columns of the rounds until they are reached.

    A run that does not arrive counts as arriving in its last round, as in PMC's Table
    6.
    """
    found = [arrival(results, *cell).fillna(results.length) for cell in cells]
    return pd.concat(found, axis=1).mean(axis=1)


def _saved(results: Results, cells: Cells) -> pd.Series[float]:
    return -mean_rounds(results, cells)


def _gain(results: Results, cells: Cells) -> pd.Series[float]:
    rounds = mean_rounds(results, cells)
    return of_label(rounds, BASELINE) - rounds


def _share(results: Results, cells: Cells) -> pd.Series[float]:
    rounds = mean_rounds(results, cells)
    return rounds / of_label(rounds, BASELINE) - 1


def _loses(results: Results, cells: Cells) -> pd.Series[float]:
    loses = [_gain(results, (cell,)) < 0 for cell in cells]
    return 100 * pd.concat(loses, axis=1).mean(axis=1)


def _printed_gain_of_columns(table: str, label: str, cells: Cells) -> Any:
    saved = published.rounds_saved(table, label)
    return np.array([saved.get(cell, math.nan) for cell in cells])


def _printed_gain(table: str, label: str, cells: Cells) -> float:
    return float(_printed_gain_of_columns(table, label, cells).mean())


def _printed_loses(table: str, label: str, cells: Cells) -> float:
    gains = _printed_gain_of_columns(table, label, cells)
    return 100 * float((gains < 0).mean()) if np.isfinite(gains).all() else math.nan


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
    options = {"printed": _printed_gain, "saved": True, **options}
    return compare(runs, own, _saved, base, at=at, **options)


def share_of_rounds(runs: Runs, own: Labels, at: At, **options: Any) -> Differences:
    """Returns how much later than DS runs reach columns, as a share of its rounds."""
    options = {"needs": [BASELINE], "digits": 2, **options}
    return compare(runs, own, _share, 0.0, at=at, **options)


def gain_grows(
    runs: Runs | Sequence[Runs],
    own: Labels,
    at: Columns,
    minus: Columns,
    **options: Any,
) -> Differences:
    """Returns the rounds saved over DS in columns, minus those saved in others."""
    options = {"printed": _printed_gain, "needs": [BASELINE], **options}
    return compare(runs, own, _gain, None, at=at, minus=minus, **options)


def share_that_loses(
    runs: Runs, own: Labels, at: Columns, minus: Columns, **options: Any
) -> Differences:
    """Returns the share of columns in which DS is sooner, minus that in others.

    In percent, mean over the runs.
    """
    options = {"printed": _printed_loses, "needs": [BASELINE], **options}
    return compare(
        runs, own, _loses, None, at=at, minus=minus, together="mean", **options
    )


def in_points(measure: Measure, *args: Any) -> Measure:
    """Returns a measure of accuracy in points, from one in shares of 1."""
    return lambda results: 100 * measure(results, *args)


LAST_ROUND = in_points(measures.last_round)
BEST_ROUND = in_points(measures.best_round)
SECOND_HALF = in_points(measures.second_half)


def round_of_half(target: int) -> Measure:
    """Returns the round in which half of the devices reach a target; infinite: none."""
    return lambda results: arrival(results, target).fillna(math.inf)
