"""How reports display the rows of results."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from tff_pmc.record.results import Results
from tff_pmc.settings.row_names import BASELINE, RowName

COMMON_NOTES = "common_notes"
"""The key of `Results.about` with what all rows share, which the title then says."""


def row_titles(results: Results) -> dict[str, str]:
    """Returns label -> the name that reports display, in the order of the labels.

    The ordering `DS` is federated averaging, and displayed as `FedAvg (DS)`.
    """
    return {label: row_title(label) for label in results.labels}


def row_names(results: Results) -> list[RowName]:
    """Returns the names of the rows by which a baseline can be chosen."""
    runs = results.runs
    algorithms = runs.get("algorithm", runs["title"]).fillna("")
    return [
        *map(RowName, runs["label"], runs["title"], algorithms, runs["note"].fillna(""))
    ]


def row_title(label: str) -> str:
    """Returns the name that reports display for a label."""
    return f"FedAvg ({label})" if label == BASELINE else label


def common_notes(results: Results) -> list[str]:
    """Returns the notes that all labels share, such as `200 clients`."""
    _, *others = parts = [notes for _, notes in _split_labels(results).values()]
    return [note for note in parts[0] if all(note in notes for notes in others)]


def with_short_labels(
    results: Results, notes: Collection[str] | None = None
) -> Results:
    """Returns the runs without the notes that all labels share.

    `FedAvg, 200 clients` and `FedProx, mu 0.1, 200 clients` are `FedAvg` and `FedProx,
    mu 0.1`: settings that are equal in all rows are only in the title.

    Args:
        results: the runs.
        notes: the notes to remove; by default those that all labels share. One row
            then keeps its label.
    """
    parts = _split_labels(results)
    if notes is None:
        notes = common_notes(results) if len(parts) > 1 else ()
    common = {*notes}
    if not common:
        return results
    short = {
        label: ", ".join([name, *(note for note in notes if note not in common)])
        for label, (name, notes) in parts.items()
    }
    long = {name: label for label, name in short.items()}

    def relabel(table: pd.DataFrame) -> pd.DataFrame:
        return table.assign(label=table["label"].map(short))

    note = results.runs["note"]
    in_order = next(iter(parts.values()))[1]
    about: dict[str, Any] = {
        COMMON_NOTES: [text for text in in_order if text in common]
    }
    if baseline := results.about.get("baseline"):
        about["baseline"] = short.get(baseline, baseline)
    return Results(
        relabel(results.runs).assign(note=note.mask(note.isin(common), "")),
        lambda name: relabel(getattr(results, name)),
        path=results.path,
        about={**results.about, **about},
        predictions=lambda seed, label, round_num: results.predictions(
            seed, long[label], round_num
        ),
    )


def _split_labels(results: Results) -> dict[str, tuple[str, list[str]]]:
    titles = dict(zip(results.runs["label"], results.runs["title"]))
    return {label: _split(label, str(titles[label])) for label in results.labels}


def _split(label: str, title: str) -> tuple[str, list[str]]:
    """Returns the ordering or algorithm of a label, and its notes."""
    is_named = f"{label}, ".startswith(f"{title}, ")
    start = title if is_named else label.split(", ")[0]
    return start, [*filter(None, label[len(start) :].split(", "))]
