"""Names of runs in figures: labels, titles, and parts of file names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from tff_pmc.record.results import Results
from tff_pmc.reports.figures.run_styles import figure_text, style_of
from tff_pmc.reports.statistics.row_titles import COMMON_NOTES
from tff_pmc.reports.statistics.run_notes import batch_text, data_caveat


def title_of(results: Results) -> str:
    """Returns a title for runs of one experiment: their data and how they trained.

    For runs without our settings (those of the published code, and those in memory) it
    is the data alone.
    """
    caveat, first = data_caveat(results), results.runs.iloc[0]
    data_name = str(first["data_name"])
    if pd.isna(first.get("experiment")) or pd.isna(first.get("local_epochs")):
        return ", ".join(filter(None, [data_name, caveat]))
    options = first["data_options"]
    clients = " or ".join(dict.fromkeys(map(str, results.runs["data_clients"])))
    dealt = options.get("partition", "")
    if dealt == "dirichlet":
        dealt += f"({options['dirichlet_alpha']:g})"
    partition = f"{dealt}, " if dealt else ""
    named = [str(first["experiment"]), data_name]
    if first.get("is_default_experiment") in (True,):  # It may be missing.
        named = named[1:]  # The user named none.
    subject = ": ".join(dict.fromkeys(named)) + (", " if len({*named}) > 1 else ": ")
    fraction = float(options.get("image_fraction", 1))
    part = f"{fraction:g} of the images, " if fraction < 1 else ""
    normalization = first.get("normalization", "sum")
    is_shared = "normalization" in results.runs and (
        results.runs["normalization"].nunique() == 1
    )
    is_named = is_shared and normalization != "sum"
    notes = [
        *[f"normalization {normalization}"] * is_named,
        *results.about.get(COMMON_NOTES, ()),
    ]
    other = "".join(f", {note}" for note in notes if note != f"{clients} clients")
    return (
        f"{subject}{part}{clients} clients, {partition}"
        f"E = {_values(results, 'local_epochs', '{:.0f}'.format)}, "
        f"B = {_values(results, 'batch_size', batch_text)}, "
        f"rate {_values(results, 'learning_rate', '{:g}'.format)}{other}"
        + (f"\n({caveat})" if caveat else "")
    )


def _values(results: Results, name: str, as_text: Callable[[float], str]) -> str:
    """Returns a setting of the runs; where they differ, all its values."""
    return " or ".join(dict.fromkeys(map(as_text, results.runs[name].dropna())))


def file_name(label: str) -> str:
    """Converts a label to a part of a file's name.

    Examples are `MD-DS-LD_backtracking` for `MD,DS,LD (backtracking)`, and
    `dual_criterion_3_clients` for an algorithm.
    """
    if label.split(",")[0].isupper():
        label = label.replace(",", "-")
        return re.sub(r"[^A-Za-z0-9-]+", "_", label).strip("_")
    return re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")


def label_of(run: pd.Series[Any]) -> str:
    """Returns the name of a run in figures, such as `LD,DS,MD, backtracking`.

    `run` is a row of `Results.runs`.
    """
    name, words = group_of(run)
    return ", ".join(filter(None, [style_of(name).label, figure_text(words)]))


def group_of(run: pd.Series[Any]) -> tuple[str, str]:
    """Splits the label of a run into its ordering or algorithm, and further words.

    `MD,DS,LD (backtracking)` is `MD,DS,LD` and `backtracking`; `Median, 3 clients` is
    `Median` and `3 clients`. A run without such words has an empty text.
    """
    label, note = str(run["label"]), str(run["note"])
    if note and label.endswith(f", {note}"):
        return label[: -len(note) - 2], note
    name, _, words = label.partition(" (")
    return name, words.rstrip(")")
