"""The six tables of a run's record; one declaration says how each is written and read.

    rounds       one row per round: accuracy (for a regression, the test loss),
                 percentiles over the clients, the model's own metrics, training loss,
                 bytes
    clients      one row per client and tested round: the number of correct test
                 examples (for a regression, the loss sum), and of all test examples
    cohort       one row per round and client of its cohort: its criteria and weight
    candidates   one row per round and judged model: those that a search for an ordering
                 tried (`kind` is `trial`), and those of other weightings, which were
                 judged for comparison (`counterfactual`)
    class_f1     one row per round and class: the F1 on the server's examples
    timing       one row per round: seconds

With a label per position, all numbers of examples are those of the positions that
count.

One line of a table's declaration below adds a column. How it is written, the type with
which it is read, and the list in the documents follow from it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import numpy as np
import pandas as pd

from leaf_data.errors import error_summary
from leaf_data.formats.data_files import expand_path
from tff_pmc.record.client_statistics import PERCENTILES
from tff_pmc.record.metric import float32_digits
from tff_pmc.record.record_error import RecordError, RecordMissingError

if TYPE_CHECKING:
    from tff_pmc.record.round_record import RoundRecord

TEXT = "text"
COUNT = "count"
FLAG = "flag"
SHARE = "share"
NUMBER = "number"
"""The types of columns: a count is a whole number from 0, a flag is 0 or 1, a share is
from 0 to 1. Numbers may be missing, and in rounds without a test so may be all results
of a test."""

RUN_KEY = ["seed", "label"]
"""The columns that identify a run, in each table of several runs."""

GZIP_SUFFIX = ".gz"
"""The suffix of a compressed table's file name."""

WEIGHT_BOUNDS = ("weight_largest", "weight_smallest")
"""Names that trackers receive with a row of `rounds`; see `FinishedRound.numbers`."""

_DTYPES = {
    **{TEXT: "str", FLAG: "int64"},
    **dict.fromkeys((COUNT, SHARE, NUMBER), "float64"),
}


def _always(record: RoundRecord) -> bool:
    return True


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: the name of the column.
        kind: its type: TEXT, COUNT, FLAG, SHARE or NUMBER.
        value: returns a round's value in `rounds` and `timing`, and the values of all
            rows of a round in the other tables.
        when: returns whether a run has the column; by default all runs have it.
        tested: whether the column is empty in rounds without a test.
    """

    name: str
    kind: str
    value: Callable[[RoundRecord], Any]
    when: Callable[[RoundRecord], bool] = _always
    tested: bool = False


class Table(NamedTuple):
    """A table of the record.

    Attributes:
        name: the name of the table, without `.csv`.
        columns: its declared columns, after `round`.
        key: the columns that identify a row of a round; empty for one row per round.
        others: returns the columns whose names depend on the run, which are numbers:
            the raw criteria by code, and in `rounds` the metrics of the model.
        before: the column before which they stand.
        others_kind: how undeclared columns are read: NUMBER, or TEXT, which becomes
            numbers if all values of a column are numbers.
        beside: further names that callbacks receive with the values of a row.
    """

    name: str
    columns: list[Column]
    key: Sequence[str] = ()
    others: Callable[[RoundRecord], Mapping[str, Any]] | None = None
    before: str = ""
    others_kind: str = TEXT
    beside: Sequence[str] = ()

    def add(self, column: Column) -> None:
        """Adds a column to the tables of all later runs.

        Raises:
            ValueError: the table, or its reader, has a column of this name.
        """
        if column.name in self.reserved:
            raise ValueError(
                f"{self.name}.csv has a column {column.name} already: rename it"
            )
        self.columns.append(column)

    @property
    def reserved(self) -> set[str]:
        """The names that `others` must not use.

        They are those of the columns, of the columns that `read_results` adds, and of
        `beside`.
        """
        names = (column.name for column in self.columns)
        return {"seed", "label", "round", *self.beside, *names}

    def rows(self, record: RoundRecord) -> list[dict[str, Any]]:
        """Returns the rows of a round as they are written."""
        values_by_column: dict[str, Any] = {}
        for column in self.columns:
            if column.name == self.before and self.others:
                values_by_column.update(self.others(record))
            if column.when(record):
                empty = column.tested and not record.tested
                values_by_column[column.name] = "" if empty else column.value(record)
        if not self.key:
            return [{"round": record.round_num, **values_by_column}]
        sizes = {name: len(values) for name, values in values_by_column.items()}
        if len({*sizes.values()}) > 1:
            raise ValueError(f"{self.name}.csv: the columns differ in length: {sizes}")
        return [
            {"round": record.round_num, **dict(zip(values_by_column, row))}
            for row in zip(*values_by_column.values())
        ]

    def path(self, folder: str) -> str:
        """Returns the path of the table in a folder, or ""; it may be compressed."""
        plain = os.path.join(expand_path(folder), f"{self.name}.csv")
        return next(filter(os.path.exists, (plain, plain + GZIP_SUFFIX)), "")

    def read(self, folder: str, *, every_round: bool = True) -> pd.DataFrame:
        """Reads the table of a folder, `NAME.csv` or `NAME.csv.gz`.

        Args:
            folder: the folder.
            every_round: whether no round may be left out.

        Raises:
            RecordError: the file is missing (then a `RecordMissingError`), cannot be
                parsed, or has rounds, rows or counts that no run has; one line names
                it.
        """
        path = self.path(folder)
        if not path:
            name = os.path.join(folder, f"{self.name}.csv")
            raise RecordMissingError(f"{name} is missing")
        try:
            with open(path, "rb") as file:
                content = file.read()
            if path.endswith(GZIP_SUFFIX):
                content = gzip.decompress(content)
            return self.parse(content, every_round=every_round)
        except (OSError, EOFError, zlib.error, ValueError, OverflowError) as error:
            raise RecordError(
                f"{path} cannot be read: {error_summary(error)}"
            ) from error

    def parse(self, content: bytes, *, every_round: bool = True) -> pd.DataFrame:
        """Parses the content of a table's file.

        Rounds without a test have the values of the last tested round.

        Raises:
            ValueError: the content is not one that a run writes.
        """
        if not content.endswith(b"\n"):
            raise ValueError("the file ends within a row")
        declared = {"seed": "int64", "label": "str", "round": "int64"}
        declared.update((column.name, _DTYPES[column.kind]) for column in self.columns)
        names = pd.read_csv(io.BytesIO(content), nrows=0).columns
        others = _DTYPES[self.others_kind]
        dtype: Any = {name: declared.get(name, others) for name in names}
        table = pd.read_csv(
            io.BytesIO(content),
            dtype=dtype,
            keep_default_na=False,
            na_values={name: ["", "nan"] for name in names if dtype[name] == "float64"},
        )
        numbers = []
        for name in names if self.others_kind == TEXT else ():
            if name not in declared:
                with contextlib.suppress(ValueError):  # Then it is text.
                    table[name] = table[name].replace("", "nan").astype(float)
                    numbers.append(name)
        lacking = [name for name in ("round", *self.key) if name not in table]
        if lacking:
            raise ValueError(f"the column {lacking[0]!r} is missing")
        run = [name for name in ("seed", "label") if name in table]
        tested = [c.name for c in self.columns if c.tested and c.name in table]
        if tested:
            # From the last test, whose loss may be NaN.
            is_test = table[tested].notna().any(axis=1)
            keys = [*(table[name] for name in run), is_test.cumsum()]
            # A column that is empty without a test is a metric of the model.
            metrics = table.loc[~is_test, numbers].isna().all()
            tested += [name for name in numbers if metrics[name]]
            table[tested] = table.groupby(keys)[tested].transform("first")
        for column in self.columns:
            # Some of several runs may not have the column.
            if column.kind == COUNT and column.name in table:
                if table[column.name].notna().all():
                    table[column.name] = table[column.name].astype("int64")
        _check(table, run, self.key, every_round)
        return table


def _check(
    table: pd.DataFrame, run: Sequence[str], key: Sequence[str], every_round: bool
) -> None:
    """Raises a `ValueError` for rounds, rows or counts that no run can have."""
    twice = table.duplicated([*run, "round", *key])
    if twice.any():
        row = table[twice].iloc[0]
        row_key = ", ".join(f"{name} {row[name]}" for name in (*run, "round", *key))
        raise ValueError(f"there are two rows of {row_key}")
    if not key:
        rounds = table["round"]
        steps = table.groupby(run)["round"].diff() if run else rounds.diff()
        steps = steps.fillna(rounds)
        wrong, rule = steps < 1, "must increase"
        if every_round:
            wrong, rule = steps != 1, "must be numbered 1, 2, 3, ... once each"
        if wrong.any():
            raise ValueError(
                f"row {int(wrong.to_numpy().argmax()) + 1} has round "
                f"{rounds[wrong].iloc[0]}: rounds {rule}"
            )
    if {"correct", "examples"} <= {*table.columns}:
        wrong = (table["correct"] < 0) | (table["correct"] > table["examples"])
        if wrong.any():
            row = table[wrong].iloc[0]
            raise ValueError(
                f"round {row['round']} has {row['correct']} correct of "
                f"{row['examples']}"
            )


def _has_classes(record: RoundRecord) -> bool:
    return record.metric.is_count


def _is_regression(record: RoundRecord) -> bool:
    return not record.metric.is_count


def _has_server(record: RoundRecord) -> bool:
    return len(record.f1) > 0


def _has_central(record: RoundRecord) -> bool:
    return record.central_examples > 0


def _has_central_classes(record: RoundRecord) -> bool:
    return _has_central(record) and _has_classes(record)


def _has_central_loss(record: RoundRecord) -> bool:
    return _has_central(record) and _is_regression(record)


def _percentile(percent: int) -> Callable[[RoundRecord], float]:
    return lambda record: round(record.percentile(percent), 4)


ROUNDS = Table(
    "rounds",
    [
        Column("accuracy", SHARE, lambda r: r.mean, _has_classes, tested=True),
        Column("correct", COUNT, lambda r: r.total, _has_classes, tested=True),
        Column("test_loss", NUMBER, lambda r: r.mean, _is_regression, tested=True),
        Column("loss_sum", NUMBER, lambda r: r.total, _is_regression, tested=True),
        Column("examples", COUNT, lambda r: int(r.sizes.sum()), tested=True),
        *(
            Column(f"p{p}", SHARE, _percentile(p), _has_classes, tested=True)
            for p in PERCENTILES
        ),
        *(
            Column(f"loss_p{p}", NUMBER, _percentile(p), _is_regression, tested=True)
            for p in PERCENTILES
        ),
        Column("train_loss", NUMBER, lambda r: r.train_loss),
        Column(
            "global_train_loss",
            NUMBER,
            lambda r: r.global_train_loss,
            lambda r: r.settings.record.global_train_loss,
            tested=True,
        ),
        Column("clients", COUNT, lambda r: int(r.train["clients"])),
        Column("excluded", COUNT, lambda r: int(r.train["excluded"])),
        Column("update_rejected", COUNT, lambda r: r.update_rejected),
        Column("ordering", TEXT, lambda r: r.outcome.in_force.label),
        Column("testing_rounds", COUNT, lambda r: len(r.outcome.trials)),
        Column("train_bytes", COUNT, lambda r: r.train_bytes),
        Column("test_bytes", COUNT, lambda r: r.test_bytes),
        # The F1 of classes that neither occur nor are predicted is NaN.
        Column("macro_f1", SHARE, lambda r: round(np.nanmean(r.f1), 6), _has_server),
        Column(
            "validation_correct",
            COUNT,
            lambda r: r.validation_correct,
            lambda r: r.validation_correct is not None,
        ),
        Column(
            "central_accuracy",
            SHARE,
            lambda r: r.central_mean,
            _has_central_classes,
            tested=True,
        ),
        Column(
            "central_correct",
            COUNT,
            lambda r: r.central_correct,
            _has_central_classes,
            tested=True,
        ),
        Column(
            "central_loss",
            NUMBER,
            lambda r: r.central_mean,
            _has_central_loss,
            tested=True,
        ),
        Column(
            "central_examples",
            COUNT,
            lambda r: r.central_examples,
            _has_central,
            tested=True,
        ),
    ],
    others=lambda r: {
        name: "" if value is None else value for name, value in r.model_metrics.items()
    },
    before="train_loss",
    beside=WEIGHT_BOUNDS,
)

USUAL_COLUMNS = frozenset(ROUNDS.reserved)
"""The columns of `rounds` that no plugin and no model added."""

CLIENTS = Table(
    "clients",
    [
        Column("client", TEXT, lambda r: r.test_clients),
        Column("correct", COUNT, lambda r: r.client_totals, _has_classes),
        Column("loss_sum", NUMBER, lambda r: r.client_totals, _is_regression),
        Column("examples", COUNT, lambda r: r.client_sizes),
    ],
    key=["client"],
)

COHORT = Table(
    "cohort",
    [
        Column("client", TEXT, lambda r: r.cohort),
        Column("excluded", FLAG, lambda r: r.excluded.astype(int)),
        Column("weight", NUMBER, lambda r: float32_digits(r.weights)),
    ],
    key=["client"],
    others=lambda r: {
        code: float32_digits(r.raw[:, i]) for i, code in enumerate(r.codes)
    },
    before="excluded",
    others_kind=NUMBER,  # In `rounds` a plugin's column may be text.
)

CANDIDATES = Table(
    "candidates",
    [
        Column("kind", TEXT, lambda r: [c.kind for c in r.candidates]),
        Column("trial", COUNT, lambda r: [c.trial for c in r.candidates]),
        Column("ordering", TEXT, lambda r: [c.label for c in r.candidates]),
        Column("rate", NUMBER, lambda r: [c.rate for c in r.candidates]),
        Column("correct", COUNT, lambda r: [c.correct for c in r.candidates]),
        Column("examples", COUNT, lambda r: [c.examples for c in r.candidates]),
        Column("kept", FLAG, lambda r: [int(c.kept) for c in r.candidates]),
        Column("worst_tenth", NUMBER, lambda r: [c.worst_tenth for c in r.candidates]),
        Column("jain_index", NUMBER, lambda r: [c.jain_index for c in r.candidates]),
    ],
    key=["kind", "trial"],
)

CLASS_F1 = Table(
    "class_f1",
    [
        Column("class", COUNT, lambda r: range(len(r.f1))),
        Column("f1", SHARE, lambda r: float32_digits(r.f1)),
    ],
    key=["class"],
)

TIMING = Table(
    "timing",
    [
        Column("train", NUMBER, lambda r: round(r.seconds["train"], 3)),
        Column("test", NUMBER, lambda r: round(r.seconds["test"], 3)),
    ],
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (ROUNDS, CLIENTS, COHORT, CANDIDATES, CLASS_F1, TIMING)
}
"""The tables of a record, by name."""
