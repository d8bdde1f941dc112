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
        settings: what its runs have to have; others decide nothing.
        table: the published table that they are compared with.
        hours: of one core, for the runs that would decide its claims; 0: not known.
        needs: what they need and is not available; empty for nothing.
    """

    settings: Mapping[str, Any]
    table: str = ""
    hours: float = 0
    needs: str = ""


_DECLARED: dict[str, PaperExperiment] = {}


def declare(experiment: str, settings: Mapping[str, Any], **known: Any) -> None:
    """Declares a `PaperExperiment`, with its fields `known`."""
    _DECLARED[experiment] = PaperExperiment(settings, **known)


def declared(experiment: str) -> PaperExperiment:
    """Returns what is declared of an experiment.

    Raises:
        RecordError: nothing is, and there is no flag file of it.
    """
    if experiment not in _DECLARED and experiment not in flag_files():
        known = ", ".join(sorted({*_DECLARED, *flag_files()}))
        raise RecordError(f"no experiment {experiment!r}: there are {known}")
    return _DECLARED.get(experiment, PaperExperiment({}))


@functools.cache
def _files_in(places: tuple[Any, ...]) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for folder in places:
        for path in sorted(folder.glob("*.flags")):
            lines = path.read_text(encoding="utf-8").splitlines()
            flags = dict(line.partition("=")[::2] for line in lines)
            own = folder == project_files.folder(project_files.FLAG_FILES)
            file = f"experiments/{path.name}" if own else path.name
            rounds = float(flags.get("--rounds", math.inf))
            found.setdefault(flags.get("--experiment", ""), {})[file] = rounds
    return found


def flag_files() -> Mapping[str, Mapping[str, float]]:
    """Returns experiment -> its flag files -> their rounds, infinite if not set."""
    own = project_files.folder(project_files.FLAG_FILES)
    return _files_in(tuple(folders(own)))


def command(experiment: str, flags: str = "") -> str:
    """Returns the command of the experiment's flag file, of several the longest.

    With more flags it has these, too; they may have other seeds than the first five.
    """
    files = flag_files().get(experiment, {})
    what = f"--experiment={experiment} --priority=all"
    if files:
        what = f"--flagfile={max(files, key=lambda name: files[name])}"
    seeds = "" if "--seeds=" in flags else "--seeds=0,1,2,3,4"
    parts = [".venv/bin/python run_experiments.py", what, seeds, "--data_dir=DIR"]
    return " ".join(filter(None, [*parts, flags]))
