"""The papers' published tables as data, and ours with them.

The tables are the files of `results/paper`, which a wheel has inside.
"""

from __future__ import annotations

import functools
import itertools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Optional

import pandas as pd

from tff_pmc import project_files
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports.paper import folders
from tff_pmc.reports.statistics.rounds_to_target import HALF

FOLDER = project_files.folder("results/paper")
"""The folder of the published tables."""

_ORDERINGS = {
    ",".join(order): "≻".join(order).title()
    for order in itertools.permutations(["DS", "LD", "MD"])
}
DA_STUDIES: Mapping[str, Mapping[str, str]] = {
    "Ind": {
        "DS": "Dataset size (base)",
        "MD": "Model divergence",
        "LD": "Label diversity",
    },
    "MCA": _ORDERINGS,
    "Final": {f"{order} (backtracking)": row for order, row in _ORDERINGS.items()},
}
"""Study of DA's Table 1 -> label of a run -> its row, named as in the paper."""

_ROUNDS_TABLES = {
    "mnist_iid": "pmc_table2",
    "mnist_noniid": "pmc_table4",
    "celeba": "pmc_table6",
    "femnist": "da_table1",
}

Rounds = Mapping[tuple[int, int], float]
"""Target and share of the devices, percent -> rounds; NaN for a dash."""


class PublishedTableMissing(FileNotFoundError):
    """The file of a published table is missing."""


def table(name: str) -> pd.DataFrame:
    """Returns a published table as it stands in the paper, for example `da_table1`.

    It has a row a cell: the columns that identify the cell, `printed` (the text on the
    page) and `value` (float, NaN where the page has a dash). The name is that of its
    file in `results/paper`, or in the folder of a paper from outside; without one it is
    a `PublishedTableMissing`.
    """
    paths = [folder / f"{name}.csv" for folder in folders(FOLDER)]
    path = next(filter(pathlib.Path.exists, paths), paths[0])
    try:
        return pd.read_csv(path, dtype={"printed": str, "value": float})
    except FileNotFoundError:
        raise PublishedTableMissing(
            f"no published table {path}: the tables come with the project's "
            "checkout and its wheel"
        ) from None


def missing_row_notes(
    results: Results, rows: Sequence[str], what: str = "No run, so no row"
) -> list[str]:
    """Returns notes that name the rows without a run, and the runs without a row."""
    labels = results.labels
    missing = [label for label in rows if label not in labels]
    others = [label for label in labels if label not in rows]
    named = {what: missing, "Runs without a row in this table": others}
    return [f"{words}: {'; '.join(names)}." for words, names in named.items() if names]


def check_clients(results: Results) -> None:
    """Raises a `RecordError` if runs of a seed were tested on different clients."""
    sizes = results.clients.drop_duplicates(["label", "client"]).set_index("client")
    for label in results.labels:
        first = results.labels[0]
        clients, other = (
            sizes[sizes["label"] == run_label] for run_label in (label, first)
        )
        if not clients["examples"].equals(other["examples"]):
            raise RecordError(f"{first} and {label} were tested on different clients")


def stored_table(
    results: Results, name: str, needed: Sequence[str]
) -> Optional[pd.DataFrame]:
    """Returns a table of ours that was made when the runs still had predictions.

    Kept results have no predictions, which are large. It is the CSV `name` in their
    folder, or in that of their seed; None where none has the columns `needed`.
    """
    of_seed = [f"seed_{seed}" for seed in results.seeds if len(results.seeds) == 1]
    for place in [*of_seed, ""] if results.path else []:
        path = os.path.join(results.path, place, name)
        if os.path.exists(path):
            stored = pd.read_csv(path, dtype={"printed": str})
            if {*needed} <= {*stored}:
                stored = stored.drop(columns="data", errors="ignore")
                return stored.fillna({"printed": ""})
    return None


def join_published(
    ours: pd.DataFrame, theirs: pd.DataFrame, keys: Sequence[str]
) -> pd.DataFrame:
    """Returns our cells in our order, each with the published one of the same keys.

    The columns are `keys`, `ours`, `printed` (NaN where nothing was published, a dash
    where the paper did not reach), `published`, and `difference` = ours - published. A
    cell that is there twice is a `ValueError`.
    """
    keys = list(keys)
    left = ours.rename(columns={"value": "ours"})[[*keys, "ours"]]
    right = theirs.rename(columns={"value": "published"})
    right = right[[*keys, "printed", "published"]]
    cells = pd.merge(left, right, how="left", on=keys, validate="one_to_one")
    cells["difference"] = cells["ours"] - cells["published"]
    return cells


@functools.cache
def rounds_of_ds(name: str) -> Rounds:
    """Returns the rounds that DS, the baseline, needs in a table of PMC's or DA's."""
    if name == "da_table1":
        return _cells(name, study="Ind", row=DA_STUDIES["Ind"][BASELINE])
    return _cells(name, experiment=pmc_experiment(BASELINE))


@functools.cache
def rounds_saved(name: str, label: str) -> Rounds:
    """Returns the rounds that a run saves over DS in such a table, by the run's label.

    Empty for a run without a row in it.
    """
    if label == BASELINE:
        return {cell: 0.0 * rounds for cell, rounds in rounds_of_ds(name).items()}
    if name != "da_table1":
        return _cells(name, experiment=pmc_experiment(label))
    for study, rows in DA_STUDIES.items():
        if label in rows:
            printed, base = (
                _cells(name, study=study, row=rows[label]),
                rounds_of_ds(name),
            )
            return {cell: base[cell] - rounds for cell, rounds in printed.items()}
    return {}


def rounds_of_half(experiment: str, label: str) -> dict[int, float]:
    """Returns the published rounds until half of the devices reach a target, if any."""
    if experiment not in _ROUNDS_TABLES:
        return {}
    name = _ROUNDS_TABLES[experiment]
    base, saved = rounds_of_ds(name), rounds_saved(name, label)
    rounds_by_target = {
        t: base[t, p] - gain for (t, p), gain in saved.items() if p == HALF
    }
    return {
        target: rounds
        for target, rounds in rounds_by_target.items()
        if rounds == rounds
    }


def _cells(name: str, **row: str) -> Rounds:
    """Returns the cells of one row, without its averages."""
    rows = table(name)
    for column, value in row.items():
        rows = rows[rows[column] == value]
    shares = rows["devices" if "devices" in rows else "column"].str.rstrip("%")
    targets = rows["target_accuracy_pct"]
    return {
        (int(target), int(share)): float(rounds)
        for target, share, rounds in zip(targets, shares, rows["value"])
        if share.isdigit()
    }


def pmc_experiment(label: str) -> str:
    """Returns a run's label as PMC writes it, `LD≻DS≻MW`: MW is the divergence."""
    if label == BASELINE:
        return f"{BASELINE} (baseline)"
    return label.replace("MD", "MW").replace(",", "≻")
