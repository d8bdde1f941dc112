"""The names by which a user may call a row of a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tff_pmc.settings.run_settings import slug

BASELINE = "DS"
"""The label of the ordering that is federated averaging."""

FED_AVG = "FedAvg"
"""The title of the algorithm that is federated averaging."""


class RowName(NamedTuple):
    """The names of a row.

    Attributes:
        label: what tables call it.
        title: its algorithm in words.
        algorithm: its algorithm in flags; empty if that is not known.
        data_note: what sets its data apart from that of other rows of the algorithm.
    """

    label: str
    title: str
    algorithm: str = ""
    data_note: str = ""


def find_baseline(rows: Iterable[RowName], name: str) -> str:
    """Returns the label, or the algorithm in words, of the row that a name refers to.

    A row can be named by its label, its folder, or its algorithm, in words or as in
    flags. `FedAvg` also refers to the ordering `DS`, and `DS` to the algorithm
    `FedAvg`. Rows of one algorithm on different data are named by the algorithm.

    Raises:
        ValueError: no row has this name, or several on the same data have it; the
            message lists them.
    """
    rows = [*dict.fromkeys(rows)]
    by_name: dict[str, str] = {}
    for row in rows:
        by_name.setdefault(slug(row.label), row.label)
    for row in rows:
        if row.label == row.title or row.label.startswith(f"{row.title}, "):
            by_name.setdefault(slug(row.title), row.title)
            by_name.setdefault(slug(row.algorithm), row.title)
    if BASELINE in (row.label for row in rows):
        for alias in (FED_AVG, f"{FED_AVG} ({BASELINE})"):
            by_name.setdefault(slug(alias), BASELINE)
    elif slug(FED_AVG) in by_name:
        by_name.setdefault(slug(BASELINE), by_name[slug(FED_AVG)])
    if not slug(name) or slug(name) not in by_name:
        labels = "; ".join(dict.fromkeys(row.label for row in rows))
        raise ValueError(f"{name} is not one of the rows: {labels}")
    baseline = by_name[slug(name)]
    labels_by_data: dict[str, list[str]] = {}
    for row in rows:
        if row.title == baseline:
            labels_by_data.setdefault(row.data_note, []).append(row.label)
    for labels_on_data in labels_by_data.values():
        if len({*labels_on_data}) > 1 and baseline not in labels_on_data:
            raise ValueError(
                f"{name} fits several rows: name one of {'; '.join(labels_on_data)}"
            )
    return baseline
