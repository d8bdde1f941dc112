"""The reports on runs of an experiment, whether they were just made or lie on disk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from tff_pmc.experiments.experiment import Experiment
from tff_pmc.record.read import Run
from tff_pmc.record.record_error import ClientsLeftOutError
from tff_pmc.reports import (
    FOR_ALL,
    FOR_ALL_SEEDS,
    REPORTS,
    SEED_REPORTS,
    Report,
    output,
    paired,
    plots,
)

RESULTS = "rounds_to_target"
"""The report that writes `results.csv`."""


def write(found: Experiment, runs: Sequence[Run], folder: str) -> str:
    """Writes the tables and plots of an experiment's runs, in the order of its rows.

    Files of the same names are replaced. Returns the tables as text for a terminal.
    """
    paired.by_label(runs)  # Tables have one row for a label.
    shown = (*found.reports, *FOR_ALL)
    # Every experiment has the file, whatever it shows of it.
    names = shown if RESULTS in shown else (RESULTS, *shown)
    texts, about = [], plots.title_of(runs)
    for name in names:
        text = _written(name, functools.partial(REPORTS[name], runs), folder, about)
        texts.append(text if name in shown else "")
    output.write(plots.report(runs, what=label_word(found)), folder)
    return _joined(texts)


def write_seeds(
    found: Experiment,
    by_seed: Mapping[int, Sequence[Run]],
    folder: str,
    baseline: str = "",
) -> str:
    """Does the same with an experiment's runs under several seeds.

    They are held against the baseline; by default the experiment's, and the first where
    that is not among them.
    """
    paired.labels(by_seed)  # What is no pair is refused first.
    first = next(iter(by_seed.values()))
    rows = [run.system if found.compares_systems else run.label for run in first]
    held = baseline or found.baseline
    if held not in rows:
        held = rows[0]
    output.write(plots.seeds_report(by_seed, what=label_word(found)), folder)
    # The baseline alone shows how far seeds move it, and has no effect.
    alone = all(len(runs) == 1 for runs in by_seed.values())
    names = () if alone else found.seed_reports
    about = f"{plots.title_of(first)}, {len(by_seed)} seeds"
    return _joined(
        _written(
            name,
            functools.partial(SEED_REPORTS[name], by_seed, baseline=held),
            folder,
            about,
        )
        for name in (*names, *FOR_ALL_SEEDS)
    )


def label_word(found: Experiment) -> str:
    """Returns the word for what the labels of an experiment's runs name."""
    return "system" if found.compares_systems else "priority"


def _written(name: str, make: Callable[[], Report], folder: str, about: str) -> str:
    """Writes a report, or says that it needs the clients that are not on record."""
    try:
        return output.write(make(), folder, about)
    except ClientsLeftOutError as error:
        return f"There is no {name}: {error}."


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text.rstrip() for text in texts if text)
