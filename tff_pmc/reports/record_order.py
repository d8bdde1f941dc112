"""What the rows of a record are to one another: in order, and the same clients."""

from __future__ import annotations

import numpy as np
import pandas as pd


def check_order(table: pd.DataFrame, *, each: str = "") -> None:
    """Refuses rounds other than 1, 2, 3, ...

    Args:
        table: the rows.
        each: the column that tells the rows of a round apart; without, a round has one
            row.

    Raises:
        ValueError: the rounds are others, or a round has something twice.
    """
    rounds = table["round"].to_numpy()
    steps = np.diff(rounds, prepend=0)
    if not each:
        wrong = steps != 1
    else:
        wrong = (steps != 0) & (steps != 1)
        wrong[:1] |= steps[:1] != 1
    if wrong.any():
        place = int(wrong.argmax())
        raise ValueError(
            f"row {place + 1} is of round {rounds[place]}: rounds are 1, 2, 3, ... in "
            "this order"
        )
    if each and each in table:
        twice = table.duplicated(["round", each])
        if twice.any():
            row = table[twice].iloc[0]
            raise ValueError(f"round {row['round']} has {row[each]!r} twice")


def check_counts(table: pd.DataFrame) -> None:
    """Refuses more correct examples than examples, with a `ValueError`."""
    wrong = table["correct"] > table["examples"]
    if wrong.any():
        row = table[wrong].iloc[0]
        raise ValueError(
            f"round {row['round']} has {row['correct']} correct of {row['examples']}"
        )


def check_rounds(table: pd.DataFrame) -> None:
    """Refuses rows that no `rounds.csv` has, with a `ValueError`."""
    if table.empty:
        raise ValueError("it has no rows")
    check_order(table)
    if {"correct", "examples"} <= set(table.columns):
        check_counts(table)


def check_clients(table: pd.DataFrame) -> None:
    """Refuses rows that no `clients.csv` has, with a `ValueError`."""
    if table.empty:
        raise ValueError("it has no rows")
    check_order(table, each="client")
    if "correct" in table:
        check_counts(table)
    elif "loss_sum" not in table:  # A regression's.
        raise ValueError("it lacks the column 'correct'")
    # A round's rows follow each other in the federation's order of clients.
    per_round = int((table["round"] == 1).sum())
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


def check_candidates(table: pd.DataFrame) -> None:
    """Refuses rows that no `candidates.csv` has, with a `ValueError`."""
    check_order(table, each="trial")
    check_counts(table)
    kept = table.groupby("round")["kept"].sum()
    if (kept != 1).any():
        raise ValueError(f"round {kept.index[kept != 1][0]} has not one that is kept")


def check_results(table: pd.DataFrame) -> None:
    """Refuses targets that no `results.csv` has, with a `ValueError`.

    A target is a whole percentage; figures that are of no share of the devices need
    none.
    """
    targets = table["target_accuracy_pct"]
    whole = targets.isin(range(101))
    wrong = ~whole & (targets.notna() | table["devices"].str.endswith("%"))
    if wrong.any():
        place = int(wrong.to_numpy().argmax())
        raise ValueError(
            f"row {place + 1} has {targets.iloc[place]:g} as target_accuracy_pct"
        )
