"""Reads run folders back."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc import scores

BASELINE = "DS"
"""The run that reports hold the others against: the weights of federated averaging."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One run, as its folder has it.

    Attributes:
        label: its ordering, for example `LD,DS,MD`, or other score; of an adjusted run
            the initial ordering and the policy, `MD,DS,LD (backtracking)`.
        info: `run.json`.
        rounds: `rounds.csv`.
        weights: `weights.csv`.
        correct: correctly classified test examples, int [rounds, clients].
        examples: test examples of each client, int [clients].
        adjustment: how the ordering was adjusted: `fixed` (not at all, as in every
            run from before there was a choice), `backtracking` or `best_of_all`.
        candidates: `candidates.csv`, a row an ordering tested, in the order of the
            tests; None for a fixed ordering.
        cohort: `cohort.csv`, the raw criteria of each round's clients; None where it
            is not there.
    """

    label: str
    info: dict[str, Any]
    rounds: pd.DataFrame
    weights: pd.DataFrame
    correct: npt.NDArray[np.int64]
    examples: npt.NDArray[np.int64]
    adjustment: str = "fixed"
    candidates: Optional[pd.DataFrame] = None
    cohort: Optional[pd.DataFrame] = None

    @property
    def data_caveat(self) -> str:
        """The source of its data where that is a stand-in or incomplete, else empty.

        To be shown wherever the run is: nobody may take it for one on all of the
        data set that its experiment is named after.
        """
        return caveat_of(self.info["data"])


def data_caveat(runs: Iterable[Run]) -> str:
    """The first caveat of the data of several runs, empty if none has one."""
    return next(filter(None, (run.data_caveat for run in runs)), "")


def with_caveat(table: pd.DataFrame, runs: Iterable[Run]) -> pd.DataFrame:
    """A table made of runs, with a last column `data` if their data has a caveat."""
    caveat = data_caveat(runs)
    marked: pd.DataFrame = table.assign(data=caveat) if caveat else table
    return marked


def caveat_of(data: dict[str, Any]) -> str:
    """See `Run.data_caveat`; of the data in a run's `run.json`."""
    source: str = data.get("origin", {}).get("source", "")
    return source if "drawn" in data["name"] or "INCOMPLETE" in source else ""


def conditions(info: dict[str, Any]) -> str:
    """A sentence of what a run ran on and how, of its `run.json`."""
    settings, data = info["settings"], info["data"]
    options = ", ".join(f"{k}={v}" for k, v in data.get("options", {}).items())
    source = data.get("origin", {}).get("source", "")
    return (
        f"Data: {data['name']} ({options}), from {source}. {settings['model']}, "
        f"{settings['client_optimizer']} with rate {settings['learning_rate']:g}, "
        f"E = {settings['local_epochs']}, B = {settings['batch_size']}, "
        f"{settings['rounds']} rounds, seed {settings['batch_seed']}."
    )


def read_info(path: str) -> dict[str, Any]:
    """Reads a run's `run.json`.

    Raises:
        FileNotFoundError: it is missing.
        ValueError: it is not JSON; the message names it.
    """
    name = os.path.join(path, "run.json")
    if not os.path.exists(name):
        raise FileNotFoundError(f"{path} is no run of ours: it has no run.json")
    with open(name) as file:
        try:
            info: dict[str, Any] = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{name} is not JSON: {error}") from error
    return info


def read_run(path: str) -> Run:
    """Reads a run folder.

    Raises:
        FileNotFoundError: a file of the folder is missing.
        ValueError: a file does not parse; the message names it.
    """
    info = read_info(path)
    try:
        return _from_files(path, info)
    except (KeyError, IndexError) as error:
        raise ValueError(f"{path}: a record lacks {error}") from error


def _from_files(path: str, info: dict[str, Any]) -> Run:
    clients = _read_csv(path, "clients.csv")
    # A round's rows follow each other in the federation's order of clients.
    per_round = int((clients["round"] == clients["round"].iloc[0]).sum())
    if len(clients) % per_round:
        raise ValueError(f"{path}: clients.csv ends within a round")
    shape = (-1, per_round)
    label = score_label(info["settings"])
    adjustment = info["settings"].get("adjustment", "fixed")
    fixed = adjustment == "fixed"
    # Not among the few files of a run that may be kept in a repository.
    has_cohort = os.path.exists(os.path.join(path, "cohort.csv"))
    return Run(
        label=info.get("label", label if fixed else f"{label} ({adjustment})"),
        info=info,
        rounds=_read_csv(path, "rounds.csv"),
        weights=_read_csv(path, "weights.csv"),
        correct=clients["correct"].to_numpy().reshape(shape),
        examples=clients["examples"].to_numpy().reshape(shape)[0],
        adjustment=adjustment,
        candidates=None if fixed else _read_csv(path, "candidates.csv"),
        cohort=_read_csv(path, "cohort.csv") if has_cohort else None,
    )


def score_label(settings: dict[str, Any]) -> str:
    """The label of a run's score; records from before there was a choice have none."""
    if settings.get("score") == "dual":  # Whose lambda is another in every round.
        return "dual"
    return scores.named(
        settings.get("score", "prioritized"),
        settings["priority"],
        settings.get("criteria", settings["priority"]),
        score_weights=settings.get("score_weights", ()),
        quantifier=settings.get("quantifier", ""),
        capacity=settings.get("capacity", ()),
    ).label


def _read_csv(path: str, name: str) -> pd.DataFrame:
    file = os.path.join(path, name)
    if not os.path.exists(file):
        raise FileNotFoundError(f"{path} has run.json but no {name}")
    try:
        return pd.read_csv(file)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
