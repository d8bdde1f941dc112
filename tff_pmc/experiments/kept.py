"""The command that keeps results: runs as tables in a repository, with reports.

    python -m tff_pmc.experiments.kept keep RUNS results/reproduced/NAME --command="..."
    python -m tff_pmc.experiments.kept remake results/reproduced

`keep` writes what a repository needs of a folder of runs: `experiment.json`, one table
of each kind for all seeds, the reports on all of them, and those on the first seed.
`remake` regenerates the reports that exist; `git diff` then shows what changed.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import pandas as pd

from declared_settings import SettingError
from leaf_data.formats.data_files import expand_path
from tff_pmc.experiments import experiment_reports
from tff_pmc.experiments.experiment import EXPERIMENTS, get_experiment
from tff_pmc.record.kept_results import EXPERIMENT_JSON, ONLY_TESTED, keep_results
from tff_pmc.record.record_error import ClientsNotRecordedError, RecordError
from tff_pmc.record.results import RUN_KEY, Results, join_results, read_results
from tff_pmc.record.tables import TIMING
from tff_pmc.reports import output
from tff_pmc.reports.results_page import hours


def keep(
    folders: Sequence[str],
    goal: str,
    *,
    command: str = "",
    remark: str = "",
    only_tested: bool = False,
) -> None:
    """Keeps the runs of one or several folders in a new folder.

    Args:
        folders: the runs.
        goal: the new folder.
        command: the command that made the runs.
        remark: what readers must know about the runs.
        only_tested: whether only rounds with a test of each client are kept, and of
            the timings the sum: 20,000 rounds of five seeds are megabytes.

    Raises:
        RecordError: the goal already exists, a folder contains no run, two folders have
            a run with the same label and seed, or `only_tested` of runs that did not
            record the results of each client.
    """
    goal = expand_path(goal)
    if os.path.lexists(goal):
        raise RecordError(f"{goal} already exists: choose a new folder")
    parts = [read_results(folder) for folder in folders]
    results = join_results(parts) if len(parts) > 1 else parts[0]
    get_experiment(
        str(results.setting("experiment", ""))
    )  # An unknown one fails before anything is written.
    about: dict[str, Any] = {"command": command, "remark": remark}
    if only_tested or any(part.about.get(ONLY_TESTED) for part in parts):
        times = [hours(part) for part in parts]
        known = None if None in times else sum(time or 0 for time in times)
        about |= {ONLY_TESTED: True, "hours": known}
        results = _only_tested(results)
    if baseline := parts[0].about.get("baseline"):
        about["baseline"] = baseline
    keep_results(results, goal, about)
    write(read_results(goal), goal)


def _only_tested(results: Results) -> Results:
    """Returns results of the rounds after which each client was tested."""
    if not results.has_clients:
        raise ClientsNotRecordedError
    run_and_round = [*RUN_KEY, "round"]
    tested = pd.MultiIndex.from_frame(results.clients[run_and_round].drop_duplicates())

    def read(name: str) -> Optional[pd.DataFrame]:
        table: pd.DataFrame = getattr(results, name)
        if name == TIMING.name:
            return None
        return table[pd.MultiIndex.from_frame(table[run_and_round]).isin(tested)]

    return Results(results.runs, read, about=results.about)


def write(results: Results, goal: str) -> str:
    """Writes the reports on kept runs, over all seeds and on the first seed alone."""
    name = str(results.setting("experiment", ""))
    return experiment_reports.write(
        get_experiment(name), results, goal, per_seed=results.seeds[:1], page=False
    )


def kept_folders(path: str) -> Iterator[str]:
    """Yields the kept folders in a folder, or the folder itself if it is one."""
    path = expand_path(path)
    if os.path.exists(os.path.join(path, EXPERIMENT_JSON)):
        yield path
        return
    for file in sorted(pathlib.Path(path).glob(f"*/{EXPERIMENT_JSON}")):
        yield str(file.parent)


def remake(folder: str) -> list[str]:
    """Regenerates the reports of a kept folder; returns the changed files."""
    folder = expand_path(folder)
    results = read_results(folder)
    if not len(results.runs):  # Without runs the tables cannot be recomputed.
        return []
    changed = []
    with tempfile.TemporaryDirectory() as new_folder:
        write(results, new_folder)
        for path in sorted(pathlib.Path(new_folder).rglob("*.*")):
            name = str(path.relative_to(new_folder))
            there = pathlib.Path(folder, name)
            if there.exists() and there.read_bytes() != path.read_bytes():
                shutil.copyfile(path, there)
                changed.append(name)
    return changed


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tff_pmc.experiments.kept")
    commands = parser.add_subparsers(dest="what", required=True)
    keeping = commands.add_parser("keep", help="keep runs in a new folder")
    keeping.add_argument("runs", nargs="+", help="folders of runs")
    keeping.add_argument("goal", help="the new folder")
    keeping.add_argument("--command", default="", help="the command that made the runs")
    keeping.add_argument(
        "--remark", default="", help="what readers must know about the runs"
    )
    keeping.add_argument(
        "--only_tested",
        action="store_true",
        help="keep only rounds after which each client was tested",
    )
    again = commands.add_parser("remake", help="regenerate the kept reports")
    again.add_argument("folder", help="kept results, or one folder of them")
    again.add_argument("--format", choices=output.TABLE_FORMATS, default="markdown")
    again.add_argument("--figures", choices=output.FIGURE_FORMATS, default="png")
    options = parser.parse_args(arguments)
    list(EXPERIMENTS)  # They register their reports.
    try:
        if options.what == "keep":
            keep(
                options.runs,
                options.goal,
                command=options.command,
                remark=options.remark,
                only_tested=options.only_tested,
            )
            return 0
        with output.using(output.Output(options.format, options.figures)):
            for folder in kept_folders(options.folder):
                print(f"{folder}: {', '.join(remake(folder)) or 'nothing changed'}")
    except (RecordError, SettingError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
