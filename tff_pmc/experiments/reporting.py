"""The reports on runs of an experiment, whether they were just made or lie on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tff_pmc.experiments.experiment import Experiment
from tff_pmc.reports import (
    FOR_ALL,
    FOR_ALL_SEEDS,
    REPORTS,
    SEED_REPORTS,
    output,
    plots,
)
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import NotKeptError

RESULTS = "rounds_to_target"
"""The report that writes `results.csv`."""


def write(
    found: Experiment, runs: Sequence[Run], folder: str, *, results: bool = True
) -> str:
    """Writes the tables and plots of an experiment's runs.

    These are `results.csv`, `accuracy.png`, `adjustment_RUN.png` of each adjusted run,
    `fairness.png`, and the experiment's own reports. What needs more of the runs than
    is kept of them is left out, and the text says so.

    Args:
        found: the experiment.
        runs: its runs, in the order of its rows.
        folder: where the files go, made if need be; they are replaced.
        results: whether `results.csv` is written. Of runs that are kept without
            their clients it would be a copy of the one that is kept.

    Returns:
        The tables, as text for a terminal.

    Raises:
        RecordError: a record is broken, or the runs do not belong together.
    """
    shown = (*found.reports, *FOR_ALL)
    # Every experiment has the file, whatever it shows of it.
    names = shown if RESULTS in shown else (RESULTS, *shown)
    texts, left_out = [], []
    for name in names:
        if name == RESULTS and not results:
            continue
        try:
            text = output.write(REPORTS[name](runs), folder)
        except NotKeptError as error:
            left_out.append(f"{name} is left out: {error}")
        else:
            texts.append(text if name in shown else "")
    output.write(plots.report(runs, what=label_word(found)), folder)
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
    output.write(plots.seeds_report(by_seed, what=label_word(found)), folder)
    # The baseline alone shows how far seeds move it, and has no effect.
    alone = all(len(runs) == 1 for runs in by_seed.values())
    names = () if alone else found.seed_reports
    return _joined(
        output.write(SEED_REPORTS[name](by_seed, baseline=found.baseline), folder)
        for name in (*names, *FOR_ALL_SEEDS)
    )


def label_word(found: Experiment) -> str:
    """Returns the word for what the labels of an experiment's runs name."""
    return "system" if found.compares_systems else "priority"


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text.rstrip() for text in texts if text)
