"""The kept runs that claims are about, by experiment, and those that count of a seed.

results = KeptResults(read_kept("results/reproduced"))
results.mnist_noniid.by_seed(["LD", "DS"])
"""

from __future__ import annotations

import collections
import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import pandas as pd

from tff_pmc import project_files
from tff_pmc.models import MODELS
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import EXPERIMENT, KEY, Results, read_results
from tff_pmc.reports.conditions import data_caveat
from tff_pmc.settings.papers import folders

_AS_PRINTED = {"protocol": "paper", "normalization": "sum"}


class Declared(NamedTuple):
    """What a paper says of an experiment, and what its runs cost here.

    Attributes:
        settings: what its runs have to have; others decide nothing.
        table: the published table that they are compared with.
        hours: of one core, for the runs that would decide its claims; 0: not known.
        needs: what they need and could not be had; empty for nothing.
    """

    settings: Mapping[str, Any]
    table: str = ""
    hours: float = 0
    needs: str = ""


_DECLARED: dict[str, Declared] = {}


def declare(experiment: str, settings: Mapping[str, Any], **known: Any) -> None:
    """Declares what a paper says of an experiment; `known` is of `Declared`."""
    _DECLARED[experiment] = Declared(settings, **known)


def declared(experiment: str) -> Declared:
    """Returns what is declared of an experiment.

    Raises:
        AttributeError: nothing is, and there is no flag file of it.
    """
    if experiment not in _DECLARED and experiment not in flag_files():
        known = ", ".join(sorted({*_DECLARED, *flag_files()}))
        raise AttributeError(f"no experiment {experiment!r}: there are {known}")
    return _DECLARED.get(experiment, Declared({}))


@functools.cache
def _files_in(places: tuple[Any, ...]) -> Mapping[str, Mapping[str, float]]:
    """Returns the flag files of each experiment, and their rounds (inf: none set)."""
    found: dict[str, dict[str, float]] = {}
    for folder in places:
        for path in sorted(folder.glob("*.flags")):
            name, rounds = "", math.inf
            for line in path.read_text(encoding="utf-8").splitlines():
                flag, _, value = line.partition("=")
                name = value if flag == "--experiment" else name
                rounds = float(value) if flag == "--rounds" else rounds
            own = folder == project_files.folder(project_files.FLAG_FILES)
            file = f"experiments/{path.name}" if own else path.name
            found.setdefault(name, {})[file] = rounds
    found.pop("", None)
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


def read_kept(path: str) -> dict[str, Results]:
    """Returns the kept folders of results in a folder by name, or the folder itself."""
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise RecordError(f"{path} is no folder") from error
    kept = [n for n in names if os.path.exists(os.path.join(path, n, EXPERIMENT))]
    if kept and EXPERIMENT not in names:
        return {name: read_results(os.path.join(path, name)) for name in kept}
    return {os.path.basename(os.path.abspath(path)): read_results(path)}


class Measured:
    """The results of one folder, and what was measured of them, each once."""

    def __init__(self, results: Results) -> None:
        """Takes the results."""
        self.results = results
        self._found: dict[Any, Any] = {}

    def of(self, measure: Callable[..., Any], *args: Any) -> Any:
        """Returns what a function makes of the results and more arguments."""
        if (measure, *args) not in self._found:
            self._found[(measure, *args)] = measure(self.results, *args)
        return self._found[(measure, *args)]


class Run:
    """One kept run: its seed, its label, and its row of `Results.runs`."""

    def __init__(self, folder: Measured, row: Mapping[str, Any]) -> None:
        """Takes the folder that it is in, and its row."""
        self.folder, self.row = folder, row
        self.seed, self.label = int(row["seed"]), str(row["label"])

    def setting(self, name: str, default: Any = None) -> Any:
        """Returns a setting, or the default where it is not recorded."""
        value = self.row.get(name, default)
        return default if isinstance(value, float) and value != value else value

    def has(self, settings: Mapping[str, Any]) -> bool:
        """Returns whether it has settings, of which an older record may lack some."""
        return all(self.setting(name, own) == own for name, own in settings.items())

    def value(self, measure: Callable[..., pd.Series[float]], *args: Any) -> float:
        """Returns a measure of it; the function gives a series by seed and label."""
        return float(self.folder.of(measure, *args)[self.seed, self.label])

    def other(self, label: str) -> Run:
        """Returns the run of another label of the same folder and seed."""
        return Run(self.folder, {**self.row, "label": label})

    def table(self, name: str) -> pd.DataFrame:
        """Returns its rows of a table, `cohort`; none where they are not recorded."""
        none = getattr(self.folder.results, name).iloc[:0]
        found: pd.DataFrame = self.folder.of(_by_run, name).get(
            (self.seed, self.label), none
        )
        return found

    @property
    def length(self) -> int:
        """The number of its recorded rounds."""
        return int(self.value(_lengths))

    @property
    def clients(self) -> int:
        """The number of clients of its data."""
        return int(self.row["data_clients"])

    @property
    def data_caveat(self) -> str:
        """The source of data that is incomplete, empty for none."""
        return str(self.folder.of(data_caveat))

    @property
    def factors(self) -> Optional[str]:
        """What the factors of products were rounded to; None for float32."""
        versions = self.row["versions"]
        if "gpu" in versions:  # Where oneDNN has no part in the training.
            return "TF32" if versions.get("gpu_factors") == "tf32" else None
        mode: Optional[str] = versions.get("onednn_fpmath_mode")
        return mode

    @functools.cached_property
    def image_fraction(self) -> float:
        """The part of the images that its data set has; 1 for all of them."""
        return float(self.setting("data_options", {}).get("image_fraction", 1))

    @functools.cached_property
    def other_reading(self) -> str:
        """What its network has and its paper's text has not; empty for nothing."""
        model = self.setting("model", "mnist_cnn")  # The oldest records name none.
        relu = model in MODELS and self.setting("conv_activation") == "relu"
        paper_has = relu and MODELS[model]().conv_activation == "relu"
        return "ReLU after the convolutions" if relu and not paper_has else ""


def _lengths(results: Results) -> pd.Series[int]:
    return results.length


def _by_run(results: Results, name: str) -> dict[tuple[int, str], pd.DataFrame]:
    return dict(iter(getattr(results, name).groupby(KEY, sort=False)))


def label_of(run: Run) -> str:
    """Returns the label of a run."""
    return run.label


class Runs:
    """The kept runs of an experiment, and how a claim names them.

    `table` is the published table that they are compared with, if any.
    """

    def __init__(
        self,
        name: str,
        runs: Sequence[Run],
        name_of: Callable[[Run], str] = label_of,
        table: str = "",
    ) -> None:
        """Takes the runs, and their names by the claim, empty to leave one out."""
        self.name, self.runs, self.name_of, self.table = name, runs, name_of, table

    def named(self, name_of: Callable[[Run], str]) -> Runs:
        """Returns the runs by other names."""
        return Runs(self.name, self.runs, name_of, self.table)

    def by_seed(
        self, labels: Sequence[str], least: int = 0
    ) -> dict[int, dict[str, Run]]:
        """Returns label -> run for each seed that has a run of every label.

        Only runs of one folder are compared: they were made by one command. Runs of
        another reading than the paper's count where there are no others. Of two folders
        that have a seed the one with more of the data set counts, then that with
        `least` rounds or more of them, then that with more seeds, then that with longer
        runs, then that with more of them. A run that ended early, as when all of its
        clients diverged, is left out: such a seed shows nothing of rounds. Where no
        seed has all labels, a `RecordError` names them.
        """
        runs = [r for r in self.runs if r.length >= r.setting("rounds", 0)]
        of_paper = [run for run in runs if not run.other_reading]
        if 0 < len(of_paper) < len(runs):
            with contextlib.suppress(RecordError):
                only = Runs(self.name, of_paper, self.name_of, self.table)
                return only.by_seed(labels, least)
        found: dict[tuple[int, Measured], dict[str, Run]] = {}
        for run in runs:
            if name := self.name_of(run):
                found.setdefault((run.seed, run.folder), {}).setdefault(name, run)
        seeds = collections.Counter(folder for _, folder in found)
        chosen: dict[int, dict[str, Run]] = {}
        worth: dict[int, tuple[float, ...]] = {}
        for (seed, folder), named in sorted(found.items(), key=lambda one: one[0][0]):
            part = min(run.image_fraction for run in named.values())
            length = min(run.length for run in named.values())
            mine = part, min(length, least), seeds[folder], length, len(named)
            if {*labels} <= {*named} and mine > worth.get(seed, ()):
                chosen[seed], worth[seed] = named, mine
        if not chosen:
            seen = {name for named in found.values() for name in named}
            missing = [label for label in labels if label not in seen]
            none = f"no folder of runs has all of {_listed(labels)}"
            raise RecordError(f"not run: {_listed(missing)}" if missing else none)
        return chosen


def _listed(labels: Sequence[str]) -> str:
    """Returns labels as words; semicolons, because orderings have commas."""
    *others, last = labels
    return f"{'; '.join(others)} and {last}" if others else last


class KeptResults:
    """All kept results, by experiment: `results.mnist_noniid`.

    Runs of another method than the papers' are left out, whatever their labels: those
    that normalize otherwise, and those by the published code's protocol; and, of an
    experiment that a paper declares (`declare`), those whose settings are not
    the paper's. `asked` has the experiments that were looked up.
    """

    def __init__(self, every: Iterable[Results]) -> None:
        """Takes the results of each folder."""
        self.asked: dict[str, Runs] = {}
        self._runs: dict[str, list[Run]] = {}
        for results in every:
            folder = Measured(results)
            for row in results.runs.to_dict("records"):
                run = Run(folder, row)
                if run.has(_AS_PRINTED):
                    self._runs.setdefault(run.setting("experiment", ""), []).append(run)

    def fresh(self) -> KeptResults:
        """Returns the same results, of which nothing was looked up."""
        found = KeptResults([])
        found._runs = self._runs
        return found

    def of(self, experiment: str, settings: Mapping[str, Any], table: str = "") -> Runs:
        """Returns the runs of an experiment that have the settings."""
        runs = [run for run in self._runs.get(experiment, []) if run.has(settings)]
        self.asked[experiment] = Runs(experiment, runs, table=table)
        return self.asked[experiment]

    def __getattr__(self, experiment: str) -> Runs:
        """Returns the runs of an experiment that have the paper's settings."""
        of_paper = declared(experiment)
        return self.of(experiment, of_paper.settings, of_paper.table)
