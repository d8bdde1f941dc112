"""The rows of several folders together, each with the row it is compared with."""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Union

import pandas as pd

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results, join_results, read_results
from tff_pmc.reports.statistics import paired_effects
from tff_pmc.reports.statistics.row_titles import common_notes, with_short_labels
from tff_pmc.settings.row_names import FED_AVG

Runs = Union[Results, pd.DataFrame, str, "os.PathLike[str]"]
"""Runs, or the path of their folder, or the rounds of any program."""


def as_results(runs: Runs) -> Results:
    """Returns runs as results; see `results_of_rounds` for a data frame's columns."""
    if isinstance(runs, pd.DataFrame):
        return paired_effects.results_of_rounds(runs)
    return runs if isinstance(runs, Results) else read_results(runs)


def named_results(parts: Iterable[Runs] | Mapping[str, Runs]) -> dict[str, Results]:
    """Returns several results by name: that of the dict, the folder's, or A, B, ...

    Raises:
        RecordError: there are none.
    """
    if isinstance(parts, Mapping):
        named = {name: as_results(part) for name, part in parts.items()}
    else:
        of_parts = [as_results(part) for part in parts]
        names = [pathlib.PurePath(part.path).name for part in of_parts]
        if "" in names or len({*names}) < len(names):
            names = [chr(ord("A") + place) for place in range(len(of_parts))]
        named = dict(zip(names, of_parts))
    if not named:
        raise RecordError("there are no results: give one or more")
    return named


def join_folders(
    folders: Mapping[str, Results], baseline: str = ""
) -> tuple[Results, dict[str, str]]:
    """Joins the runs of folders; a label that several have ends in the folder's name.

    Notes that all rows of all folders share, such as `200 clients`, are removed from
    the labels.

    Args:
        folders: the runs of each folder, by the name that labels show: `LD [A]`.
        baseline: the label or name of the row that all others are compared with, in the
            first folder that has it. By default a row that several folders have is
            compared with the first one's, and each other row with FedAvg, or with the
            baseline of the first folder.

    Returns:
        The runs, and label -> the label of its baseline.

    Raises:
        RecordError: no folder has the baseline.
    """
    notes = set.intersection(*({*common_notes(part)} for part in folders.values()))
    sides = {name: with_short_labels(part, notes) for name, part in folders.items()}
    counts: dict[str, int] = {}
    for label in itertools.chain(*(side.labels for side in sides.values())):
        counts[label] = counts.get(label, 0) + 1
    parts, first_of, origin = {}, dict[str, str](), {}
    for name, side in sides.items():
        for label in side.labels:
            marked = f"{label} [{name}]" if counts[label] > 1 else label
            parts[marked], origin[marked] = side.only(label=label), label
            first_of.setdefault(label, marked)
    chosen = _find_baseline(sides, baseline)
    base_of = {
        marked: first_of[label]
        if counts[label] > 1 and not baseline
        else first_of[chosen]
        for marked, label in origin.items()
    }
    joined = join_results(parts)
    joined.about.update(next(iter(sides.values())).about)
    return joined, base_of


def _find_baseline(sides: Mapping[str, Results], baseline: str) -> str:
    """Returns the label of the baseline in the first folder that has it."""
    names = [baseline] if baseline else [FED_AVG, ""]
    for name, side in itertools.product(names, sides.values()):
        try:
            bases = paired_effects.baselines(side, name)
        except RecordError:
            continue
        return next(iter(bases.values()))
    labels = ", ".join(f"{name} has {'; '.join(s.labels)}" for name, s in sides.items())
    which = "neither folder" if len(sides) == 2 else "none of the folders"
    raise RecordError(f"the baseline {baseline} is in {which}: {labels}")
