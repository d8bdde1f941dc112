"""The columns of the tables of a record: declared here, written and read by this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tff_pmc.record.measures import ACCURACY, LOSS, PERCENTILES
from tff_pmc.record.row_checks import (
    check_candidates,
    check_clients,
    check_cohort,
    check_rounds,
    check_weightings,
    in_order,
)
from tff_pmc.record.schema import COUNT, FLAG, NUMBER, SHARE, TEXT, Schema

_TOTALS = {ACCURACY.total: COUNT, LOSS.total: NUMBER, "examples": COUNT}
_MEANS = {ACCURACY.mean: SHARE, LOSS.mean: NUMBER}
_OF_WEIGHTS = ("coefficient_of_variation", "effective_clients", "total_variation")

SCHEMAS: Mapping[str, Schema] = {
    "rounds.csv": Schema(
        {
            **dict.fromkeys(("round", "clients", "excluded", "update_rejected"), COUNT),
            **dict.fromkeys(("testing_rounds", "train_bytes", "test_bytes"), COUNT),
            "ordering": TEXT,
            **_TOTALS,
            **_MEANS,
            **{ACCURACY.percentile(percent): SHARE for percent in PERCENTILES},
            **{LOSS.percentile(percent): NUMBER for percent in PERCENTILES},
            "macro_f1": SHARE,
            **dict.fromkeys(("train_loss", "validation_correct"), NUMBER),
        },
        check=check_rounds,
        held=(
            *(*_TOTALS, *_MEANS),
            *map(ACCURACY.percentile, PERCENTILES),
            *map(LOSS.percentile, PERCENTILES),
        ),
    ),
    "clients.csv": Schema(
        {"round": COUNT, "client": TEXT, **_TOTALS},
        needed=("round", "client", "examples"),
        check=check_clients,
    ),
    "cohort.csv": Schema(
        {"round": COUNT, "client": TEXT, "excluded": FLAG, "weight": NUMBER},
        needed=("round", "client", "excluded"),
        others=NUMBER,  # The raw criteria, by their codes.
        check=check_cohort,
    ),
    "weights.csv": Schema(
        {
            **{"round": COUNT, "ordering": TEXT, "in_force": FLAG},
            **dict.fromkeys(_OF_WEIGHTS, NUMBER),
            "total_variation": SHARE,
        },
        check=in_order("ordering"),
    ),
    "candidates.csv": Schema(
        {
            **{"round": COUNT, "trial": COUNT, "ordering": TEXT},
            **{"correct": COUNT, "examples": COUNT, "accuracy": SHARE, "kept": FLAG},
        },
        needed=("round", "trial", "ordering", "correct", "examples", "kept"),
        check=check_candidates,
    ),
    "weightings.csv": Schema(
        {
            **{"round": COUNT, "weighting": TEXT, "rate": NUMBER, "in_force": FLAG},
            **{"correct": COUNT, "examples": COUNT, "worst_tenth": NUMBER},
            **{"jain_index": NUMBER, "total_variation": NUMBER},
        },
        needed=("round", "weighting", "rate", "in_force", "correct", "examples"),
        check=check_weightings,
    ),
    "class_f1.csv": Schema(
        {"round": COUNT, "class": COUNT, "f1": SHARE},
        needed=("round", "class", "f1"),
        check=in_order("class"),
    ),
    "groups.csv": Schema(
        {
            **{"round": COUNT, "attribute": TEXT, "group": TEXT, "clients": COUNT},
            **_TOTALS,
            **dict.fromkeys(_MEANS, NUMBER),  # Of no examples there is none.
        }
    ),
    "timing.csv": Schema({"round": COUNT, "train": NUMBER, "test": NUMBER}),
}
"""The columns of the CSVs of a record, by their names."""


def row(table: str, *values: Any) -> dict[str, Any]:
    """A row of values in the declared order of the columns behind the round."""
    _, *columns = SCHEMAS[f"{table}.csv"].kinds
    assert len(columns) == len(values), table
    return dict(zip(columns, values))


def check_declared(name: str, columns: Sequence[str]) -> None:
    """Refuses columns that nobody could read by their declaration."""
    schema = SCHEMAS[name]
    unknown = [c for c in columns if c not in schema.kinds and not schema.others]
    if unknown:
        raise ValueError(f"{name} has no column {unknown[0]!r} in its declaration")
