"""What the rows of a record's tables must be together, whatever each column holds.

A record is made round by round, and so its rows are in order: whatever has been
shuffled, doubled, cut off or made up is refused here, and no table is made of it.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.measures import ACCURACY, PERCENTILES, client_means, percentile
from tff_pmc.record.record_error import RecordError

_LARGEST_FLOAT32 = 3.5e38
_ROUNDING = 1e-5  # Each weight is written with seven digits.
_ROUNDED = 1e-4  # And each percentile with four.


def in_order(*each: str, gaps: bool = False) -> Callable[[pd.DataFrame], None]:
    """Returns a check of rounds 1, 2, 3, ..., each with one row, or one for `each`.

    With `gaps` rounds may be missing behind the first.
    """

    def check(table: pd.DataFrame) -> None:
        rounds = table["round"].to_numpy()
        steps = np.diff(rounds, prepend=0)
        wrong = steps != 1
        if each:
            wrong &= steps != 0
            wrong &= (steps < 0) | (not gaps)
            wrong[:1] |= steps[:1] != 1
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f"row {place + 1} is of round {rounds[place]}: rounds are 1, 2, 3, ... "
                "in this order"
            )
        if each and {*each} <= {*table.columns}:
            twice = table.duplicated(["round", *each])
            if twice.any():
                row = table[twice].iloc[0]
                raise ValueError(f"round {row['round']} has {row[each[0]]!r} twice")

    return check


def check_counts(table: pd.DataFrame) -> None:
    """Refuses more correct examples than examples."""
    wrong = table["correct"] > table["examples"]
    if wrong.any():
        row = table[wrong].iloc[0]
        raise ValueError(
            f"round {row['round']} has {row['correct']} correct of {row['examples']}"
        )


def check_rounds(table: pd.DataFrame) -> None:
    """Refuses rows that no `rounds.csv` has."""
    if table.empty:
        raise ValueError("it has no rows")
    in_order()(table)
    if "examples" in table and not table["examples"].all():
        raise ValueError("a round has no examples")
    if {"correct", "examples"} <= set(table.columns):
        check_counts(table)


def check_clients(table: pd.DataFrame) -> None:
    """Refuses rows that no `clients.csv` has: the same clients in every round."""
    if table.empty:
        raise ValueError("it has no rows")
    in_order("client", gaps=True)(table[["round"]])
    if "correct" in table:
        check_counts(table)
    elif "loss_sum" not in table:  # A regression's.
        raise ValueError("it lacks the column 'correct'")
    # A round's rows follow each other in the federation's order of clients.
    per_round = int((table["round"] == 1).sum())
    in_order("client")(table[:per_round])
    if len(table) % per_round:
        raise ValueError("it ends within a round")
    for column in ("round", "client", "examples"):
        cells = table[column].to_numpy().reshape(-1, per_round)
        same = cells == (cells[:, :1] if column == "round" else cells[:1])
        if not same.all():
            number = int(same.all(axis=1).argmin()) + 1
            raise ValueError(f"round {number} has others in the column {column!r}")
    if not table["examples"][:per_round].any():
        raise ValueError("no client has examples")


def check_weightings(table: pd.DataFrame) -> None:
    """Refuses rows that no `weightings.csv` has: of a round one is in force."""
    if table.empty:
        raise ValueError("it has no rows")
    in_order("weighting", "rate", gaps=True)(table)
    check_counts(table)
    _check_one(table, "in_force", "weighting that is in force")
    lacking = table[(table["examples"] == 0) | table["rate"].isna()]
    if len(lacking):
        row = lacking.iloc[0]
        raise ValueError(f"{row['weighting']!r} has no examples, or no rate")


def check_candidates(table: pd.DataFrame) -> None:
    """Refuses rows that no `candidates.csv` has: of a round one is kept."""
    in_order("trial")(table)
    check_counts(table)
    _check_one(table, "kept", "that is kept")


def _check_one(table: pd.DataFrame, flag: str, words: str) -> None:
    marked = table.groupby("round")[flag].sum()
    if (marked != 1).any():
        raise ValueError(f"round {marked.index[marked != 1][0]} has not one {words}")


def check_cohort(table: pd.DataFrame) -> None:
    """Refuses rows that no `cohort.csv` has: who is not finite is left out."""
    in_order("client")(table)
    others = ["round", "client", "excluded", "weight"]
    raw = table.drop(columns=others, errors="ignore")
    wrong = (table["excluded"] == 0) & ~(raw.abs() <= _LARGEST_FLOAT32).all(axis=1)
    if wrong.any():
        row = table[wrong].iloc[0]
        raise ValueError(
            f"round {row['round']} counts {row['client']!r}, with a criterion that is "
            "no float32"
        )


def check_weights(folder: str, cohort: pd.DataFrame, weights: pd.DataFrame) -> None:
    """Refuses weights that do not sum to 1, or to 0 in a round in which nobody counts.

    Those of a step are no such weights: see `System.has_step`. And `weights.csv` with
    more effective clients than were there, or others than these weights have.
    """
    if "weight" not in cohort:
        return
    sums = cohort.groupby("round")["weight"].sum()
    wrong = ~((sums - 1).abs() < _ROUNDING) & (sums != 0)
    if wrong.any():
        raise RecordError(
            f"{folder}: the weights of round {sums.index[wrong][0]} in cohort.csv sum "
            f"to {sums[wrong].iloc[0]:g}"
        )
    figures = ["round", "effective_clients", "in_force", "total_variation"]
    if not {*figures} <= {*weights.columns}:
        return
    rounds, effective, in_force, moved = (weights[name] for name in figures)
    squares = cohort["weight"].pow(2).groupby(cohort["round"]).sum()
    own = rounds.map((1 / squares).where(squares > 0, 0.0))
    counted = (1 - cohort["excluded"]).groupby(cohort["round"]).sum()
    # A system that weighs equally has the figures of a score that it does not use.
    same = (in_force == 1) & (moved == 0)
    wrong = effective > (1 + _ROUNDED) * rounds.map(counted)
    wrong |= same & ((effective - own).abs() > _ROUNDED * own)
    if wrong.any():
        raise RecordError(
            f"{folder}: weights.csv and cohort.csv differ in the effective clients of "
            f"round {rounds[wrong].iloc[0]}"
        )


def check_totals(
    path: str,
    rounds: pd.DataFrame,
    totals: tuple[npt.NDArray[np.int64], int],
    correct: npt.NDArray[np.int64],
    examples: npt.NDArray[np.int64],
) -> None:
    """Holds `rounds.csv` against `clients.csv`, in the rounds that both have.

    `totals` are the sums over the clients, `correct` is [rounds, clients].
    """
    if not {"correct", "examples"} <= set(rounds.columns):
        return
    both = min(len(totals[0]), len(rounds))
    found: dict[str, Any] = {"correct": totals[0][:both], "examples": totals[1]}
    found[ACCURACY.mean] = found["correct"] / totals[1]
    if examples.size:
        local = client_means(correct[:both], examples)
        for percent in PERCENTILES:
            found[ACCURACY.percentile(percent)] = percentile(local, percent)
    for column in [name for name in found if name in rounds]:
        differ = abs(rounds[column].to_numpy()[:both] - found[column]) > _ROUNDED
        if differ.any():
            raise RecordError(
                f"{path}: rounds.csv and clients.csv differ in the column {column} of "
                f"round {int(differ.argmax()) + 1}"
            )
