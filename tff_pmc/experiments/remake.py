"""Makes the tables and figures of kept runs again, from their records.

    python -m tff_pmc.experiments.remake results/reproduced
    python -m tff_pmc.experiments.remake results/reproduced/quickstart --output_dir=DIR

Without `--output_dir`, the tables and figures that are kept are replaced, and nothing
is added to them.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Optional

from leaf_data.declare import SettingError
from tff_pmc.experiments import reporting
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment, experiment
from tff_pmc.record import files
from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import output
from tff_pmc.reports.kept import KeptFolder, kept_folders
from tff_pmc.reports.read_folder import baseline_of, missing

_SEED = re.compile(r"seed_([0-9]+)")


def remake(kept: KeptFolder, folder: str) -> list[str]:
    """Writes what the records of a kept folder suffice for; returns its texts."""
    texts: list[str] = []
    by_seed: dict[int, list[Run]] = {}
    for name, runs in kept.runs_by_folder().items():
        goal = os.path.join(folder, name)
        place = os.path.join(kept.path, name)
        for label in missing(place, runs):
            raise RecordError(f"{place}: its run of {label} is not there or not whole")
        texts.append(reporting.write(_experiment(runs), runs, goal))
        seed = _SEED.fullmatch(name)
        if seed:
            by_seed[int(seed[1])] = runs
    if len(by_seed) > 1:
        found = _experiment(by_seed[min(by_seed)])
        baseline = baseline_of(kept.path)
        texts.append(reporting.write_seeds(found, by_seed, folder, baseline))
    return [text for text in texts if text]


def _experiment(runs: Sequence[Run]) -> Experiment:
    return experiment(runs[0].settings["experiment"])


def replace(kept: KeptFolder) -> list[str]:
    """Makes what is kept again in its place, and adds nothing; returns the names."""
    files.check_plain(kept.path)
    with tempfile.TemporaryDirectory() as made:
        remake(kept, made)
        names = [
            name for name in kept.products() if os.path.exists(os.path.join(made, name))
        ]
        for name in names:
            with files.replacing(os.path.join(kept.path, name)) as file:
                file.write(_bytes(made, name))
    return names


def differences(kept: KeptFolder) -> dict[str, str]:
    """Returns the kept tables that are not what the records give, and why.

    Those that the records do not suffice for are left out where the list of kept
    results says so (`KeptFolder.as_made`), and are differences elsewhere.
    """
    found = {}
    forms = output.Output(figures=output.NO_FIGURES)
    with tempfile.TemporaryDirectory() as made, output.using(forms):
        remake(kept, made)
        for name in kept.products():
            if name.endswith((".png", ".pdf")):
                continue
            there = os.path.exists(os.path.join(made, name))
            if name in kept.as_made:
                if there:
                    found[name] = "is said to be as it was made, and can be made again"
            elif not there:
                found[name] = "cannot be made from the records that are kept"
            elif _bytes(made, name) != _bytes(kept.path, name):
                found[name] = "is not what the records give"
    return found


def _bytes(folder: str, name: str) -> bytes:
    return pathlib.Path(folder, name).read_bytes()


def main(arguments: Optional[Sequence[str]] = None) -> Any:
    """Carries out the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tff_pmc.experiments.remake",
        description="Makes the tables and figures of kept runs again.",
    )
    parser.add_argument("folder", help="kept results, or one folder of them")
    parser.add_argument("--output_dir", default="", help="where to; else in place")
    parser.add_argument("--format", choices=output.TABLES, default="markdown")
    parser.add_argument("--figures", choices=output.FIGURES, default="png")
    given = parser.parse_args(arguments)
    forms = output.Output(given.format, given.figures)
    list(EXPERIMENTS)  # Before the first table: they register their reports.
    try:
        with output.using(forms):
            for kept in kept_folders(given.folder):
                if given.output_dir:
                    made = os.path.join(given.output_dir, kept.name)
                    files.make_empty_folder(made)
                    remake(kept, made)
                    print(kept.name)
                else:
                    print(f"{kept.name}: {', '.join(replace(kept)) or 'nothing'}")
    except (RecordError, SettingError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyError as error:
        print(f"{parser.prog}: the records lack the column {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
