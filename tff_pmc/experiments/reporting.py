"""The reports on runs of an experiment, whether they were just made or lie on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Optional

from tff_pmc.experiments.experiment import Experiment
from tff_pmc.reports import FOR_ALL, FOR_ALL_SEEDS, REPORTS, SEED_REPORTS, plots
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import NotKeptError

RESULTS = "rounds_to_target"
"""The report that writes `results.csv`."""


def write(
    found: Experiment,
    runs: Sequence[Run],
    folder: str,
    *,
    strictly_above: Optional[bool] = None,
    results: bool = True,
) -> str:
    """Writes the tables and plots of an experiment's runs.

    These are `results.csv`, `accuracy.png`, `adjustment_RUN.png` of each adjusted run,
    `fairness.png`, and the experiment's own reports. What needs more of the runs than
    is kept of them is left out, and the text says so.

    Args:
        found: the experiment.
        runs: its runs, in the order of its rows.
        folder: where the files go, made if need be; they are replaced.
        strictly_above: whether a target is reached only above it; by default the runs'
            own rule.
        results: whether `results.csv` is written. Of runs that are kept without
            their clients it would be a copy of the one that is kept.

    Returns:
        The tables, as text for a terminal.

    Raises:
        RecordError: a record is broken, or the runs do not belong together.
    """
    os.makedirs(folder, exist_ok=True)
    shown = (*found.reports, *FOR_ALL)
    # Every experiment has the file, whatever it shows of it.
    names = shown if RESULTS in shown else (RESULTS, *shown)
    texts, left_out = [], []
    for name in names:
        if name == RESULTS and not results:
            continue
        try:
            text = REPORTS[name](runs, folder, strictly_above=strictly_above)
        except NotKeptError as error:
            left_out.append(f"{name} is left out: {error}")
        else:
            texts.append(text if name in shown else "")
    plots.write(runs, folder, what=label_word(found))
    return _joined([*texts, *left_out])


def write_seeds(
    found: Experiment, by_seed: Mapping[int, Sequence[Run]], folder: str
) -> str:
    """Writes the tables and plots of an experiment's runs under several seeds.

    Args:
        found: the experiment.
        by_seed: the runs of each seed, kept with their clients.
        folder: where the files go; they are replaced.

    Returns:
        The tables, as text for a terminal.

    Raises:
        RecordError: a record is broken, or a seed has other runs than the first.
    """
    plots.write_seeds(by_seed, folder, what=label_word(found))
    # The baseline alone shows how far seeds move it, and has no effect.
    alone = all(len(runs) == 1 for runs in by_seed.values())
    names = () if alone else found.seed_reports
    return _joined(
        SEED_REPORTS[name](by_seed, folder, baseline=found.baseline)
        for name in (*names, *FOR_ALL_SEEDS)
    )


def label_word(found: Experiment) -> str:
    """Returns the word for what the labels of an experiment's runs name."""
    return "system" if found.compares_systems else "priority"


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text.rstrip() for text in texts if text)
