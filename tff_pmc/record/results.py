"""Several runs as data frames, from which all reports and claims are computed.

>>> results = tff_pmc.read_results("runs/quickstart-20260101-120000")
>>> wide = results.rounds.pivot(index="round", columns="label", values="accuracy")
>>> wide.plot()
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import pandas as pd

from leaf_data.errors import error_summary
from leaf_data.formats.data_files import Folder, expand_path
from tff_pmc.record import reference_code
from tff_pmc.record.client_statistics import PERCENTILES, client_means, percentile
from tff_pmc.record.files import (
    RUN_JSON,
    flatten_groups,
    lists_to_tuples,
    read_json,
    read_run_json,
)
from tff_pmc.record.kept_results import EXPERIMENT_JSON, read_kept
from tff_pmc.record.kept_results import keep_results as keep_results
from tff_pmc.record.predictions import Predictions, read_predictions
from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.record.tables import ROUNDS, TABLES
from tff_pmc.record.tables import RUN_KEY as RUN_KEY
from tff_pmc.settings.row_names import BASELINE as BASELINE

RUN_INFO_COLUMNS = (
    *(
        "seed",
        "label",
        "title",
        "note",
        "row_notes",
        "is_default_experiment",
        "status",
        "ended_early",
        "data_name",
        "data_clients",
    ),
    *("data_source", "data_options", "data_inputs", "data_classes"),
    *("versions", "path"),
)
"""The columns of `Results.runs` that are not settings."""


Read = Callable[[str], Optional[pd.DataFrame]]


class Results:
    """Several runs as tidy tables: `seed` and `label` identify the run in each.

    Attributes:
        runs: one row per run: `seed`, `label` (its ordering, as `LD,DS,MD`, or
            algorithm), `title` (its algorithm in words, as `FedAvg`), `note` (what sets
            its data apart from that of other runs of the algorithm), `row_notes` (where
            there are rows, what the run's row sets), `is_default_experiment` (whether
            nobody named the experiment), `status`
            (`finished`, `running` or `interrupted`), `ended_early` (why, if a callback
            ended the run before its last round), `data_name`, `data_clients`,
            `data_source`, `data_options` (a dict), `versions` (a dict), `path` (its
            folder, empty without one), `data_inputs` and `data_classes` (the names
            of inputs and classes, if the data has them), and a column for each setting
            by the name of its flag; lists are tuples. What a run did not record is NaN.
        path: the folder that was read; empty for runs in memory.
        about: what `run.json` or `experiment.json` of the folder says of all runs, such
            as `baseline`, `command` and `remark`.

    The tables are read when they are first used. A table that no run recorded is empty
    and has its columns.
    """

    def __init__(
        self,
        runs: pd.DataFrame,
        read: Read,
        *,
        path: str = "",
        about: Mapping[str, Any] | None = None,
        predictions: Callable[[int, str, int], Predictions] | None = None,
    ) -> None:
        """Stores the runs, and the function that reads a table of all runs by name."""
        self.runs = runs.reset_index(drop=True)
        self.path = path
        self.about = dict(about or {})
        self._read = read
        self._predictions = predictions

    def __repr__(self) -> str:
        seeds = ", ".join(map(str, self.seeds))
        return f"Results({'; '.join(self.labels)}; seeds: {seeds}; path: {self.path})"

    def _table(self, name: str) -> pd.DataFrame:
        recorded = self._read(name)
        if recorded is None:
            table = TABLES[name]
            columns = [column.name for column in table.columns]
            return pd.DataFrame(columns=[*RUN_KEY, "round", *columns])
        return recorded

    @functools.cached_property
    def rounds(self) -> pd.DataFrame:
        """One row per run and round; see `tables.ROUNDS` for the columns.

        Rounds without a test have the values of the last test.
        """
        return self._table("rounds")

    @functools.cached_property
    def clients(self) -> pd.DataFrame:
        """One row per run, tested round and client; see `tables.CLIENTS`."""
        return self._table("clients")

    @functools.cached_property
    def cohort(self) -> pd.DataFrame:
        """One row per run, round and client of the cohort; see `tables.COHORT`."""
        return self._table("cohort")

    @functools.cached_property
    def candidates(self) -> pd.DataFrame:
        """One row per run, round and judged model; see `tables.CANDIDATES`."""
        return self._table("candidates")

    @functools.cached_property
    def class_f1(self) -> pd.DataFrame:
        """One row per run, round and class; see `tables.CLASS_F1`."""
        return self._table("class_f1")

    @functools.cached_property
    def timing(self) -> pd.DataFrame:
        """One row per run and round, in seconds; see `tables.TIMING`."""
        return self._table("timing")

    @functools.cached_property
    def has_clients(self) -> bool:
        """Whether all runs recorded the results of each client (`--record_clients`)."""
        recorded = pd.MultiIndex.from_frame(self.clients[RUN_KEY])
        return bool(pd.MultiIndex.from_frame(self.runs[RUN_KEY]).isin(recorded).all())

    @property
    def labels(self) -> list[str]:
        """The labels of the runs, in their order."""
        return list(dict.fromkeys(self.runs["label"]))

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs, in increasing order."""
        return sorted(set(self.runs["seed"]))

    @property
    def baseline(self) -> str:
        """The label, or the algorithm, with which the other runs are compared."""
        return str(self.about.get("baseline") or BASELINE)

    @property
    def length(self) -> pd.Series[int]:
        """The number of recorded rounds of each run, by seed and label."""
        num_rounds: pd.Series[int] = self.rounds.groupby(RUN_KEY, sort=False)[
            "round"
        ].max()
        return num_rounds

    def setting(self, name: str, default: Any = None) -> Any:
        """Returns a setting that all runs share; runs without it are ignored.

        Raises:
            RecordError: two runs have different values; the message has both.
        """
        if name not in self.runs:
            return default
        recorded = self.runs[name][self.runs[name].notna()]
        values = recorded.tolist()
        for run, value in zip(recorded.index, values):
            if value != values[0]:
                raise RecordError(
                    f"the runs differ in {name}: "
                    f"{_run_name(self.runs.loc[recorded.index[0]])} has "
                    f"{_as_text(values[0])}, {_run_name(self.runs.loc[run])} has "
                    f"{_as_text(value)}"
                )
        return values[0] if values else default

    def check_settings(self) -> None:
        """Raises a `RecordError` if the runs differ in a setting other than a seed."""
        settings = {*self.runs} - {*RUN_INFO_COLUMNS}
        for name in sorted(name for name in settings if not name.endswith("_seed")):
            self.setting(name)

    def only(self, mask: Any = None, **values: Any) -> Results:
        """Selects runs by a mask over `runs`, or by values of columns.

        >>> results.only(seed=0, label=["DS", "LD"])
        """
        chosen = np.ones(len(self.runs), bool) if mask is None else np.asarray(mask)
        for name, value in values.items():
            allowed = [value] if np.isscalar(value) else [*value]
            chosen = chosen & self.runs[name].isin(allowed).to_numpy()
        runs = self.runs[chosen]
        keys = pd.MultiIndex.from_frame(runs[RUN_KEY])

        def read(name: str) -> pd.DataFrame:
            table: pd.DataFrame = getattr(self, name)
            there = pd.MultiIndex.from_frame(table[RUN_KEY]).isin(keys)
            return table[there].reset_index(drop=True)

        return Results(
            runs, read, path=self.path, about=self.about, predictions=self._predictions
        )

    def predictions(self, seed: int, label: str, round_num: int) -> Predictions:
        """Returns the predicted label of each test example of one run and round.

        Raises:
            RecordError: they were not recorded, or contradict the recorded counts.
        """
        if self._predictions is None:
            raise RecordMissingError(f"{self.path or 'the runs'} have no predictions")
        predictions = self._predictions(seed, label, round_num)
        row_of_round = self.rounds[
            (self.rounds["seed"] == seed)
            & (self.rounds["label"] == label)
            & (self.rounds["round"] == round_num)
        ]
        if int(predictions.correct.sum()) != int(row_of_round["correct"].iloc[0]):
            raise RecordError(
                f"the predictions of {label}, seed {seed}, round {round_num} do not "
                "give the count of correct examples in rounds.csv"
            )
        return predictions


def read_results(path: Folder) -> Results:
    """Reads the runs of a folder as data frames.

    Args:
        path: the folder of one run, of the runs of an experiment, of such folders under
            several seeds (`seed_0`, ...), of kept results, or of runs that the authors'
            published code of PMC wrote.

    Returns:
        The runs in the order in which they ran, seed by seed.

    Raises:
        RecordError: the folder contains no run, or a file is missing (then a
            `RecordMissingError`) or broken; one line names it.
    """
    path = expand_path(path)
    if not os.path.isdir(path):
        raise RecordError(f"{path} is not a folder")
    if os.path.exists(os.path.join(path, EXPERIMENT_JSON)):
        runs, read_table, about = read_kept(path)
        return Results(runs, read_table, path=path, about=about)
    if reference_code.holds_runs(path):
        return _read_reference(path)
    folders: dict[tuple[int, str], str] = {}
    rows = []
    for folder in (run for place in _seed_folders(path) for run in _runs_in(place)):
        row = _run_row(folder)
        other = folders.setdefault((row["seed"], row["label"]), folder)
        if other != folder:
            raise RecordError(
                f"{other} and {folder} are both runs of {row['label']} under seed "
                f"{row['seed']}"
            )
        rows.append(row)
    if not rows:
        raise RecordError(
            f"{path} contains no run: no folder has both run.json and rounds.csv"
        )

    def read(name: str) -> Optional[pd.DataFrame]:
        tables = []
        for (seed, label), folder in folders.items():
            if name == "rounds" or TABLES[name].path(folder):
                table = TABLES[name].read(folder)
                table.insert(0, "seed", seed)
                table.insert(1, "label", label)
                tables.append(table)
        return pd.concat(tables, ignore_index=True) if tables else None

    plan = read_run_json(path)
    return Results(
        pd.DataFrame(rows),
        read,
        path=path,
        about={
            "command": plan.get("command", ""),
            **flatten_groups(plan.get("settings", {})),
        },
        predictions=lambda seed, label, round_num: read_predictions(
            folders[seed, label], round_num
        ),
    )


def results_of_counts(
    correct: Mapping[str, Any],
    examples: Sequence[int],
    *,
    candidates: Mapping[str, pd.DataFrame] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Results:
    """Returns runs in memory, such as those of a notebook, as `Results`.

        >>> results = results_of_counts({"DS": [[3, 1], [4, 2]]}, examples=[5, 5])
        >>> figure = accuracy_plot(results)

    Args:
        correct: label -> the number of correctly classified test examples of each
            client after each round, int [rounds, clients], as
            `build_federated_evaluation(model, num_clients)` returns it.
        examples: the number of test examples of each client, int [clients].
        candidates: label -> the models that a search judged, one row each, with the
            columns `round` (from 1), `ordering`, `correct`, `examples` and `kept`.
        settings: settings by flag, such as `{"targets": (70, 80)}`.
        seed: the seed of the runs.

    Raises:
        RecordError: the shapes or counts do not match, or no client has test examples.
    """
    sizes = np.asarray(examples)
    rounds, clients = [], []
    for label, counts in correct.items():
        array = np.asarray(counts)
        _check_counts(label, array, sizes)
        run = {"seed": seed, "label": label}
        numbers, local = np.arange(1, len(array) + 1), client_means(array, sizes)
        round_columns = {
            "round": numbers,
            "accuracy": array.sum(axis=1) / sizes.sum(),
            "correct": array.sum(axis=1),
            "examples": sizes.sum(),
            **{f"p{p}": percentile(local, p) for p in PERCENTILES},
        }
        names = [f"client_{k}" for k in range(len(sizes))]
        client_columns = {
            "round": np.repeat(numbers, len(sizes)),
            "client": np.tile(names, len(array)),
            "correct": array.ravel(),
            "examples": np.tile(sizes, len(array)),
        }
        rounds.append(pd.DataFrame({**run, **round_columns}))
        clients.append(pd.DataFrame({**run, **client_columns}))
    judged = [
        table.assign(seed=seed, label=label, kind="trial")
        for label, table in (candidates or {}).items()
    ]
    tables = {
        name: pd.concat(parts, ignore_index=True)
        for name, parts in (
            ("rounds", rounds),
            ("clients", clients),
            ("candidates", judged),
        )
        if parts
    }
    words = ("title", "note", "data_name", "data_source", "path")
    of_all = {
        "data_clients": len(sizes),
        "data_options": {},
        **lists_to_tuples(settings or {}),
    }
    runs = [
        {"seed": seed, "label": label, **dict.fromkeys(words, ""), **of_all}
        for label in correct
    ]
    return Results(pd.DataFrame(runs), tables.get)


def _check_counts(label: str, correct: Any, sizes: Any) -> None:
    """Raises a `RecordError` if arrays cannot be counts of correct examples."""
    if correct.ndim != 2 or not len(correct) or sizes.shape != correct.shape[1:]:
        raise RecordError(
            f"{label}: correct must be [rounds, clients] with at least one round, and "
            f"examples [clients]; got {list(correct.shape)} and {list(sizes.shape)}"
        )
    if not all(np.issubdtype(array.dtype, np.integer) for array in (correct, sizes)):
        raise RecordError(
            f"{label}: correct and examples must be integers, got {correct.dtype} and "
            f"{sizes.dtype}"
        )
    if (correct < 0).any() or (correct > sizes).any() or not sizes.any():
        raise RecordError(
            f"{label}: correct must lie between 0 and examples, and some client must "
            "have test examples"
        )


def _run_row(folder: str) -> dict[str, Any]:
    """Returns the row of `Results.runs` of a run's folder."""
    path = os.path.join(folder, RUN_JSON)
    info = read_json(path, ("label", "settings", "data"))
    try:
        settings, data = flatten_groups(info["settings"]), info["data"]
        return {
            "seed": int(settings.get("batch_seed", 0)),
            "label": str(info["label"]),
            "title": info.get("algorithm") or info["label"],
            "note": info.get("note", ""),
            **({"row_notes": tuple(info["row_notes"])} if "row_notes" in info else {}),
            "is_default_experiment": bool(info.get("is_default_experiment")),
            "status": info.get("status", ""),
            "ended_early": info.get("ended_early", ""),
            "data_name": data.get("name", ""),
            "data_clients": data.get("clients", 0),
            "data_source": data.get("origin", {}).get("source", ""),
            "data_options": data.get("options", {}),
            **{
                f"data_{name}": tuple(info[name])
                for name in ("inputs", "classes")
                if name in info
            },
            "versions": info.get("versions", {}),
            "path": folder,
            **lists_to_tuples(settings),
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise RecordError(
            f"{path} does not describe a run: {error_summary(error)}"
        ) from error


def _seed_folders(path: str) -> list[str]:
    """Returns the `seed_N` folders in a folder, by seed; else the folder itself."""
    matches = [re.fullmatch("seed_([0-9]+)", name) for name in os.listdir(path)]
    seeds = {int(match[1]): os.path.join(path, match[0]) for match in matches if match}
    return [seeds[seed] for seed in sorted(seeds)] or [path]


def _runs_in(path: str) -> list[str]:
    """Returns the run folders in a folder, in order; or the folder of a single run."""
    if ROUNDS.path(path):
        return [path]
    order = list(
        flatten_groups(read_run_json(path).get("settings", {})).get("orderings", [])
    )

    def position(folder: str) -> int:
        label = read_json(os.path.join(folder, RUN_JSON)).get("label")
        return order.index(label) if label in order else len(order)

    folders = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    described = [f for f in folders if os.path.exists(os.path.join(f, RUN_JSON))]
    return sorted(filter(ROUNDS.path, described), key=position)


def _read_reference(path: str) -> Results:
    """Reads runs of the authors' published code; see `reference_code.read_runs`."""
    runs = reference_code.read_runs(path)
    parts = []
    for run in runs:
        part = results_of_counts({run.label: run.correct}, run.examples.tolist())
        part.runs["data_name"], part.runs["path"] = run.data_set, run.folder
        parts.append(part)
    joined = join_results(parts)
    folders = {run.label: run.folder for run in runs}
    return Results(
        joined.runs,
        lambda name: getattr(joined, name),
        path=path,
        predictions=lambda seed, label, round_num: reference_code.read_predictions(
            folders[label], round_num
        ),
    )


def _run_name(run: pd.Series[Any]) -> str:
    return str(run.get("path") or f"{run['label']}, seed {run['seed']},")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ",".join(map(str, np.atleast_1d(value)))


def join_results(every: Iterable[Results] | Mapping[str, Results]) -> Results:
    """Joins the runs of several `Results`.

    Args:
        every: the results; or, by a new label, results that have one label each, so
            that runs of one ordering from several folders can be distinguished.

    Raises:
        RecordError: two runs have the same seed and label.
    """
    parts = list(every.values() if isinstance(every, Mapping) else every)
    labels = list(every) if isinstance(every, Mapping) else [None] * len(parts)

    def relabel(table: pd.DataFrame, label: Optional[str]) -> pd.DataFrame:
        return table if label is None else table.assign(label=label)

    def join(name: str) -> pd.DataFrame:
        tables = [relabel(getattr(part, name), x) for part, x in zip(parts, labels)]
        # Empty tables are dropped: their columns have no types.
        return pd.concat([t for t in tables if len(t)] or tables[:1], ignore_index=True)

    runs = join("runs")
    twice = runs.duplicated(RUN_KEY)
    if twice.any():
        row = runs[twice].iloc[0]
        raise RecordError(f"there are two runs of {row['label']}, seed {row['seed']}")
    return Results(runs, join)
