"""The cells of Dual's Tables IV and V from runs.

A run's answers on its test set (the record of predictions) give accuracy, precision,
F1 and MCC. Of which epoch (round) is a choice:

* `ours_best_epoch`: the epoch with the most right answers on the very test set that is
  reported, as the paper has it; it favors whatever varies most over the epochs.
* `ours_last`: the last epoch.
* `ours_validated`: the epoch with the most right answers on other examples, where the
  run recorded them (`validation_correct` in `rounds.csv`).

Of equally good epochs the first counts.

A run of the dual criterion has a lambda in each epoch, too: an epoch of the paper's
tests the models of all lambdas and keeps the best (III-B). `candidates.csv` has each
model's right answers on the examples that it was judged on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.read import Run
from tff_pmc.reports.kept import cells_beside
from tff_pmc.reports.paired import by_label
from tff_pmc.reports.papers import published

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
"""The names of the systems that are rows, and those the paper prints, in its order."""

METRICS = ("Accuracy", "Precision", "F1 Score", "MCC")
"""The paper's columns."""

KEYS = ["algorithm", "clients", "metric"]
POSITIVE = 1
"""The class of Table V that precision and F1 are of (obstacles: blocked)."""

CHOICES = ("best_epoch", "last", "validated")
"""The names of the choices of an epoch."""


def rows_of(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs that are rows, each once, in the paper's order of algorithms."""
    order, rows = list(ALGORITHMS), filter(is_row, runs)
    found = by_label(rows, lambda run: " with ".join(_key(run))).values()
    return sorted(found, key=lambda run: order.index(run.settings["system"]))


def clients_of(run: Run) -> str:
    """Returns the clients of a run as the paper prints them, `C1&C2&C3`."""
    return "&".join(f"C{number + 1}" for number in range(run.data["clients"]))


def tidy_rows(runs: Sequence[Run], table: int) -> pd.DataFrame:
    """Returns the cells from runs with predictions on record, or from the CSV beside.

    The columns are `KEYS` (the algorithm as the paper prints it), `ours_best_epoch`,
    `ours_last`, `ours_validated` (NaN where nothing was validated), and their epochs,
    `best_epoch_at`, `last_at`, `validated_at`. Cells of a CSV have their `difference`
    from the published ones, too, which was computed before rounding.
    """
    members = rows_of(runs)
    needed = (*KEYS, "ours_best_epoch", "ours_last")
    kept = cells_beside(members, f"dual_table{table}.csv", needed)
    if kept is not None:
        there = kept.set_index(KEYS[:2]).index.isin([*map(_key, members)])
        found: pd.DataFrame = kept[there].drop(columns=["printed", "published"])
        return found
    positive = None if table == 4 else POSITIVE
    rows: list[dict[str, Any]] = []
    for run in members:
        epochs = _epochs(run)
        at = {f"{choice}_at": epochs.get(choice) for choice in CHOICES}
        answers = {choice: run.predictions(epoch) for choice, epoch in epochs.items()}
        of = {c: measures(a.y, a.predicted, positive) for c, a in answers.items()}
        for metric in METRICS:
            ours = {f"ours_{c}": of.get(c, {}).get(metric, math.nan) for c in CHOICES}
            rows.append({**dict(zip(KEYS, (*_key(run), metric))), **ours, **at})
    tidy: pd.DataFrame = pd.DataFrame(rows).astype({"validated_at": "Int64"})
    return tidy


def printed(label: str, name: str, clients: str, metric: str) -> float:
    """Returns a cell of a published table in points; NaN where there is none."""
    cells = published.table(name).set_index(KEYS)["value"]
    key = ALGORITHMS.get(label.partition(" (")[0]), clients, metric
    return 100 * float(cells[key]) if key in cells.index else math.nan


def is_row(run: Run) -> bool:
    """Returns whether the paper has the system of a run.

    Runs of before that quantized updates have the name of the paper's quantization.
    """
    system = run.settings["system"]
    of_before = system == "quantized" and "quantized_levels" in run.settings
    return system in ALGORITHMS and not of_before


def _key(run: Run) -> tuple[str, str]:
    """Returns the algorithm and the clients of a run, as the paper prints them."""
    return ALGORITHMS[run.settings["system"]], clients_of(run)


def _epochs(run: Run) -> dict[str, int]:
    """Returns the epoch of each choice."""
    number, key = run.rounds["round"], "validation_correct"
    chosen = [number[run.rounds["correct"].idxmax()], number.iloc[-1]]
    if key in run.rounds and run.rounds[key].notna().any():
        chosen.append(number[run.rounds[key].idxmax()])
    return dict(zip(CHOICES, map(int, chosen)))


def measures(
    y: npt.NDArray[np.int64],
    predicted: npt.NDArray[np.int64],
    positive: Optional[int] = None,
) -> dict[str, float]:
    """Returns `METRICS` of classes, int [n], and the answers to them.

    Precision is the share of the answers of a class that is right, 0 for a class that
    is never answered; F1 of a class is `2 tp / (2 tp + fp + fn)`. Both are of the class
    `positive`, as usual with two classes (Table V), or macro averages: the plain mean
    over the classes that occur among labels or answers (Table IV). MCC is Matthews
    correlation coefficient, of many classes Gorodkin's `R_K` (2004); 0 where all
    labels, or all answers, are of one class.
    """
    # Whole numbers of Python's, because products of four counts may not fit 64 bits.
    classes = max(2, 1 + int(max(y.max(), predicted.max())))
    places = y.astype(np.int64) * classes + predicted
    counts = np.bincount(places, minlength=classes**2)
    confusion = counts.reshape(classes, classes).astype(object)  # [true, answered]
    right, total = np.diag(confusion), len(y)
    labels, answers = confusion.sum(axis=1), confusion.sum(axis=0)
    # Every right answer is among the answers, so 0 / 1 stands for 0 / 0.
    precision = right / np.maximum(answers, 1)
    f1 = 2 * right / np.maximum(labels + answers, 1)
    chosen = labels + answers > 0 if positive is None else [positive]
    covariance = right.sum() * total - labels @ answers
    spread = (total**2 - labels @ labels) * (total**2 - answers @ answers)
    values = (
        right.sum() / total,
        precision[chosen].astype(float).mean(),
        f1[chosen].astype(float).mean(),
        covariance / math.sqrt(spread) if spread else 0.0,
    )
    return dict(zip(METRICS, map(float, values)))


def searches(runs: Sequence[Run]) -> list[Run]:
    """Returns the runs whose lambda was searched."""
    return [
        run
        for run in runs
        if run.settings.get("system") == "dual" and run.candidates is not None
    ]


def chosen(run: Run) -> pd.DataFrame:
    """Returns a row for each epoch of a run whose lambda was searched.

    The columns are `clients`, `epoch`, `lambda` (chosen), `equally_good` (how many
    lambdas had as many right answers), and accuracies on the judged examples: `chosen`,
    `lambda_0` (the quantity alone; NaN where 0 was not tested), `mean` and `lowest`.
    """
    assert run.candidates is not None
    tested = run.candidates.assign(
        value=run.candidates["ordering"].str.removeprefix("lambda=").astype(float),
        accuracy=run.candidates["correct"] / run.candidates["examples"],
    )
    by_epoch = tested.groupby("round")
    best = tested[tested["kept"] == 1].groupby("round").first()
    as_good = tested["correct"] == tested["round"].map(best["correct"])
    zero = tested[tested["value"] == 0].groupby("round")["accuracy"].first()
    columns = {
        "clients": clients_of(run),
        "epoch": best.index,
        "lambda": best["value"],
        "equally_good": as_good.groupby(tested["round"]).sum(),
        "chosen": best["accuracy"],
        "lambda_0": zero.reindex(best.index),
        "mean": by_epoch["accuracy"].mean(),
        "lowest": by_epoch["accuracy"].min(),
    }
    return pd.DataFrame(columns).reset_index(drop=True)
