"""Reads run folders back."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from leaf_data.formats import places
from tff_pmc.record import run_json
from tff_pmc.record.columns import SCHEMAS
from tff_pmc.record.plain_files import MOST_OF_RUN
from tff_pmc.record.predictions import Predictions, path_of, read_predictions
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.row_checks import check_totals, check_weights
from tff_pmc.record.schema import has_table, read_csv
from tff_pmc.settings.run_settings import SYSTEMS

BASELINE = "DS"
"""The label of the baseline, federated averaging, that orderings are held against."""

# The settings by which the runs of an experiment are told apart.
_OF_ROWS = ("system", "priority", "criteria", "adjustment")


@dataclasses.dataclass(frozen=True)
class Run:
    """One run, as its folder has it.

    Attributes:
        label: its ordering, for example `LD,DS,MD`, or other score; of an adjusted run
            the initial ordering and the policy, `MD,DS,LD (backtracking)`. Where
            systems are compared, the system and what sets its data apart.
        info: the contents of `run.json`.
        rounds: the table `rounds.csv`.
        weights: the table `weights.csv`.
        correct: the number of correctly classified test examples, int
            [rounds, clients]; of no clients where none are on record.
        examples: the number of test examples of each client, int [clients].
        adjustment: the policy of the search for an ordering: `fixed` (no search),
            `backtracking` or `best_of_all`.
        candidates: the table `candidates.csv`, a row for each ordering tested, in the
            order of the tests; None where nothing was tested.
        cohort: the table `cohort.csv`, the raw criteria of each round's clients; None
            where it is not there.
        path: the run's folder.
        reach: the rule by which it reaches a target, `at_least` or `above`; empty
            where there is none on record, as of the published code's runs.
    """

    label: str
    info: dict[str, Any]
    rounds: pd.DataFrame
    weights: pd.DataFrame
    correct: npt.NDArray[np.int64]
    examples: npt.NDArray[np.int64]
    adjustment: str = "fixed"
    candidates: Optional[pd.DataFrame] = None
    cohort: Optional[pd.DataFrame] = None
    path: str = ""
    reach: str = "at_least"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by flag; one that the file lacks is a `RecordError`."""
        found = run_json.by_flag(self.info.get("settings", {}))
        return run_json.Recorded(found, f"{self.path}: run.json has settings, and")

    @property
    def data(self) -> Mapping[str, Any]:
        """The part of `run.json` that describes the data; what it lacks is an error."""
        data = self.info.get("data", {})
        return run_json.Recorded(data, f"{self.path}: the data in run.json")

    @property
    def system(self) -> str:
        """The title of its system, such as `FedAvg`."""
        return str(self.info.get("system") or self.label)

    @property
    def note(self) -> str:
        """The words that tell it from the same system's runs on other data, or none."""
        return str(self.info.get("note", ""))

    @property
    def targets(self) -> tuple[int, ...]:
        """The target accuracies on record, percent."""
        return tuple(self.settings.get("targets", ()))

    @property
    def accuracy(self) -> npt.NDArray[np.float64]:
        """The accuracy over all clients' test examples, [rounds]."""
        correct, examples = self.totals
        accuracy: npt.NDArray[np.float64] = correct / examples
        return accuracy

    @property
    def totals(self) -> tuple[npt.NDArray[np.int64], int]:
        """All clients' correct test examples, [rounds], and their test examples."""
        if self.examples.size:
            return self.correct.sum(axis=1), int(self.examples.sum())
        return self.rounds["correct"].to_numpy(), int(self.rounds["examples"].iloc[0])

    def predictions(self, round_num: int) -> Predictions:
        """Returns one round's predictions; other counts than on record are refused."""
        found = read_predictions(self.path, round_num)
        counts, sizes = found.correct, np.diff(found.row_splits)
        name, expected = "clients.csv", self.correct[round_num - 1]
        examples = self.examples
        if not examples.size:
            name, (of_all, size) = "rounds.csv", self.totals
            counts, expected = counts.sum(keepdims=True), of_all[[round_num - 1]]
            sizes, examples = sizes.sum(keepdims=True), np.array([size])
        for one, other in ((sizes, examples), (counts, expected)):
            if not np.array_equal(one, other):
                raise RecordError(
                    f"{path_of(self.path, round_num)} does not give the counts of "
                    f"round {round_num} in {name}"
                )
        return found

    @property
    def late_accuracy(self) -> float:
        """The mean of `accuracy` over the second half of the rounds."""
        return float(self.accuracy[len(self.accuracy) // 2 :].mean())

    @property
    def source(self) -> str:
        """The source of its data, empty where it is not on record."""
        return str(self.data.get("origin", {}).get("source", ""))

    @property
    def data_caveat(self) -> str:
        """The source of its data where that is a stand-in or incomplete, else empty.

        To be shown wherever the run is: nobody may take it for one on all of the
        data set that its experiment is named after.
        """
        drawn = "drawn" in self.data["name"]
        return self.source if drawn or "INCOMPLETE" in self.source else ""

    @property
    def conditions(self) -> str:
        """A sentence that says what it ran on and how."""
        settings, data = self.settings, self.data
        options = ", ".join(f"{k}={v}" for k, v in data.get("options", {}).items())
        tested = settings.get("evaluate_clients", 0)
        sample = ""
        if 0 < tested < data.get("clients", 0):
            error = 50 / tested**0.5
            sample = (
                f" Tested by {tested} of {data['clients']} clients: a share of the "
                f"clients has a standard error of at most {error:.1f} points."
            )
        every = settings.get("evaluate_every", 1)
        seldom = f" Tested after every {every} rounds." if every > 1 else ""
        return (
            f"Data: {data['name']}{options and f' ({options})'}, from {self.source}. "
            f"{settings['model']}, "
            f"{settings['client_optimizer']} with rate {settings['learning_rate']:g}, "
            f"E = {settings['local_epochs']}, B = {settings['batch_size']}, "
            f"{settings['rounds']} rounds, seed {settings['batch_seed']}."
            f"{sample}{seldom}"
        )


def data_caveat(runs: Iterable[Run]) -> str:
    """Returns the first caveat of the data of several runs, empty if none has one."""
    return next(filter(None, (run.data_caveat for run in runs)), "")


def with_caveat(table: pd.DataFrame, runs: Iterable[Run]) -> pd.DataFrame:
    """Returns a table of runs with a last column `data` if their data has a caveat."""
    caveat = data_caveat(runs)
    marked: pd.DataFrame = table.assign(data=caveat) if caveat else table
    return marked


def conditions_of(runs: Iterable[Run]) -> list[str]:
    """Returns the sentences of `Run.conditions`, once, and what runs differ in."""
    runs = list(runs)
    found = list(dict.fromkeys(run.conditions for run in runs))
    settings = [run.settings for run in runs]
    # What an older record lacks was not there to be set, nor what is another system's.
    for name in dict.fromkeys(itertools.chain(*settings)):
        values = dict.fromkeys(str(one[name]) for one in settings if name in one)
        if len(values) > 1 and name not in _OF_ROWS:
            found.append(f"The runs differ in {name}: {', '.join(values)}.")
    lengths = [(run.label, len(run.rounds), run.settings["rounds"]) for run in runs]
    return found + [
        f"The record of {label} ends with round {length} of {planned}."
        for label, length, planned in dict.fromkeys(lengths)
        if length < planned
    ]


def read_table(folder: str, name: str) -> pd.DataFrame:
    """Reads one of the CSVs of a run folder, by the schema of its name.

    Args:
        folder: the folder. Where it has the file packed only, as `clients.csv.gz`, that
            is read.
        name: the file's name, such as `clients.csv`.

    Raises:
        RecordError: it is missing (then a `RecordMissingError`), does not parse, or
            says what no run can have written; the message is one line and names it.
    """
    return read_csv(folder, name, SCHEMAS[name])


@places.budget(MOST_OF_RUN)
def read_run(path: str) -> Run:
    """Reads a run folder.

    Raises:
        RecordError: a file of the folder is missing (then a `RecordMissingError`), does
            not parse, says what no run can have written, or has losses in the place
            of accuracy; the message names it.
    """
    info = run_json.read(path)
    settings = run_json.by_flag(info.get("settings", {}))
    left_out = settings.get("record_clients") == "none"
    clients = None if left_out else read_table(path, "clients.csv")
    run_json.require(path, info, "label")
    if clients is not None and "correct" not in clients:
        raise RecordError(
            f"{path} has no accuracy, which this needs: its labels are numbers and "
            "no classes, and its record has losses"
        )
    rounds = read_table(path, "rounds.csv")
    if clients is None:
        correct, examples = np.zeros((len(rounds), 0), np.int64), np.zeros(0, np.int64)
        if not {"correct", "examples"} <= set(rounds.columns):
            raise RecordError(f"{path}: rounds.csv lacks the counts of all clients")
    else:
        correct, examples = of_every_round(path, info, clients, len(rounds), "correct")
    adjustment = str(settings.get("adjustment", "fixed"))
    tested = adjustment != "fixed" or has_table(path, "candidates.csv")
    # Not among the few files of a run that may be kept in a repository.
    with_cohort = has_table(path, "cohort.csv")
    cohort = read_table(path, "cohort.csv") if with_cohort else None
    weights = read_table(path, "weights.csv")
    system = str(settings.get("system", ""))
    if cohort is not None and not (system in SYSTEMS and SYSTEMS[system].has_step):
        check_weights(path, cohort, weights)
    run = Run(
        label=info["label"],
        info=info,
        rounds=rounds,
        weights=weights,
        correct=correct,
        examples=examples,
        adjustment=adjustment,
        candidates=read_table(path, "candidates.csv") if tested else None,
        cohort=cohort,
        path=path,
        reach=str(settings.get("reach", "at_least")),
    )
    check_totals(run.path, run.rounds, run.totals, run.correct, run.examples)
    return run


def of_every_round(
    path: str,
    info: Mapping[str, Any],
    clients: pd.DataFrame,
    num_rounds: int,
    column: str,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """A column of `clients.csv`, [rounds, clients], and the clients' examples.

    A round without a test has the figures of the last one. A round's row is written
    before those of its clients: where a run that was ended, by its `run.json`, lacks
    these, it ends before.
    """
    of_first = int((clients["round"] == 1).sum())
    tested = clients["round"].to_numpy()[::of_first]
    every = int(run_json.by_flag(info.get("settings", {})).get("evaluate_every", 1))
    planned = np.unique([1, *range(every, num_rounds + 1, every)])
    if len(planned) == len(tested) + 1 and info.get("status") != "finished":
        num_rounds = int(planned[-1]) - 1
        planned = planned[:-1]
    if not np.array_equal(planned, tested):
        raise RecordError(
            f"{path}: rounds.csv has {num_rounds} rounds and clients.csv has "
            f"{len(tested)}" + (f", tested every {every}" if every > 1 else "")
        )
    values = clients[column].to_numpy().reshape(-1, of_first)
    last = np.searchsorted(tested, np.arange(1, num_rounds + 1), side="right") - 1
    return values[last], clients["examples"].to_numpy()[:of_first]
