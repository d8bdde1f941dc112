"""Which reports an experiment has: writes them for runs in memory or on disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Optional

from leaf_data.formats.data_files import expand_path
from tff_pmc.experiments.experiment import Experiment, Variant
from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.record_error import ClientsNotRecordedError, NotRecordedError
from tff_pmc.record.results import Results
from tff_pmc.reports import BEYOND_PAPERS, FOR_ALL, REPORTS, Report, output
from tff_pmc.reports.figures import plots, run_labels
from tff_pmc.reports.statistics import paired_statistics
from tff_pmc.reports.statistics.row_titles import row_names, with_short_labels
from tff_pmc.reports.statistics.run_summary import results_metric
from tff_pmc.settings.row_names import find_baseline

RESULTS = "rounds_to_target"
"""The report that writes `results.csv`."""


def write(
    experiment: Experiment,
    results: Results,
    folder: str,
    per_seed: Optional[Sequence[int]] = None,
    *,
    page: bool = True,
) -> str:
    """Writes the tables and plots of an experiment's runs, under one seed or several.

    For several seeds it writes the reports over seeds, which compare the runs with
    `results.baseline`, else with the experiment's baseline, else with the first run.
    Existing files are replaced.

    Args:
        experiment: the experiment, which names its reports.
        results: the runs.
        folder: the folder to write into; it is created if it does not exist.
        per_seed: the seeds that also get reports of their own, in `seed_N/`; by default
            all of several seeds.
        page: whether to write also `report.html`, the page of all reports.

    Returns:
        The tables as text for a terminal; for several seeds those over all seeds.

    Raises:
        RecordError: the seeds do not have the same runs.
    """
    seeds, folder = results.seeds, expand_path(folder)
    if "row_notes" in results.runs and not any(row.text for row in experiment.rows):
        experiment = experiment.with_rows([*map(Variant, results.labels)])
    if not experiment.paper:  # A paper's tables have what it prints.
        results = with_short_labels(results)
    results = _with_baseline(experiment, results)
    if len(seeds) > 1:
        paired_statistics.check_paired(results)  # Before anything is written.
        for seed in seeds if per_seed is None else per_seed:
            place = os.path.join(folder, f"seed_{seed}")
            _write(experiment, results.only(seed=seed), place, page)
    return _write(experiment, results, folder, page)


def label_word(experiment: Experiment) -> str:
    """Returns what the labels of the runs name: an algorithm or a priority."""
    return "algorithm" if experiment.compares_algorithms else "priority"


def _write(experiment: Experiment, results: Results, folder: str, page: bool) -> str:
    seeds, shown = results.seeds, (*experiment.reports, *FOR_ALL)
    about = run_labels.title_of(results.only(seed=seeds[0]))
    if len(seeds) > 1:
        about = f"{about}, {len(seeds)} seeds"
    reports = {"curves": plots.report(results, what=label_word(experiment))}
    reports.update(_reports(shown, results))
    for report in reports.values():
        output.write(report, folder, about)
    # Every experiment has results.csv, even if it does not show it.
    if RESULTS not in shown:
        output.write(_reports([RESULTS], results)[RESULTS], folder, about)
    if page and output.current().figures != output.NO_FIGURES:
        from tff_pmc.reports.tables import html_report  # It imports Jinja2.

        text = html_report.html(
            results, reports, about, results.about.get("command", "")
        )
        path = os.path.join(folder, html_report.FILE)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    texts = [report.text.rstrip() for report in reports.values()]
    return "\n\n".join(filter(None, texts))


def _with_baseline(experiment: Experiment, results: Results) -> Results:
    """Returns the runs with the baseline that they name, or the first that is there."""
    rows = row_names(results)
    candidates = (results.about.get("baseline"), experiment.baseline, "FedAvg")
    baseline = results.labels[0]
    for name in filter(None, candidates):
        with contextlib.suppress(ValueError):
            baseline = find_baseline(rows, str(name))
            break
    chosen = results.only()
    chosen.about["baseline"] = baseline
    return chosen


def _reports(names: Sequence[str], results: Results) -> dict[str, Report]:
    """Returns the reports; for each reason, one report lists those that were not made.

    Its name is the reason.
    """
    of_accuracy = results_metric(results) is ACCURACY
    reports: dict[str, Report] = {}
    missing: dict[str, list[str]] = {}
    for name in names:
        if name not in BEYOND_PAPERS and not of_accuracy:
            why = "these are regression runs, which record losses instead of accuracies"
            missing.setdefault(why, []).append(name)
            continue
        if name == RESULTS and not results.has_clients:  # The report has the rest.
            missing.setdefault(str(ClientsNotRecordedError()), []).append(name)
        try:
            reports[name] = REPORTS[name](results)
        except NotRecordedError as error:
            missing.setdefault(str(error), []).append(name)
    for why, report_names in missing.items():
        reports[why] = Report(f"Not made: {', '.join(report_names)} ({why}).")
    return reports
