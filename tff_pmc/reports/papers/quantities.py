"""What claims and headline numbers are of: one number of a run, or of runs of a seed.

Claims about rounds have them as less, so that more is better in all of them.
"""

from __future__ import annotations

import os
import statistics
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Optional, Union

import pandas as pd

from tff_pmc.record.read import BASELINE, Run, read_table
from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.papers import dual_cells, judging
from tff_pmc.reports.papers.judging import Cells
from tff_pmc.reports.rounds_to_target import Rounds, rounds_of

FEDAVG = "FedAvg"

_OTHER_SCORES = ("weighted_average", "owa", "choquet")


class Row(NamedTuple):
    """What a paper says of some runs: a measure for each run and set of columns.

    Attributes:
        runs: their labels; `every run` is all that there are.
        of: one of `QUANTITIES`.
        base: what they are held against: a number, or labels, those of them that are
            not the row's own; without any, the same runs in the claim's last
            experiment.
        columns: a name for the reader -> the cells.
        minus: the same of the other side, where that is of other columns.
        sign: one of `judging.SIGNS`.
        name: what the measure is of, with `{run}`, `{columns}`, `{minus}`, `{base}`.
        group: `best` or `mean` of the runs counts together, and of those they are held
            against; empty for each by itself.
        tolerance: see `judging.Measure`, as `within` and `digits`.
        times: a factor of the runs' own rounds.
        column: of `rounds.csv`, of a cohort, or of Dual's Table IV.
        rounds: the first and the last round that the mean of a column is over.
        classes: those that F1 is of.
        goal: the label of the run whose accuracy, over `rounds`, is to be reached.
        client: the one that is held against the others of its cohort.
        tables: the published tables of the columns, of each experiment one.
        printed: the least and the most that the paper prints of it, or a number, where
            that is not in `tables`.
    """

    runs: Sequence[str]
    of: str
    base: Union[float, Sequence[str]] = (BASELINE,)
    columns: Mapping[str, Cells] = types.MappingProxyType({})
    minus: Mapping[str, Cells] = types.MappingProxyType({})
    sign: str = judging.MORE
    name: str = "{run} {columns}"
    group: str = ""
    tolerance: float = 0.0
    within: Sequence[float] = ()
    digits: int = 1
    times: int = 1
    column: str = "accuracy"
    rounds: Sequence[int] = (1, 20)
    classes: Sequence[int] = ()
    goal: str = ""
    client: str = ""
    tables: Sequence[str] = ()
    printed: Union[float, Sequence[float]] = ()

    @property
    def beside(self) -> Sequence[str]:
        """The label of the run that the number needs beside each run, if any."""
        return tuple(filter(None, [self.goal or QUANTITIES[self.of].beside]))


Number = Callable[[Run, Run, Cells, Row], float]
"""A run, the one that its number needs beside it, cells and the row -> the number."""


class Quantity(NamedTuple):
    """What a row may be `of`.

    `beside` is the label of the run that the number needs, too; of `in_cells` only
    those columns of a published table count that every run reaches; `of_rounds` are
    the row's rounds.
    """

    number: Number
    beside: str = ""
    in_cells: bool = False
    of_rounds: bool = False


def _rounds_of_cells(run: Run, cells: Cells) -> Rounds:
    targets, shares = (tuple(dict.fromkeys(one)) for one in zip(*cells))
    return rounds_of(run, targets, shares)


def mean_rounds(run: Run, cells: Cells) -> float:
    """Returns the mean over cells of the rounds until they are reached.

    A run that does not arrive counts as arriving in its last round, as in PMC's Table
    6.
    """
    reached, last = _rounds_of_cells(run, cells), len(run.rounds)
    return sum(reached[cell] or last for cell in cells) / len(cells)


def _gain(run: Run, base: Run, cells: Cells, row: Row) -> float:
    return mean_rounds(base, cells) - mean_rounds(run, cells)


def _cells_that_lose(run: Run, base: Run, cells: Cells, row: Row) -> float:
    lost = (100.0 * (_gain(run, base, [cell], row) < 0) for cell in cells)
    return statistics.fmean(lost)


def reached_by(runs: Iterable[Run], cells: Cells) -> Cells:
    """Returns the cells that all of some runs reach."""
    every = [_rounds_of_cells(run, cells) for run in runs]
    return [cell for cell in cells if all(one[cell] is not None for one in every)]


def mean_of_column(run: Run, row: Row) -> float:
    """Returns the mean of a column of `rounds.csv` over `row.rounds`, in points."""
    table, (first, last) = run.rounds, row.rounds
    if row.column not in table:
        raise RecordError(f"the run of {run.label} has no {row.column} on record")
    if len(table) < last:
        raise TooShortError(f"{run.label} ends in round {len(table)}, not {last}")
    return 100 * float(table[row.column][first - 1 : last].mean())


def round_of_accuracy(run: Run, goal: float) -> Optional[int]:
    """Returns the first round with an accuracy, in points; None where there is none."""
    reached = run.rounds["round"][100 * run.rounds["accuracy"] >= goal]
    return int(reached.iloc[0]) if len(reached) else None


def _rounds_to_a_goal(run: Run, goal: Run, cells: Cells, row: Row) -> float:
    """Returns the first round with the goal's accuracy, as less.

    Without one it is the round after the last; a run that is held against a number of
    rounds has to have as many.
    """
    found = round_of_accuracy(run, mean_of_column(goal, row))
    length = len(run.rounds)
    if found is None and isinstance(row.base, (int, float)) and length < -row.base:
        raise TooShortError(
            f"{run.label} ends in round {length}, without that "
            f"accuracy and before round {-row.base:g}"
        )
    return -(found or length + 1)


def class_f1(run: Run) -> Optional[pd.DataFrame]:
    """F1 of each class, [round, class]; None where it is not on record.

    The files of runs from before `macro_f1` have F1 before the round, and do not count.
    """
    path = os.path.join(run.path, "class_f1.csv")
    if "macro_f1" not in run.rounds or not run.path or not os.path.exists(path):
        return None
    table = read_table(run.path, "class_f1.csv")
    return table.pivot(index="round", columns="class", values="f1")


def _class_f1(run: Run, _: Run, cells: Cells, row: Row) -> float:
    """Returns the mean over rounds of some classes' F1, or of its spread over all."""
    table = class_f1(run)
    if table is None:
        raise RecordError(f"the run of {run.label} has no F1 of its classes on record")
    if row.classes:
        return float(table[[*row.classes]].mean(axis=None))
    return float(table.std(axis=1, ddof=0).mean())


def _cohort(run: Run) -> pd.DataFrame:
    if run.cohort is None:
        raise RecordError(f"the cohort.csv of {run.label} was not kept")
    return run.cohort


def _over_the_others(run: Run, _: Run, cells: Cells, row: Row) -> float:
    """Returns what a client has in round 1 beyond the most of any other."""
    cohort = _cohort(run)
    first = cohort[cohort["round"] == 1].set_index("client")[row.column]
    return float(first[row.client] - first.drop(row.client).max())


def _over_the_mean(run: Run, _: Run, cells: Cells, row: Row) -> float:
    """Returns what a client has beyond the mean of the others, over all rounds."""
    cohort = _cohort(run)
    own = cohort["client"] == row.client
    return float(cohort[row.column][own].mean() - cohort[row.column][~own].mean())


def _of_best_epoch(run: Run, _: Run, cells: Cells, row: Row) -> float:
    """Returns one of the measures of Dual's Table IV, in points."""
    table = dual_cells.tidy_rows([run], table=4).set_index("metric")
    return 100 * float(table["ours_best_epoch"][row.column])


QUANTITIES: Mapping[str, Quantity] = {
    "rounds": Quantity(
        lambda run, _, cells, row: -mean_rounds(run, cells), in_cells=True
    ),
    "share of rounds": Quantity(
        lambda run, base, cells, row: (
            mean_rounds(run, cells) / mean_rounds(base, cells) - 1
        ),
        BASELINE,
        in_cells=True,
    ),
    "gain": Quantity(_gain, BASELINE, in_cells=True),
    "cells that lose": Quantity(_cells_that_lose, BASELINE, in_cells=True),
    "best round": Quantity(lambda run, *_: 100 * float(run.accuracy.max())),
    "last round": Quantity(lambda run, *_: 100 * float(run.accuracy[-1])),
    "best epoch": Quantity(_of_best_epoch),
    "second half": Quantity(lambda run, *_: 100 * run.late_accuracy),
    "column": Quantity(
        lambda run, _, cells, row: mean_of_column(run, row), of_rounds=True
    ),
    "lead": Quantity(
        lambda run, base, cells, row: (
            mean_of_column(run, row) - mean_of_column(base, row)
        ),
        FEDAVG,
        of_rounds=True,
    ),
    # Beside it, the row's goal.
    "rounds to a goal": Quantity(_rounds_to_a_goal, of_rounds=True),
    "class F1": Quantity(_class_f1),
    "client over the others": Quantity(_over_the_others),
    "client over the mean": Quantity(_over_the_mean),
    "most in a cohort": Quantity(
        lambda run, _, cells, row: float(_cohort(run)[row.column].max())
    ),
}
"""What a row is `of`, by the names that tables of claims have for it."""


def label_of(run: Run, clients: int = 0) -> str:
    """Returns the label by which claims name a run; of other scores it is the system.

    With `clients` it is the system of a row of Dual's tables with so many, and empty of
    others and of other readings.
    """
    settings = run.settings
    system = str(settings.get("system", ""))
    if not clients:
        return system if system in _OTHER_SCORES else run.label
    on_other = system == "dual" and settings["judge_on"] != "test"
    if not dual_cells.is_row(run) or run.data["clients"] != clients or on_other:
        return ""
    form = settings.get("personalized_form", "formula")
    return system if form == "formula" else f"{system} ({form})"
