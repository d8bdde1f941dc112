"""The experiments of the papers: their settings, flag files, commands and cost."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tff_pmc import project_files
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.paper import folders


class PaperExperiment(NamedTuple):
    """What a paper claims of an experiment, and what its runs cost here.

    Attributes:
        settings: the settings that its runs need to decide a claim.
        table: the published table that the runs are compared with.
        hours: hours of one core for the runs that would decide its claims; 0 if
            unknown.
        needs: what the runs need and we do not have; empty for nothing.
    """

    settings: Mapping[str, Any]
    table: str = ""
    hours: float = 0
    needs: str = ""


_DECLARED: dict[str, PaperExperiment] = {}


def declare_experiment(
    experiment: str, settings: Mapping[str, Any], **fields: Any
) -> None:
    """Declares a `PaperExperiment`, given by its fields."""
    _DECLARED[experiment] = PaperExperiment(settings, **fields)


def declared_experiment(experiment: str) -> PaperExperiment:
    """Returns an experiment's declaration; an empty one if it has only a flag file.

    Raises:
        RecordError: the experiment has neither a declaration nor a flag file.
    """
    if experiment not in _DECLARED and experiment not in flag_files():
        names = ", ".join(sorted({*_DECLARED, *flag_files()}))
        raise RecordError(f"unknown experiment {experiment!r}; known: {names}")
    return _DECLARED.get(experiment, PaperExperiment({}))


@functools.cache
def _flag_files_in(paths: tuple[Any, ...]) -> Mapping[str, Mapping[str, float]]:
    files: dict[str, dict[str, float]] = {}
    for folder in paths:
        is_ours = folder == project_files.folder(project_files.FLAG_FILES)
        for path in sorted(folder.glob("*.flags")):
            lines = path.read_text(encoding="utf-8").splitlines()
            flags = dict(line.partition("=")[::2] for line in lines)
            file = f"experiments/{path.name}" if is_ours else path.name
            rounds = float(flags.get("--rounds", math.inf))
            files.setdefault(flags.get("--experiment", ""), {})[file] = rounds
    return files


def flag_files() -> Mapping[str, Mapping[str, float]]:
    """Returns experiment -> its flag files -> their rounds, infinite if not set."""
    return _flag_files_in(
        tuple(folders(project_files.folder(project_files.FLAG_FILES)))
    )


def command(experiment: str, flags: str = "") -> str:
    """Returns the command of the experiment's flag file, the longest if it has several.

    `flags` are added, and may replace the first five seeds by others.
    """
    files = flag_files().get(experiment, {})
    choice = f"--experiment={experiment} --priority=all"
    if files:
        choice = f"--flagfile={max(files, key=lambda name: files[name])}"
    seeds = "" if "--seeds=" in flags else "--seeds=0,1,2,3,4"
    parts = [".venv/bin/python run_experiments.py", choice, seeds, "--data_dir=DIR"]
    return " ".join(filter(None, [*parts, flags]))
