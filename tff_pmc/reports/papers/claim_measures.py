"""What claims compare: a measure of a run under each seed, with that of another run.

    rounds_saved(runs, "LD", at=AT_70_AND_80).is_more()
    compare(runs, "AdaFed", LAST_ROUND, base="FedAvg", name="points").is_between(1.5, 6)

A measure is a function of the results of a folder, and of columns if there are any, and
returns a series by seed and label. Rounds are counted as rounds saved, so that more is
always better.
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
"""(published table, label, columns) -> the published number; NaN if there is none."""


class Columns(NamedTuple):
    """Columns of a published table, and their name for the reader."""

    name: str
    cells: Cells


NO_COLUMNS = Columns("", ())

At = Union[Columns, Sequence[Columns]]


def columns(name: str, shares: Mapping[int, Sequence[int]]) -> Columns:
    """Returns columns from target -> the shares of the devices, both in percent."""
    cells = ((target, share) for target in shares for share in shares[target])
    return Columns(name, tuple(cells))


@functools.lru_cache(maxsize=1024)
def _cached_measure(
    results: Results, measure: Measure, *args: Any
) -> Mapping[Any, Any]:
    return {**measure(results, *args).to_dict()}


def measure_values(runs: pd.DataFrame, measure: Measure, *args: Any) -> pd.Series[Any]:
    """Computes a measure of runs, as a series by seed and label.

    Raises:
        RecordError: a run did not record what is measured.
    """
    values = []
    for results, *key in zip(runs["results"], runs["seed"], runs["own_label"]):
        try:
            values.append(_cached_measure(results, measure, *args)[tuple(key)])
        except KeyError as error:
            raise RecordError(
                f"the run of {key[1]} did not record what this claim compares"
            ) from error
    return pd.Series(values, index=pd.MultiIndex.from_frame(runs[RUN_KEY]))


def same_seed_values(values: pd.Series[float], label: str) -> pd.Series[float]:
    """Returns for each run the value of the run with a label and the same seed."""
    by_seed = values.xs(label, level="label")
    return by_seed.reindex(values.index.get_level_values("seed")).set_axis(values.index)


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
        runs: the runs of an experiment; or those of two experiments, the second of
            which has the baseline.
        own: the labels of the compared runs, or `EVERY_RUN`.
        measure: the measure that is compared.
        base: the baseline: a number; or labels, except those that are `own`; or None
            for the same runs in the other experiment or columns.
        at: the columns of a published table, one difference for each; only those that
            every run reaches are used.
        minus: the columns of the baseline, if they differ.
        together: `max` or `mean` over all runs of a side; by default there is one
            difference per run.
        printed: returns the published table's number for a run.
        name: the name of the difference, with `{run}`, `{columns}`, `{minus}` and
            `{base}`.
        needs: the labels of other runs that the measure uses.
        rounds: the number of rounds that the measure needs.
        options: `digits`, `least_rounds`, `count_shown` and `is_rounds_saved` of
            `Difference`.

    Raises:
        RecordError: no seed has all of the runs, or a run did not record what is
            measured.
    """
    runs_by_side = [runs] if isinstance(runs, Runs) else [*runs]
    is_one_experiment = len(runs_by_side) == 1
    base_is_number = isinstance(base, (int, float))
    labels = [own] if isinstance(own, str) else [*own]
    bases = [base] if isinstance(base, str) else []
    bases = [*base] if isinstance(base, (list, tuple)) else bases
    needed = [*needs, *bases, *labels]
    column_sets = [at] if isinstance(at, Columns) else at
    allow_early_end = any(column_set.cells for column_set in column_sets)

    def select(column_set: Columns) -> list[pd.DataFrame]:
        cells = {*column_set.cells, *minus.cells}

        def is_complete(rows: pd.DataFrame) -> bool:
            rows = rows[rows["label"].isin(needed)]
            has_columns = bool(cells and labels)
            return has_columns and all(all_runs_reach(rows, cell) for cell in cells)

        rows_by_side = [
            side.select_comparable(
                needed,
                rounds,
                allow_early_end=allow_early_end,
                is_complete=is_complete,
            )
            for side in runs_by_side
        ]
        seeds = set(rows_by_side[0]["seed"]) & set(rows_by_side[-1]["seed"])
        if not seeds:
            names = " and ".join(side.name for side in runs_by_side)
            raise RecordError(f"the runs of {names} have no seed in common")
        return [rows[rows["seed"].isin(seeds)] for rows in rows_by_side]

    selections = [(column_set, select(column_set)) for column_set in column_sets]
    labels = labels or [*selections[0][1][0]["label"].unique()]

    def difference(
        own_labels: Sequence[str],
        column_set: Columns,
        rows_by_side: Sequence[pd.DataFrame],
    ) -> Difference:
        def rows(side: int, labels: Sequence[str]) -> pd.DataFrame:
            return rows_by_side[side][rows_by_side[side]["label"].isin(labels)]

        base_labels = [label for label in bases if label not in own_labels]
        base_labels = base_labels or ([] if base_is_number else [*own_labels])
        own_rows, base_rows = rows(0, own_labels), rows(-1, base_labels)
        words = {"run": ", ".join(own_labels), "base": " or ".join(base_labels)}
        unmeasured = Difference(
            name.format(**words, columns=column_set.name, minus=minus.name).strip(),
            equal=is_one_experiment and _has_equal_weights(own_rows, base_rows),
            runs=pd.concat(
                [rows(side, [*needed, *labels]) for side in range(len(runs_by_side))]
            ),
            **options,
        )
        # Each side is measured in all columns that its runs reach, except that two runs
        # are compared in the same columns.
        all_cells = [column_set.cells, (minus if minus.cells else column_set).cells]
        used_rows = [rows(0, [*needs, *own_labels]), rows(-1, [*needs, *base_labels])]
        if is_one_experiment and not minus.cells:
            used_rows = [pd.concat(used_rows)] * 2
        try:
            cells = [*map(columns_reached, used_rows, all_cells)]
            values = _values_by_seed(own_rows, measure, cells[0], together, rounds)
            base_values: Any = [base] * len(values)
            if not base_is_number:
                base_values = _values_by_seed(
                    base_rows, measure, cells[1], together, rounds
                )
            if not np.isfinite([values, base_values]).all():
                raise RunTooShortError("it is not known under every seed")
        except RunTooShortError as error:
            prefix = f"{column_set.name}: " if column_set.name else ""
            return unmeasured._replace(missing=f"{prefix}{error}")
        size = math.nan
        if printed and base_labels and runs_by_side[0].table:
            sizes = [
                pd.Series(
                    [printed(side.table, label, reached) for label in side_labels]
                )
                for side, side_labels, reached in zip(
                    (runs_by_side[0], runs_by_side[-1]),
                    (own_labels, base_labels),
                    cells,
                )
            ]
            own_size, base_size = (
                side_sizes.agg(together or "mean", skipna=False) for side_sizes in sizes
            )
            size = own_size - base_size
        counts = dict.fromkeys((len(a), len(b)) for a, b in zip(cells, all_cells))
        return unmeasured._replace(
            values=values,
            baseline_values=base_values,
            printed=(size, size) if math.isfinite(size) else (),
            columns_reached=", ".join(
                f"{n} of {m} columns" for n, m in counts if n < m
            ),
        )

    compared = [labels] if together else [[label] for label in labels]
    return Differences(
        difference(own_labels, *selection)
        for own_labels in compared
        for selection in selections
    )


def _values_by_seed(
    runs: pd.DataFrame, measure: Measure, cells: Cells, together: str, rounds: int
) -> Any:
    """Computes a measure of runs under each seed."""
    if (runs["length"] < rounds).any():
        length = runs["length"].min()
        raise RunTooShortError(f"a run ends in round {length}, not {rounds}")
    values = measure_values(runs, measure, *[cells] * bool(cells))
    return values.groupby(level="seed").agg(together or "mean").to_list()


def _has_equal_weights(own: pd.DataFrame, base: pd.DataFrame) -> bool:
    """Returns whether two runs had equal weights in every round under every seed."""
    own_labels, base_labels = {*own["label"]}, {*base["label"]}
    if not (len(own_labels) == len(base_labels) == 1) or own_labels == base_labels:
        return False
    # Algorithms may differ in more than the weights: one may use momentum.
    if [*own["algorithm"]] != [*base["algorithm"]]:
        return False
    try:
        own_hashes = measure_values(own, _weights_hash)
        return [*own_hashes] == [*measure_values(base, _weights_hash)]
    except RecordError:
        return False


def _weights_hash(results: Results) -> pd.Series[Any]:
    """Returns a hash of the weights of all rounds of each run."""
    cohort = results.cohort[["round", "client", "weight"]]
    row_hashes = pd.util.hash_pandas_object(cohort, index=False)
    by_run = row_hashes.groupby([results.cohort[key] for key in RUN_KEY], sort=False)
    return by_run.agg(lambda rows: hash(tuple(rows)))


@functools.lru_cache(maxsize=256)
def rounds_of_shares(results: Results, target: int) -> pd.DataFrame:
    """Returns the rounds in which shares of the devices reach a target; NaN: never.

    One row per run, by seed and label, and one column per share.
    """
    rounds = rounds_to_target(results, [target], (*DEVICES, 75))
    return rounds.pivot(index=RUN_KEY, columns="devices", values="rounds")


def round_reached(results: Results, target: int, share: int = HALF) -> pd.Series[float]:
    """Returns the round in which a share of the devices reaches a target."""
    return rounds_of_shares(results, target)[share]


def all_runs_reach(runs: pd.DataFrame, cell: tuple[int, int]) -> bool:
    """Returns whether all runs reach a column."""
    return bool(measure_values(runs, round_reached, *cell).notna().all())


def columns_reached(runs: pd.DataFrame, cells: Cells) -> Cells:
    """Returns the columns that all runs reach.

    Raises:
        RunTooShortError: they reach none.
    """
    reached = tuple(cell for cell in cells if all_runs_reach(runs, cell))
    if cells and not reached:
        length = runs["length"].max()
        raise RunTooShortError(f"not every run reaches it in {length} rounds")
    return reached


def mean_rounds(results: Results, cells: Cells) -> pd.Series[float]:
    """Returns the mean over columns of the rounds until they are reached.

    A column that a run does not reach counts as reached in the run's last round, as in
    PMC's Table 6.
    """
    rounds = [round_reached(results, *cell).fillna(results.length) for cell in cells]
    return pd.concat(rounds, axis=1).mean(axis=1)


def _negative_rounds(results: Results, cells: Cells) -> pd.Series[float]:
    return -mean_rounds(results, cells)


def _rounds_gained(results: Results, cells: Cells) -> pd.Series[float]:
    rounds = mean_rounds(results, cells)
    return same_seed_values(rounds, BASELINE) - rounds


def _percent_later(results: Results, cells: Cells) -> pd.Series[float]:
    rounds = mean_rounds(results, cells)
    return 100 * (rounds / same_seed_values(rounds, BASELINE) - 1)


def _percent_lost(results: Results, cells: Cells) -> pd.Series[float]:
    is_lost = [_rounds_gained(results, (cell,)) < 0 for cell in cells]
    return 100 * pd.concat(is_lost, axis=1).mean(axis=1)


def _printed_gain_of_columns(table: str, label: str, cells: Cells) -> Any:
    saved = published.rounds_saved(table, label)
    return np.array([saved.get(cell, math.nan) for cell in cells])


def _printed_gain(table: str, label: str, cells: Cells) -> float:
    return float(_printed_gain_of_columns(table, label, cells).mean())


def _printed_percent_lost(table: str, label: str, cells: Cells) -> float:
    gains = _printed_gain_of_columns(table, label, cells)
    return 100 * float((gains < 0).mean()) if np.isfinite(gains).all() else math.nan


def rounds_saved(
    runs: Runs | Sequence[Runs],
    own: Labels,
    at: At,
    base: Labels | float = BASELINE,
    **options: Any,
) -> Differences:
    """Returns the rounds that runs save over a baseline, mean over columns.

    Only columns that every run reaches are used. `options` are those of `compare`.
    """
    options = {"printed": _printed_gain, "is_rounds_saved": True, **options}
    return compare(runs, own, _negative_rounds, base, at=at, **options)


def percent_later(runs: Runs, own: Labels, at: At, **options: Any) -> Differences:
    """Returns how much later than DS runs reach columns, in percent of DS's rounds."""
    options = {"needs": [BASELINE], **options}
    return compare(runs, own, _percent_later, 0.0, at=at, **options)


def gain_grows(
    runs: Runs | Sequence[Runs],
    own: Labels,
    at: Columns,
    minus: Columns,
    **options: Any,
) -> Differences:
    """Returns the rounds saved over DS in columns, minus those saved in `minus`."""
    options = {"printed": _printed_gain, "needs": [BASELINE], **options}
    return compare(runs, own, _rounds_gained, None, at=at, minus=minus, **options)


def share_that_loses(
    runs: Runs, own: Labels, at: Columns, minus: Columns, **options: Any
) -> Differences:
    """Returns the percentage of columns in which DS is sooner, minus that in `minus`.

    It is a mean over the runs.
    """
    options = {"printed": _printed_percent_lost, "needs": [BASELINE], **options}
    return compare(
        runs, own, _percent_lost, None, at=at, minus=minus, together="mean", **options
    )


def in_points(measure: Measure, *args: Any) -> Measure:
    """Converts a measure from fractions of 1 into percentage points."""
    return lambda results: 100 * measure(results, *args)


LAST_ROUND = in_points(measures.last_round)
BEST_ROUND = in_points(measures.best_round)
SECOND_HALF = in_points(measures.second_half)


def round_of_half(target: int) -> Measure:
    """Measures the round in which half of the devices reach a target, or infinity."""
    return lambda results: round_reached(results, target).fillna(math.inf)
