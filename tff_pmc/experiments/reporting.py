"""The reports on runs of an experiment, whether they were just made or lie on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Optional

from tff_pmc.experiments.experiment import Experiment
from tff_pmc.record.metrics import ACCURACY
from tff_pmc.record.record_error import ClientsLeftOutError
from tff_pmc.record.results import Results
from tff_pmc.reports import (
    BEYOND_PAPERS,
    FOR_ALL,
    REPORTS,
    output,
    paired,
    plots,
    summary,
)

RESULTS = "rounds_to_target"
"""The report that writes `results.csv`."""


def write(
    found: Experiment,
    results: Results,
    folder: str,
    alone: Optional[Sequence[int]] = None,
) -> str:
    """Writes the tables and plots of an experiment's runs, under one seed or several.

    Of several seeds the reports over seeds are written, which compare the runs with
    `results.baseline`; where it is not among them with the experiment's, and else with
    the first. Files of the same names are replaced.

    Args:
        found: the experiment, which names its reports.
        results: the runs.
        folder: where to; it is made if need be.
        alone: of several seeds those whose own reports are written, too, into
            `seed_N/`; by default all.

    Returns:
        The tables as text for a terminal, of several seeds those over seeds.

    Raises:
        RecordError: the seeds do not have the same runs.
    """
    seeds = results.seeds
    results = _with_baseline(found, results)
    if len(seeds) > 1:
        paired.check_paired(results)  # What is no pair is refused first.
        for seed in seeds if alone is None else alone:
            place = os.path.join(folder, f"seed_{seed}")
            _write(found, results.only(seed=seed), place)
    return _write(found, results, folder)


def label_word(found: Experiment) -> str:
    """Returns the word for what the labels of an experiment's runs name."""
    return "algorithm" if found.compares_algorithms else "priority"


def _write(found: Experiment, results: Results, folder: str) -> str:
    seeds, shown = results.seeds, (*found.reports, *FOR_ALL)
    about = plots.title_of(results.only(seed=seeds[0]))
    if len(seeds) > 1:
        about = f"{about}, {len(seeds)} seeds"
    output.write(plots.report(results, what=label_word(found)), folder)
    # Every experiment has the file, whatever it shows of it.
    if RESULTS not in shown:
        _written(RESULTS, results, folder, about)
    texts = [_written(name, results, folder, about) for name in shown]
    return "\n\n".join(text.rstrip() for text in texts if text)


def _with_baseline(found: Experiment, results: Results) -> Results:
    rows = [*results.runs["title" if found.compares_algorithms else "label"]]
    asked = (results.about.get("baseline"), found.baseline, rows[0])
    chosen = results.only()
    chosen.about["baseline"] = next(name for name in asked if name in rows)
    return chosen


def _written(name: str, results: Results, folder: str, about: str) -> str:
    """Writes a report, or returns what it needs and the runs did not record."""
    if name not in BEYOND_PAPERS and summary.measure_of(results) is not ACCURACY:
        return f"There is no {name}: the runs have no accuracy, as labels are numbers."
    try:
        return output.write(REPORTS[name](results), folder, about)
    except ClientsLeftOutError as error:
        return f"There is no {name}: {error}."
