"""The CSVs of a run folder: read, and held to one schema each.

A record is made round by round, and so its rows are in order: whatever has been
shuffled, doubled, cut off or made up is refused here, and no table is made of it.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, Callable, NamedTuple

import pandas as pd

from tff_pmc.reports import record_order
from tff_pmc.reports.plain_files import open_packed, open_plain
from tff_pmc.reports.record_error import RecordError, RecordMissingError

_LONGEST_HEADER = 1 << 16
_MOST = 1 << 53  # More bytes or examples than anything has; sums of them still fit.
_TEXT, _COUNT, _FLAG, _SHARE, _NUMBER = "text", "count", "flag", "share", "number"
_DTYPES = {_TEXT: str, _COUNT: "int64", _FLAG: "int64"}
# What a float that is none is written as. All other words are text, or refused.
_NOT_A_NUMBER = ["", "nan"]

LOSS_COLUMN = "loss_sum"
"""The column of `clients.csv` that a record of losses has for `correct`."""


class Schema(NamedTuple):
    """What a CSV must be.

    Attributes:
        kinds: the kind of each known column.
        needed: the columns that must be there.
        others: the kind of the columns that have no name here.
        check: a function that raises a `ValueError` for rows that do not go together.
    """

    kinds: Mapping[str, str]
    needed: tuple[str, ...] = ("round",)
    others: str = _TEXT
    check: Callable[[pd.DataFrame], None] = lambda table: None


PACKED = ".gz"
"""What stands behind the name of a CSV that is kept packed."""


def has_table(folder: str, name: str) -> bool:
    """Returns whether a folder has a CSV of this name, packed or not."""
    path = os.path.join(folder, name)
    return os.path.exists(path) or os.path.exists(path + PACKED)


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
    path, schema = os.path.join(folder, name), SCHEMAS[name]
    try:
        if not os.path.exists(path) and has_table(folder, name):
            path += PACKED
            file = open_packed(path)
        else:
            file = open_plain(path)
    except RecordMissingError as error:
        raise RecordMissingError(f"{folder} has run.json but no {name}") from error
    with file:
        try:
            table = _parse(file, schema)
            for column in table.columns:
                _check_column(table[column], _kind(schema, column))
            schema.check(table)
        except (ValueError, OverflowError, csv.Error) as error:
            reason = " ".join(str(error).split())
            raise RecordError(f"{path} cannot be read: {reason}") from error
    return table


def read_counts(folder: str) -> pd.DataFrame:
    """Reads `clients.csv`, which must have how many examples of each client are right.

    Raises:
        RecordError: as `read_table`; or the record has losses, as of a regression.
    """
    clients = read_table(folder, "clients.csv")
    if LOSS_COLUMN in clients:
        raise RecordError(
            f"{folder} has no accuracy, which this needs: its labels are numbers and "
            "no classes, and its record has losses"
        )
    return clients


def _kind(schema: Schema, column: str) -> str:
    return schema.kinds.get(column, schema.others)


def _parse(file: BinaryIO, schema: Schema) -> pd.DataFrame:
    line = file.readline(_LONGEST_HEADER).decode("utf-8")
    names = next(csv.reader([line], strict=True), [])
    if not names or not line.endswith("\n"):
        raise ValueError("it has no header")
    if len(set(names)) < len(names):
        raise ValueError("a column is there twice")
    lacking = [column for column in schema.needed if column not in names]
    if lacking:
        raise ValueError(f"it lacks the column {lacking[0]!r}")
    file.seek(-1, os.SEEK_END)
    if file.read() != b"\n":
        raise ValueError("it ends within a row")
    kinds = {column: _kind(schema, column) for column in names}
    if kinds[names[-1]] in (_TEXT, _NUMBER):
        _check_widths(file, len(names))
    file.seek(0)
    missing: Any = {
        column: _NOT_A_NUMBER
        for column, kind in kinds.items()
        if kind in (_SHARE, _NUMBER)
    }
    table: pd.DataFrame = pd.read_csv(
        file,
        dtype={column: _DTYPES.get(kind, "float64") for column, kind in kinds.items()},
        keep_default_na=False,
        na_values=missing,
        skip_blank_lines=False,
        encoding="utf-8",
    )
    # More fields than names in every row, and the first are taken for an index.
    if list(table.columns) != names or not isinstance(table.index, pd.RangeIndex):
        raise ValueError("its rows do not have the columns of its header")
    return table


def _check_widths(file: BinaryIO, width: int) -> None:
    """Refuses a row that is too short, where its last cell may be empty, too."""
    file.seek(0)
    lines = io.TextIOWrapper(file, "utf-8", newline="")
    try:
        for number, row in enumerate(csv.reader(lines, strict=True)):
            if len(row) != width:
                raise ValueError(f"row {number} has {len(row)} fields, not {width}")
    finally:
        lines.detach()


def _check_column(values: pd.Series[Any], kind: str) -> None:
    good = pd.Series(True, values.index)
    if kind == _TEXT:
        good = values.map(lambda value: isinstance(value, str))
    elif kind == _COUNT:
        good = (values >= 0) & (values < _MOST)
    elif kind == _FLAG:
        good = values.isin((0, 1))
    elif kind == _SHARE:
        good = (values >= 0) & (values <= 1)
    if not good.all():
        raise ValueError(
            f"row {int(good.to_numpy().argmin()) + 1} has no {kind} as {values.name}"
        )


_DUAL_TABLE = Schema(
    dict.fromkeys(("algorithm", "clients", "metric", "printed"), _TEXT),
    needed=("algorithm", "clients", "metric", "ours_best_epoch", "ours_last"),
    others=_NUMBER,
)
_JOINT_TABLE = Schema(
    {
        **dict.fromkeys(
            ("experiment", "ds_outcome", "experiment_outcome", "pairing"), _TEXT
        ),
        **dict.fromkeys(("ds_round", "experiment_round"), _COUNT),
        **dict.fromkeys(("printed", "data"), _TEXT),
    },
    needed=("experiment", "pairing", "ds_round", "experiment_round", "ours"),
    others=_NUMBER,
)
SCHEMAS: Mapping[str, Schema] = {
    "rounds.csv": Schema(
        {
            "ordering": _TEXT,
            "train_loss": _NUMBER,
            "validation_correct": _NUMBER,
            **dict.fromkeys(
                ("test_loss", "loss_sum", "loss_p10", "loss_p50", "loss_p90"), _NUMBER
            ),
            **dict.fromkeys(("accuracy", "p10", "p50", "p90", "macro_f1"), _SHARE),
            **dict.fromkeys(
                (
                    *("round", "correct", "examples", "clients", "excluded"),
                    *("update_rejected", "testing_rounds", "train_bytes"),
                    "test_bytes",
                ),
                _COUNT,
            ),
        },
        check=record_order.check_rounds,
    ),
    "clients.csv": Schema(
        {
            "client": _TEXT,
            LOSS_COLUMN: _NUMBER,
            **dict.fromkeys(("round", "correct", "examples"), _COUNT),
        },
        needed=("round", "client", "examples"),
        check=record_order.check_clients,
    ),
    "weights.csv": Schema(
        {
            "round": _COUNT,
            "ordering": _TEXT,
            "in_force": _FLAG,
            **dict.fromkeys(
                ("coefficient_of_variation", "effective_clients", "total_variation"),
                _NUMBER,
            ),
        },
        check=lambda table: record_order.check_order(table, each="ordering"),
    ),
    "candidates.csv": Schema(
        {
            **dict.fromkeys(("round", "trial", "correct", "examples"), _COUNT),
            "ordering": _TEXT,
            "accuracy": _SHARE,
            "kept": _FLAG,
        },
        needed=("round", "trial", "ordering", "correct", "examples", "kept"),
        check=record_order.check_candidates,
    ),
    "cohort.csv": Schema(
        {"round": _COUNT, "client": _TEXT, "excluded": _FLAG, "weight": _NUMBER},
        needed=("round", "client", "excluded"),
        others=_NUMBER,
        check=lambda table: record_order.check_order(table, each="client"),
    ),
    "class_f1.csv": Schema(
        {"round": _COUNT, "class": _COUNT, "f1": _SHARE},
        needed=("round", "class", "f1"),
        check=lambda table: record_order.check_order(table, each="class"),
    ),
    "results.csv": Schema(
        {
            **dict.fromkeys(("experiment", "quantity", "devices"), _TEXT),
            **dict.fromkeys(("target_accuracy_pct", "value"), _NUMBER),
        },
        needed=("experiment", "quantity", "target_accuracy_pct", "devices", "value"),
        check=record_order.check_results,
    ),
    **dict.fromkeys(("dual_table4.csv", "dual_table5.csv"), _DUAL_TABLE),
    **dict.fromkeys(("table3.csv", "table5.csv", "table7.csv"), _JOINT_TABLE),
}
"""The schemas of the files, by name."""
