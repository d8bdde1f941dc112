"""Dual's Tables IV and V from runs, ours beside the published numbers.

A run's answers on its test set (the record of predictions) give accuracy, precision,
F1 and MCC. Of which epoch (round) is a choice:

* `ours_best_epoch`: the epoch with the most right answers on the very test set that is
  reported, as the paper has it; it favors whatever varies most over the epochs.
* `ours_last`: the last epoch.
* `ours_validated`: the epoch with the most right answers on other examples, where the
  run recorded them (`validation_correct` in `rounds.csv`).

Of equally good epochs the first counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import pandas as pd

from leaf_data import DataError
from tff_pmc.reports import grids, published
from tff_pmc.reports.classification import confusion_matrix, measures
from tff_pmc.reports.predictions import read_predictions
from tff_pmc.reports.read import caveat_of, conditions, read_info

ALGORITHMS = {
    "dual": "Dual-Criterion Weighted",
    "simple_average": "Simple Average",
    "weighted_mean": "Weighted Mean",
    "median": "Median",
    "momentum": "Momentum",
    "personalized": "Personalized",
    "laplace": "Differential Privacy",
    "quantized": "Quantization",
}
"""Our names, and those the paper prints, in its order."""

METRICS = {
    "Accuracy": "accuracy",
    "Precision": "precision",
    "F1 Score": "f1",
    "MCC": "mcc",
}
"""The paper's columns, and the attributes of `classification.Measures`."""

KEYS = ["algorithm", "clients", "metric"]
TITLES = {4: "Dual Table IV (CIFAR-10)", 5: "Dual Table V (obstacles)"}
STAND_IN = "Stand-in data: a difference from the paper would mean nothing."

_CHOICES = ("best_epoch", "last", "validated")
_SAME = ("Simple Average", "Weighted Mean")


def write(
    runs: Mapping[tuple[str, str], str],
    output_dir: str,
    *,
    table: int = 4,
    positive: int = 1,
) -> str:
    """Writes the table; returns it as text for a terminal.

    `dual_tableN.csv` and `dual_tableN.md`: a row for each algorithm, set of clients and
    metric.

    Args:
        runs: (algorithm, clients) -> run folder, written with predictions. The
            algorithm is a key of `ALGORITHMS`, clients as printed, `C1&C2&C3`. What the
            paper does not have stands without a published number.
        output_dir: where the files go; they are replaced.
        table: 4, or 5: two classes, whose precision and F1 are those of `positive`.
        positive: of Table V's two classes.

    Raises:
        DataError: there are no runs, or a record is missing or broken; it is named.
        ValueError: there is no such table.
    """
    if table not in TITLES:
        raise ValueError(f"table must be 4 or 5, got {table}")
    if not runs:
        raise DataError(f"{TITLES[table]}: there are no runs")
    ours = tidy_rows(runs, positive=None if table == 4 else positive)
    notes = [
        *dict.fromkeys(_conditions(folder) for folder in runs.values()),
        "best epoch: chosen on the reported test set, as printed. last: the last. "
        "validated: the best one on other examples, where a run recorded them. "
        "difference: best epoch minus published.",
        "Precision and F1 are "
        + (
            "macro averages."
            if table == 4
            else f"of the class {positive} (obstacles: blocked)."
        ),
    ]
    try:
        theirs = published.table(f"dualcriterion_table{table}")
    except published.PublishedTableMissing as error:
        theirs = pd.DataFrame(columns=[*KEYS, "printed", "value"])
        notes.append(f"No comparison: {error}.")
    if table == 4:
        notes += noise(theirs)
    compared = ours.assign(value=ours["ours_best_epoch"])
    beside = published.beside(compared, theirs, KEYS).drop(columns="ours")
    cells = pd.merge(ours, beside, on=KEYS)
    infos = [read_info(folder) for folder in runs.values()]
    notes += caveats(infos)
    if STAND_IN in notes:
        cells["difference"] = float("nan")
    os.makedirs(output_dir, exist_ok=True)
    path = os.path.join(output_dir, f"dual_table{table}")
    cells.to_csv(f"{path}.csv", index=False, float_format="%.10g")
    columns = [*(f"ours_{name}" for name in _CHOICES), "published", "difference"]
    parts = {
        str(clients): grid(part, columns)
        for clients, part in cells.groupby("clients", sort=False)
    }
    return grids.write(f"{path}.md", TITLES[table], notes, parts)


def tidy_rows(
    runs: Mapping[tuple[str, str], str], *, positive: Optional[int] = None
) -> pd.DataFrame:
    """The cells from runs.

    Args:
        runs: see `write`.
        positive: see `classification.measures`.

    Returns:
        The columns `KEYS` (the algorithm as the paper prints it), `ours_best_epoch`,
        `ours_last`, `ours_validated` (NaN where nothing was validated), and their
        epochs, `best_epoch_at`, `last_at`, `validated_at`.

    Raises:
        DataError: see `write`.
    """
    order = [*ALGORITHMS, *(algorithm for algorithm, _ in runs)]
    rows: list[dict[str, Any]] = []
    for algorithm, clients in sorted(runs, key=lambda key: order.index(key[0])):
        folder = runs[algorithm, clients]
        epochs = _epochs(folder)
        found = {}
        for epoch in set(epochs.values()):
            answers = read_predictions(folder, epoch)
            confusion = confusion_matrix(answers.y, answers.predicted)
            found[epoch] = measures(confusion, positive=positive)
        for metric, name in METRICS.items():
            row: dict[str, Any] = {
                "algorithm": ALGORITHMS.get(algorithm, algorithm),
                "clients": clients,
                "metric": metric,
            }
            for choice in _CHOICES:
                chosen = found.get(epochs.get(choice, 0))
                row[f"ours_{choice}"] = getattr(chosen, name, float("nan"))
            rows.append({**row, **{f"{c}_at": epochs.get(c) for c in _CHOICES}})
    tidy: pd.DataFrame = pd.DataFrame(rows).astype({"validated_at": "Int64"})
    return tidy


def noise(theirs: pd.DataFrame) -> list[str]:
    """A sentence on what equal clients say of the published table's noise.

    With clients of one size the simple average and the weighted mean are one algorithm,
    so that a difference between their rows is what chance alone does. Ours share all
    seeds and begin to differ by the rounding of a sum, which training amplifies.

    Args:
        theirs: the published table.
    """
    accuracy = theirs[theirs["metric"] == "Accuracy"]
    wide = accuracy.pivot(index="clients", columns="algorithm", values="value")
    if not set(_SAME) <= set(wide):
        return []
    gaps = (wide[_SAME[0]] - wide[_SAME[1]]).abs().dropna()
    texts = [f"{gap:.4f} ({clients})" for clients, gap in gaps.items()]
    return [
        f"Noise: with clients of one size {_SAME[0]} and {_SAME[1]} are the same "
        f"algorithm; in the published table their accuracies differ by "
        f"{' and '.join(texts)}, so differences of that size mean nothing. Our two "
        "share their seeds, and only the rounding of their sums differs: what training "
        "makes of that is the least noise of our rows. Other seeds add to it (--seeds)."
    ]


def caveats(infos: Sequence[Mapping[str, Any]]) -> list[str]:
    """What keeps runs, each a `run.json`, from being held against the paper."""
    notes = [STAND_IN] if any(caveat_of(info["data"]) for info in infos) else []
    options = [info["data"].get("options", {}) for info in infos]
    fraction = min(float(own.get("image_fraction", 1)) for own in options)
    if fraction < 1:
        notes.append(
            f"On {fraction:g} of the images: the differences are no comparison with "
            "the paper, which had all of them."
        )
    return notes


def _conditions(folder: str) -> str:
    try:
        return conditions(read_info(folder))
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder}: run.json cannot be read: {error}") from error


def _epochs(folder: str) -> dict[str, int]:
    """The rounds chosen, by the rule that chooses."""
    name = os.path.join(folder, "rounds.csv")
    try:
        rounds = pd.read_csv(name)
        number, key = rounds["round"], "validation_correct"
        chosen = [number[rounds["correct"].idxmax()], number.iloc[-1]]
        if key in rounds and rounds[key].notna().any():
            chosen.append(number[rounds[key].idxmax()])
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    return dict(zip(_CHOICES, map(int, chosen)))


def grid(cells: pd.DataFrame, columns: Sequence[str]) -> grids.Grid:
    """A line for each algorithm and metric.

    Args:
        cells: the columns `KEYS` and `columns`, numbers from 0 to 1 or NaN.
        columns: what stands beside; `difference` is shown with its sign.
    """
    head = [name.replace("ours_", "").replace("_", " ") for name in columns]
    lines = [["algorithm", "metric", *head]]
    for cell in cells.to_dict("records"):
        texts = [
            ""
            if pd.isna(cell[name])
            else f"{cell[name]:{'+' if name == 'difference' else ''}.4f}"
            for name in columns
        ]
        first = cell["algorithm"] if cell["metric"] == next(iter(METRICS)) else ""
        lines.append([first, cell["metric"], *texts])
    return lines
