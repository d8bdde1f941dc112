"""Two runs, or two experiments folders, side by side, row by row.

Each side is ours or the authors' published code's; the folder shows which.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import pandas as pd

from leaf_data import DataError
from tff_pmc.reports import own_settings, read, reference_code
from tff_pmc.reports.rounds_to_target import (
    DEVICES,
    Rounds,
    reach_rule,
    rounds_to_target,
)

_KEYS = ("experiment", "quantity", "target_accuracy_pct", "devices", "round")
_NAMES = {"a": "A", "b": "B", "difference": "B-A"}
Pair = tuple[Optional[read.Run], Optional[read.Run]]


def read_runs(path: str) -> dict[str, read.Run]:
    """Reads a run or an experiments folder, ours or the published code's.

    Returns:
        The runs by their folders: ours in the order of the folders' names, the
        published code's, whose folders are named by a time, in that of the indices.

    Raises:
        DataError: there is no run.
        FileNotFoundError, ValueError: a run's file is missing or broken.
    """
    if not os.path.isdir(path):
        raise DataError(f"{path} is no folder")
    ours = os.path.exists(os.path.join(path, "clients.csv"))
    if ours or reference_code.is_run(path):
        return {path: _read_run(path)}
    folders = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    runs = {
        folder: _read_run(folder)
        for folder in folders
        if reference_code.is_run(folder)
        or os.path.exists(os.path.join(folder, "run.json"))
    }
    if not runs:
        if os.path.exists(os.path.join(path, "run.json")):
            raise DataError(
                f"{path} has run.json but no clients.csv, which tables are made from"
            )
        raise DataError(
            f"{path} is no run (with run.json or {reference_code.PARAMETERS}) and no "
            "folder of runs"
        )
    return dict(sorted(runs.items(), key=lambda item: _index(item[1])))


def _read_run(folder: str) -> read.Run:
    if reference_code.is_run(folder):
        return reference_code.read_run(folder)
    return read.read_run(folder)


def _index(run: read.Run) -> int:
    return run.index if isinstance(run, reference_code.ReferenceRun) else 0


def compare(
    path_a: str,
    path_b: str,
    targets: Optional[Sequence[int]] = None,
    *,
    strictly_above: Optional[bool] = None,
) -> pd.DataFrame:
    """Compares the runs of two folders, ordering by ordering.

    Two single runs are compared whatever their orderings are, as `DS / LD`.

    Args:
        path_a: a run or an experiments folder, ours or the published code's.
        path_b: another.
        targets: target accuracies, percent; by default the runs' own, see
            `own_settings.targets`.
        strictly_above: whether a device reaches a target when its accuracy is above
            it, as the published evaluation script has it, or at least the target. The
            same rule on both sides; by default the runs' own, see
            `own_settings.strictly_above`.

    Returns:
        Tidy rows with the columns experiment, quantity, target_accuracy_pct,
        devices, round, a, b, difference (b minus a) and reach (the rule, of rounds:
        `at_least` or `above`). The quantity is `rounds`
        (until the share `devices` reached the target; empty: not reached) or
        `accuracy` (of each round, on all clients' test examples). A row is there
        if either side has it.

    Raises:
        DataError: a folder has no run, or two runs of one ordering; or a default is
            wanted, and the runs have different ones.
    """
    runs_a, runs_b = read_runs(path_a), read_runs(path_b)
    both = {**runs_a, **runs_b}
    if targets is None:
        targets = own_settings.targets(both)
    if strictly_above is None:
        strictly_above = own_settings.strictly_above(both)
    published = any(
        isinstance(run, reference_code.ReferenceRun) for run in both.values()
    )
    a, b = _by_label(runs_a, published), _by_label(runs_b, published)
    if len(a) == len(b) == 1 and a.keys() != b.keys():
        label = f"{next(iter(a))} / {next(iter(b))}"
        a, b = {label: next(iter(a.values()))}, {label: next(iter(b.values()))}
    rows: list[dict[str, Any]] = []
    for label in dict.fromkeys([*a, *b]):
        pair = (a.get(label), b.get(label))
        rows += _round_rows(label, pair, targets, strictly_above)
        rows += _accuracy_rows(label, pair)
    table = pd.DataFrame(rows, columns=[*_KEYS, "a", "b"]).astype(
        {"a": float, "b": float}
    )
    table["difference"] = table["b"] - table["a"]
    reach = "above" if strictly_above else "at_least"
    table["reach"] = table["quantity"].map({"rounds": reach}).fillna("")
    whole: pd.DataFrame = table.astype(
        {"target_accuracy_pct": "Int64", "round": "Int64"}
    )
    return whole


def comparison_text(table: pd.DataFrame) -> str:
    """The rows of `compare` as a reader's tables; `+` is later, or more accurate."""
    rounds = table.query("quantity == 'rounds'")
    accuracy = table.query("quantity == 'accuracy'")
    rule = reach_rule("above" in rounds["reach"].tolist())
    return f"{_rounds_text(rounds)}\n{rule}\n\n{_accuracy_text(accuracy)}"


def _by_label(runs: Mapping[str, read.Run], published: bool) -> dict[str, read.Run]:
    """Runs by ordering, in the published code's names when it is one of the sides."""
    found: dict[str, read.Run] = {}
    folders: dict[str, str] = {}
    for folder, run in runs.items():
        label = reference_code.by_meaning(run.label) if published else run.label
        if label in found:
            raise DataError(
                f"{folders[label]} and {folder} are both runs of {label}: compare "
                "folders with one run of an ordering"
            )
        found[label], folders[label] = run, folder
    return found


def _round_rows(
    label: str, pair: Pair, targets: Sequence[int], strictly_above: bool
) -> list[dict[str, Any]]:
    a, b = (_rounds(run, targets, strictly_above) for run in pair)
    return [
        {
            "experiment": label,
            "quantity": "rounds",
            "target_accuracy_pct": target,
            "devices": f"{share}%",
            "a": a.get((target, share)),
            "b": b.get((target, share)),
        }
        for target in targets
        for share in DEVICES
    ]


def _rounds(
    run: Optional[read.Run], targets: Sequence[int], strictly_above: bool
) -> Rounds:
    if run is None:
        return {}
    return rounds_to_target(
        run.correct, run.examples, targets, strictly_above=strictly_above
    )


def _accuracy_rows(label: str, pair: Pair) -> list[dict[str, Any]]:
    a, b = (
        [] if run is None else (run.correct.sum(axis=1) / run.examples.sum()).tolist()
        for run in pair
    )
    return [
        {
            "experiment": label,
            "quantity": "accuracy",
            "round": round_num,
            "a": in_a,
            "b": in_b,
        }
        for round_num, (in_a, in_b) in enumerate(itertools.zip_longest(a, b), start=1)
    ]


def _rounds_text(rows: pd.DataFrame) -> str:
    width = max(len(name) for name in rows["experiment"])
    shares = " ".join(f"{share:>5}" for share in dict.fromkeys(rows["devices"]))
    lines = [
        "Rounds until a share of the devices reaches the target accuracy",
        f"target  {'':{width}}        {shares}",
    ]
    for (label, target), part in rows.groupby(
        ["experiment", "target_accuracy_pct"], sort=False
    ):
        start = f"{target:>4} %  {label:{width}}"
        for name, form in (("a", ".0f"), ("b", ".0f"), ("difference", "+.0f")):
            cells = " ".join(f"{_cell(value, form):>5}" for value in part[name])
            lines.append(f"{start}  {_NAMES[name]:5} {cells}")
            start = " " * len(start)
    return "\n".join(lines)


def _accuracy_text(rows: pd.DataFrame) -> str:
    width = max(len(name) for name in rows["experiment"])
    lines = [
        "Accuracy on all clients' test examples, at the last round of both",
        f"{'':{width}}  round      A      B    B-A   mean B-A   largest |B-A|",
    ]
    for label, part in rows.groupby("experiment", sort=False):
        common = part.dropna(subset=["difference"])
        if common.empty:
            side = "A" if part["b"].isna().all() else "B"
            lines.append(f"{label:{width}}  only in {side}")
            continue
        last = common.iloc[-1]
        largest = common.loc[common["difference"].abs().idxmax()]
        lines.append(
            f"{label:{width}}  {last['round']:>5}  {last['a']:.3f}  {last['b']:.3f} "
            f"{last['difference']:+.3f}     {common['difference'].mean():+.3f}   "
            f"{abs(largest['difference']):.3f} in round {largest['round']}"
        )
    return "\n".join(lines)


def _cell(value: float, form: str) -> str:
    return "-" if pd.isna(value) else format(value, form)
