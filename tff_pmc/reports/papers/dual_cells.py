"""The cells of Dual's Tables IV and V from runs.

Accuracy, precision, F1 and MCC are computed from a run's recorded predictions of its
test set. There are three choices of the epoch (round) that is reported:

* `ours_best_epoch`: the epoch with the most correct predictions on the reported test
  set itself, as in the paper; it favors whatever varies most over the epochs.
* `ours_last`: the last epoch.
* `ours_validated`: the epoch with the most correct predictions on other examples, if
  the run recorded them (`validation_correct` in `rounds.csv`).

If several epochs are equally good, the first is used.

A run of the dual criterion also chooses a lambda in each epoch: the paper tests the
models of all lambdas and keeps the best (III-B). `candidates.csv` has each model's
correct predictions on the examples that it was judged on.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.predictions import NO_CLASS
from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.statistics import published
from tff_pmc.reports.statistics.confusion import confusion_matrix

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
"""The algorithms that are rows: our name -> the paper's name."""

METRICS = ("Accuracy", "Precision", "F1 Score", "MCC")
"""The paper's columns."""

KEYS = ["algorithm", "clients", "metric"]
POSITIVE = 1
"""The positive class of precision and F1 in Table V (obstacles: blocked)."""

CHOICES = ("best_epoch", "last", "validated")
"""The choices of the epoch that is reported."""

_OURS = (*map("ours_{}".format, CHOICES), *map("{}_at".format, CHOICES))


def table_runs(results: Results) -> Results:
    """Returns the runs that are rows, by seed and in the paper's order of algorithms.

    In their `runs`, `algorithm` is as the paper prints it, and so is `clients`, such as
    `C1&C2&C3`. Two runs of one row and seed are a `RecordError`.
    """
    # Early runs with quantized updates have the name of the paper's quantization.
    runs = results.runs
    of_before = runs["algorithm"] == "quantized"
    of_before &= runs.reindex(columns=["quantized_levels"]).notna().any(axis=1)
    rows = results.only(runs["algorithm"].isin(ALGORITHMS) & ~of_before)
    places = {name: place for place, name in enumerate(ALGORITHMS)}
    order = np.lexsort((rows.runs["algorithm"].map(places), rows.runs["seed"]))
    rows.runs = rows.runs.assign(
        algorithm=rows.runs["algorithm"].map(ALGORITHMS),
        clients=[
            "&".join(f"C{number + 1}" for number in range(count))
            for count in rows.runs["data_clients"]
        ],
    )
    rows.runs = rows.runs.iloc[order].reset_index(drop=True)
    twice = rows.runs[rows.runs.duplicated(["seed", *KEYS[:2]], keep=False)]
    if len(twice):
        first, second = twice.iloc[0], twice.iloc[1]
        raise RecordError(
            f"{first['label']} and {second['label']} are both runs of "
            f"{first['algorithm']} with {first['clients']}"
        )
    return rows


def tidy_rows(results: Results, table: int = 4) -> pd.DataFrame:
    """Returns the cells of the runs that are rows, with the published ones.

    They are computed from predictions. If the runs have none, they are read from the
    kept table: `dual_tableN_seeds.csv` or, for one seed, `dual_tableN.csv`.

    The columns are `seed`, `KEYS` (the algorithm as the paper prints it),
    `ours_best_epoch`, `ours_last`, `ours_validated` (NaN where nothing was validated),
    their epochs `best_epoch_at`, `last_at`, `validated_at`, `printed`, `published`, and
    `difference` (best epoch minus published). All are shares from 0 to 1.
    """
    rows = table_runs(results)
    try:
        return _computed_cells(rows, table)
    except RecordMissingError:
        kept = _stored_cells(rows, table)
        if kept is None:
            raise
        return kept


def _computed_cells(rows: Results, table: int) -> pd.DataFrame:
    positive = None if table == 4 else POSITIVE
    lines: list[dict[str, Any]] = []
    for _, run in rows.runs.iterrows():
        seed, label = run["seed"], run["label"]
        epochs = _chosen_epochs(rows.only(seed=seed, label=label))
        at = {f"{choice}_at": epochs.get(choice) for choice in CHOICES}
        metrics: dict[str, dict[str, float]] = {choice: {} for choice in CHOICES}
        for choice, epoch in epochs.items():
            predictions = rows.predictions(seed, label, epoch)
            metrics[choice] = measures(predictions.y, predictions.predicted, positive)
        for metric in METRICS:
            ours = {f"ours_{c}": metrics[c].get(metric, math.nan) for c in CHOICES}
            key = dict(zip(KEYS, (run["algorithm"], run["clients"], metric)))
            lines.append({"seed": seed, **key, **ours, **at})
    cells = pd.DataFrame(lines, columns=["seed", *KEYS, *_OURS])
    cells = cells.astype({"validated_at": "Int64"})
    theirs = published.table(f"dualcriterion_table{table}")
    theirs = theirs.rename(columns={"value": "published"})
    cells = pd.merge(cells, theirs, how="left", on=KEYS).fillna({"printed": ""})
    difference = cells["ours_best_epoch"] - cells["published"]
    return cells.assign(difference=difference)


def _stored_cells(rows: Results, table: int) -> Optional[pd.DataFrame]:
    """Returns the kept cells of the runs, or None if cells of a run are missing."""
    needed = (*KEYS, "ours_best_epoch", "ours_last")
    stored = published.stored_table(rows, f"dual_table{table}_seeds.csv", needed)
    if stored is None and len(rows.seeds) == 1:
        stored = published.stored_table(rows, f"dual_table{table}.csv", needed)
        if stored is not None:
            stored.insert(0, "seed", rows.seeds[0])
    if stored is None:
        return None
    where = ["seed", *KEYS[:2]]
    cells = pd.merge(rows.runs[where], stored, on=where)
    return cells if len(cells) == len(METRICS) * len(rows.runs) else None


def _chosen_epochs(run: Results) -> dict[str, int]:
    """Returns the epoch of each choice of one run."""
    rounds = run.rounds.set_index("round")
    chosen_lambdas = [rounds["correct"].idxmax(), rounds.index[-1]]
    validated = rounds.get("validation_correct")
    if validated is not None and validated.notna().any():
        chosen_lambdas.append(validated.idxmax())
    return dict(zip(CHOICES, map(int, chosen_lambdas)))


def measures(
    y: npt.NDArray[np.int64],
    predicted: npt.NDArray[np.int64],
    positive: Optional[int] = None,
) -> dict[str, float]:
    """Computes `METRICS` from labels and predicted classes, both int [n].

    Precision of a class is the share of its predictions that is correct, 0 if it is
    never predicted; F1 of a class is `2 tp / (2 tp + fp + fn)`. Both are those of the
    class `positive`, as usual with two classes (Table V), or macro averages: the plain
    mean over the classes that occur among labels or predictions (Table IV). A missing
    prediction (`NO_CLASS`) is wrong, and is not a class. MCC is Matthews correlation
    coefficient, for many classes Gorodkin's `R_K` (2004); 0 if all labels, or all
    predictions, are of one class.
    """
    classes = max(
        2, 1 + int(max(y.max(), predicted[predicted < NO_CLASS].max(initial=0)))
    )
    # Python's integers, because products of four counts may not fit 64 bits.
    counts = confusion_matrix(y, predicted, classes).astype(object)
    right, total = np.diag(counts), len(y)
    labels, answers = counts.sum(axis=1), counts.sum(axis=0)
    other_answers, answers = answers[-1], answers[:-1]
    # Without predictions of a class its precision is 0 / 1 instead of 0 / 0.
    precision = right / np.maximum(answers, 1)
    f1 = 2 * right / np.maximum(labels + answers, 1)
    occurring = np.flatnonzero(labels + answers > 0)
    chosen = occurring if positive is None else [positive]
    covariance = right.sum() * total - labels @ answers
    squares = answers @ answers + other_answers**2
    spread = (total**2 - labels @ labels) * (total**2 - squares)
    values = (
        right.sum() / total,
        precision[chosen].astype(float).mean(),
        f1[chosen].astype(float).mean(),
        covariance / math.sqrt(spread) if spread else 0.0,
    )
    return dict(zip(METRICS, map(float, values)))


def chosen_lambdas(rows: Results) -> pd.DataFrame:
    """Returns one row per run and epoch in which lambda was searched.

    The columns are `seed`, `clients`, `epoch`, `lambda` (chosen), `equally_good` (how
    many lambdas had the same accuracy), and accuracies on the judging examples:
    `chosen`, `lambda_0` (the quantity alone; NaN where 0 was not tested), `mean` and
    `lowest`. `rows` are those of `table_runs`.
    """
    runs = rows.runs[rows.runs["algorithm"] == ALGORITHMS["dual"]]
    tested = pd.merge(runs[[*RUN_KEY, "clients"]], rows.candidates, on=RUN_KEY)
    tested = tested[tested["kind"] == "trial"]
    tested = tested.assign(
        value=tested["ordering"].str.removeprefix("lambda=").astype(float),
        accuracy=tested["correct"] / tested["examples"],
    )
    where = ["seed", "clients", "round"]
    best = tested[tested["kept"] == 1].groupby(where, sort=False).first()
    most = tested.join(best["correct"].rename("most"), on=where)
    columns = {
        "lambda": best["value"],
        "equally_good": (most["correct"] == most["most"])
        .groupby([most[name] for name in where])
        .sum(),
        "chosen": best["accuracy"],
        "lambda_0": tested[tested["value"] == 0].groupby(where)["accuracy"].first(),
        "mean": tested.groupby(where)["accuracy"].mean(),
        "lowest": tested.groupby(where)["accuracy"].min(),
    }
    table = pd.DataFrame(columns).loc[best.index].reset_index()
    return table.rename(columns={"round": "epoch"})
