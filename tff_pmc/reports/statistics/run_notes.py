"""Notes for tables on the data, the settings and the length of runs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tff_pmc.record.record_error import ClientsNotRecordedError
from tff_pmc.record.results import RUN_INFO_COLUMNS, RUN_KEY, Results

# The settings that distinguish the runs of an experiment.
_RUN_COLUMNS = ("algorithm", "priority", "criteria", "adjustment")


def data_caveat(results: Results) -> str:
    """Returns the source of incomplete data, or an empty text.

    Every table and figure of such runs must show it, because their experiment is named
    after the whole data set.
    """
    for _, run in results.runs.iterrows():
        source = str(run["data_source"])
        if "INCOMPLETE" in source:
            return source
    return ""


def mark_incomplete_data(table: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Returns a table with a last column `data` if its runs' data has a caveat."""
    caveat = data_caveat(results)
    marked: pd.DataFrame = table.assign(data=caveat) if caveat else table
    return marked


def excluded_notes(results: Results) -> dict[str, str]:
    """Returns how many trainings were excluded and why, by label, where some were."""
    if "excluded" not in results.rounds:
        return {}
    columns = ["excluded", "clients"]
    counts = results.rounds.groupby("label", sort=False)[columns].sum()
    share = results.runs.get("stragglers", pd.Series(0.0, results.runs.index))
    have_stragglers = {*results.runs["label"][share > 0]}
    return {
        label: f"{excluded:.0f} of {trainings:.0f} trainings were excluded, as "
        f"{'stragglers, ' if label in have_stragglers else ''}not finite or above "
        "--max_update_norm"
        for label, excluded, trainings in counts.itertuples()
        if excluded
    }


def condition_notes(results: Results) -> list[str]:
    """Returns the data and settings of the runs, each sentence once, and what differs.

    Runs that did not record settings, such as those of the published code, have none.
    """
    rows = [
        row for _, row in results.runs.iterrows() if isinstance(row.get("model"), str)
    ]
    notes = list(dict.fromkeys(map(_conditions, rows)))
    for name in (
        name for name in results.runs if name not in (*RUN_INFO_COLUMNS, *_RUN_COLUMNS)
    ):
        values = dict.fromkeys(
            str(value) for value in results.runs[name] if not _is_nan(value)
        )
        if len(values) > 1:
            notes.append(f"The runs differ in {name}: {', '.join(values)}.")
    length = results.length
    ends = dict.fromkeys(
        (row["label"], int(length[row["seed"], row["label"]]), int(row["rounds"]))
        for row in rows
        if not _or_default(row.get("ended_early"), "")  # `caveat_notes` has these.
    )
    return notes + [
        f"The record of {label} ends with round {recorded} of {planned}."
        for label, recorded, planned in ends
        if recorded < planned
    ]


def early_stop_notes(results: Results) -> list[str]:
    """Returns which runs a callback ended early, and after which rounds.

    Each reason has one line, such as "DS; LD,DS ended after 146 to 158 rounds (seeds
    0, 1): all targets are reached".
    """
    ended: dict[str, list[tuple[str, int, int]]] = {}
    for run in results.runs.to_dict("records"):
        words = run.get("ended_early")
        if isinstance(words, str) and words:
            length = int(results.length[run["seed"], run["label"]])
            reason = words.partition(": ")[2]
            ended.setdefault(reason, []).append((run["label"], run["seed"], length))
    notes = []
    for reason, runs in ended.items():
        labels = "; ".join(dict.fromkeys(label for label, _, _ in runs))
        seeds = sorted({seed for _, seed, _ in runs})
        lengths = sorted({length for _, _, length in runs})
        span = " to ".join(map(str, dict.fromkeys([lengths[0], lengths[-1]])))
        plural = "s" if len(seeds) > 1 else ""
        notes.append(
            f"{labels} ended after {span} rounds (seed{plural} "
            f"{', '.join(map(str, seeds))}){reason and f': {reason}'}."
        )
    return notes


def caveat_notes(results: Results) -> list[str]:
    """Returns which runs ended early, and how many clients have no test examples.

    If a run recorded no clients, the note says that there are no rounds to a target.
    """
    notes = early_stop_notes(results)
    if not results.has_clients:
        return [*notes, f"There are no rounds to target: {ClientsNotRecordedError()}."]
    sizes = results.clients.groupby([*RUN_KEY, "client"], sort=False)["examples"].max()
    counts = sizes.eq(0).groupby(level=RUN_KEY, sort=False).sum()
    if not counts.any():
        return notes
    return [
        *notes,
        f"Clients without test examples: {' or '.join(map(str, counts.unique()))}. "
        "They count among the devices and never reach a target.",
    ]


def _conditions(run: pd.Series[Any]) -> str:
    options = ", ".join(f"{key}={value}" for key, value in run["data_options"].items())
    tested = _or_default(run.get("evaluate_clients"), 0)
    sample = ""
    if 0 < tested < run["data_clients"]:
        error = 50 / tested**0.5
        sample = (
            f" Tested by {tested:.0f} of {run['data_clients']} clients: a share of the "
            f"clients has a standard error of at most {error:.1f} points."
        )
    test_interval = _or_default(run.get("evaluate_every"), 1)
    seldom = (
        f" Tested after every {test_interval:.0f} rounds." if test_interval > 1 else ""
    )
    return (
        f"Data: {run['data_name']}{options and f' ({options})'}, "
        f"from {run['data_source']}. "
        f"{run['model']}, "
        f"{run['client_optimizer']} with rate {run['learning_rate']:g}, "
        f"E = {run['local_epochs']:.0f}, B = {batch_text(run['batch_size'])}, "
        f"{run['rounds']:.0f} rounds, seed {run['seed']}."
        f"{sample}{seldom}"
    )


def batch_text(size: float) -> str:
    """Returns a batch size as displayed: 0 means all of a client's examples."""
    return f"{size:.0f}" if size else "all"


def _or_default(value: Any, default: Any) -> Any:
    """Returns a setting, or the default if the record is older than the setting."""
    return default if value is None or _is_nan(value) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value
