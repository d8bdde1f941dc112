"""Reads the runs that are kept in a repository, of which only a few files are there.

Of a kept run there is at least `rounds.csv`, and `run.json` in its folder or in one
above it, where several runs share it.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.reports import read
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import NotKeptError, RecordMissingError
from tff_pmc.reports.record_tables import has_table, read_table
from tff_pmc.reports.rounds_to_target import DEVICES, Rounds, rounds_to_target


@dataclasses.dataclass(frozen=True)
class KeptRun(Run):
    """A run without its `clients.csv`: `correct` and `examples` are None.

    Attributes:
        reached: the rounds to the targets, as the `results.csv` beside it has them, by
            the run's own rule; empty where there is none.
    """

    reached: Rounds = dataclasses.field(default_factory=dict)

    @property
    def targets(self) -> tuple[int, ...]:
        """The target accuracies on record, percent; else those of `results.csv`."""
        return super().targets or tuple(dict.fromkeys(t for t, _ in self.reached))

    @property
    def accuracy(self) -> Any:
        """The accuracy over all clients' test examples, [rounds]."""
        return self.rounds["accuracy"].to_numpy(float)


def kept_runs(folder: str) -> list[Run]:
    """Returns the runs under a folder, in the order of the folders' names.

    Raises:
        RecordError: a file does not parse; the message names it.
    """
    found = []
    for path, folders, _ in os.walk(folder):
        folders.sort()
        if is_kept(path, folder):
            found.append(kept_run(path, folder))
    return found


def is_kept(path: str, top: str) -> bool:
    """Returns whether a folder is a kept run: one with its rounds and a `run.json`.

    Args:
        path: the folder.
        top: it or a folder above it, the last in which `run.json` is looked for.
    """
    return has_table(path, "rounds.csv") and _holder(path, top) is not None


def kept_run(path: str, top: str) -> Run:
    """Reads a kept run, all of it where all of it is kept.

    Args:
        path: the run's folder, as `is_kept` has it.
        top: it or a folder above it, the last in which `run.json` and `results.csv`
            are looked for.

    Raises:
        RecordError: a file does not parse; the message names it.
    """
    holder = _holder(path, top)
    if holder is None:
        raise RecordMissingError(f"{path} is no run of ours: it has no run.json")
    info = read.read_info(holder)
    whole = all(has_table(path, name) for name in ("clients.csv", "weights.csv"))
    if holder == path and whole:
        return read.read_run(path)
    return _from_few_files(path, holder, top, info)


def totals(run: Run) -> tuple[npt.NDArray[np.int64], int]:
    """Returns the test examples that are right in each round, and how many there are.

    Of all clients together; the run may be kept whole or not.
    """
    if isinstance(run, KeptRun):
        rounds = run.rounds
        return rounds["correct"].to_numpy(np.int64), int(rounds["examples"].iloc[0])
    return run.correct.sum(axis=1), int(run.examples.sum())


def clients_of(run: Run) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns each client's correct examples in each round, and its examples.

    Raises:
        NotKeptError: the run is kept without them.
    """
    if isinstance(run, KeptRun):
        raise NotKeptError(
            f"{run.path} has rounds.csv but no clients.csv, the results of each client"
        )
    return run.correct, run.examples


def rounds_of(
    run: Run, targets: Sequence[int], devices: Sequence[int] = DEVICES
) -> Rounds:
    """Returns the rounds to targets of a run, kept whole or not, by its rule.

    Args:
        run: the run.
        targets: target accuracies, percent.
        devices: shares of the devices, percent.

    Raises:
        NotKeptError: the run is kept without its clients, and without these rounds.
    """
    if not isinstance(run, KeptRun):
        above = bool(run.strictly_above)
        return rounds_to_target(
            run.correct, run.examples, targets, devices, strictly_above=above
        )
    if run.reach not in ("", run.recorded_reach):
        raise NotKeptError(
            f"{run.path} has no clients.csv, and its kept rounds are by its own rule "
            f"of reaching a target, {run.recorded_reach}"
        )
    asked = [(target, share) for target in targets for share in devices]
    known = dict(run.reached)
    for target, share in asked:
        # What fewer of the devices never reach more of them do not reach either.
        fewer = (s for t, s in run.reached if t == target and s < share)
        if any(run.reached[target, less] is None for less in fewer):
            known.setdefault((target, share), None)
    missing = [key for key in asked if key not in known]
    if missing:
        target, share = missing[0]
        raise NotKeptError(
            f"the kept files of {run.label} do not say when {share} % of the devices "
            f"reach {target} %"
        )
    return {key: known[key] for key in asked}


def _holder(path: str, top: str) -> Optional[str]:
    """Returns the nearest folder with a `run.json`, this one or one above it."""
    while not os.path.exists(os.path.join(path, "run.json")):
        if os.path.realpath(path) == os.path.realpath(top):
            return None
        path = os.path.dirname(path)
    return path


def _from_few_files(
    path: str, holder: str, top: str, info: Mapping[str, Any]
) -> KeptRun:
    own = dict(info) if holder == path else {**info, "label": _label(path, info)}
    tables = {
        name: read_table(path, f"{name}.csv")
        for name in ("weights", "candidates", "cohort")
        if has_table(path, f"{name}.csv")
    }
    nothing: Any = None
    label = read.label_in(path, own)
    return KeptRun(
        label=label,
        info=own,
        rounds=read_table(path, "rounds.csv"),
        weights=tables.get("weights", pd.DataFrame()),
        correct=nothing,
        examples=nothing,
        adjustment=read.adjustment_of(own),
        candidates=tables.get("candidates"),
        cohort=tables.get("cohort"),
        path=path,
        reached=_reached(path, top, label),
    )


def _label(path: str, info: Mapping[str, Any]) -> str:
    """Returns the label whose folder this is, of those in the runs' common file."""
    name = os.path.basename(path)
    shared = info.get("settings", {}).get("orderings", ())
    labels = {_as_folder(label): label for label in shared}
    return str(labels.get(_as_folder(name), name))


def _as_folder(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


def _reached(path: str, top: str, label: str) -> Rounds:
    """Returns the rounds to targets from the nearest `results.csv`."""
    while not has_table(path, "results.csv"):
        if os.path.realpath(path) == os.path.realpath(top):
            return {}
        path = os.path.dirname(path)
    table = read_table(path, "results.csv")
    table = table[table["devices"].str.fullmatch("[0-9]{1,3}%")]
    own = table[(table["experiment"] == label) & (table["quantity"] == "rounds")]
    return {_key(row): _number(row["value"]) for row in own.to_dict("records")}


def _key(row: Mapping[Any, Any]) -> tuple[int, int]:
    return int(row["target_accuracy_pct"]), int(str(row["devices"]).rstrip("%"))


def _number(value: float) -> Optional[int]:
    return round(value) if np.isfinite(value) else None
