"""The cells of Dual's Tables IV and V from runs.

A run's answers on its test set (the recorded predictions) give accuracy, precision,
F1 and MCC. Of which epoch (round) is a choice:

* `ours_best_epoch`: the epoch with the most right answers on the very test set that is
  reported, as in the paper; it favors whatever varies most over the epochs.
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
"""The algorithms that are rows, by their names, and as the paper names them."""

METRICS = ("Accuracy", "Precision", "F1 Score", "MCC")
"""The paper's columns."""

KEYS = ["algorithm", "clients", "metric"]
POSITIVE = 1
"""The class of Table V that precision and F1 are of (obstacles: blocked)."""

CHOICES = ("best_epoch", "last", "validated")
"""The names of the choices of an epoch."""

_OURS = (*(f"ours_{one}" for one in CHOICES), *(f"{one}_at" for one in CHOICES))


def table_runs(results: Results) -> Results:
    """Returns the runs that are rows, by seed and in the paper's order of algorithms.

    In their `runs`, `algorithm` is as the paper prints it, and so is `clients`, such as
    `C1&C2&C3`. Two runs of one row and seed are a `RecordError`.
    """
    # Runs of before that quantized updates have the name of the paper's quantization.
    runs = results.runs
    of_before = runs["algorithm"] == "quantized"
    of_before &= runs.reindex(columns=["quantized_levels"]).notna().any(axis=1)
    found = results.only(runs["algorithm"].isin(ALGORITHMS) & ~of_before)
    places = {name: place for place, name in enumerate(ALGORITHMS)}
    order = np.lexsort((found.runs["algorithm"].map(places), found.runs["seed"]))
    found.runs = found.runs.assign(
        algorithm=found.runs["algorithm"].map(ALGORITHMS),
        clients=[
            "&".join(f"C{number + 1}" for number in range(count))
            for count in found.runs["data_clients"]
        ],
    )
    found.runs = found.runs.iloc[order].reset_index(drop=True)
    twice = found.runs[found.runs.duplicated(["seed", *KEYS[:2]], keep=False)]
    if len(twice):
        first, second = twice.iloc[0], twice.iloc[1]
        raise RecordError(
            f"{first['label']} and {second['label']} are both runs of "
            f"{first['algorithm']} with {first['clients']}"
        )
    return found


def tidy_rows(results: Results, table: int = 4) -> pd.DataFrame:
    """Returns the cells of the runs that are rows, with the published ones.

    They are computed from predictions; where the runs have none, they are those that
    were kept, in `dual_tableN_seeds.csv` or, of one seed, `dual_tableN.csv`.

    The columns are `seed`, `KEYS` (the algorithm as the paper prints it),
    `ours_best_epoch`, `ours_last`, `ours_validated` (NaN where nothing was validated),
    their epochs `best_epoch_at`, `last_at`, `validated_at`, `printed`, `published`, and
    `difference` (best epoch minus published). All are shares from 0 to 1.
    """
    rows = table_runs(results)
    try:
        return _computed(rows, table)
    except RecordMissingError:
        kept = _kept(rows, table)
        if kept is None:
            raise
        return kept


def _computed(rows: Results, table: int) -> pd.DataFrame:
    positive = None if table == 4 else POSITIVE
    lines: list[dict[str, Any]] = []
    for _, run in rows.runs.iterrows():
        seed, label = run["seed"], run["label"]
        epochs = _epochs(rows.only(seed=seed, label=label))
        at = {f"{choice}_at": epochs.get(choice) for choice in CHOICES}
        of = {}
        for choice, epoch in epochs.items():
            found = rows.predictions(seed, label, epoch)
            of[choice] = measures(found.y, found.predicted, positive)
        for metric in METRICS:
            ours = {f"ours_{c}": of.get(c, {}).get(metric, math.nan) for c in CHOICES}
            where = dict(zip(KEYS, (run["algorithm"], run["clients"], metric)))
            lines.append({"seed": seed, **where, **ours, **at})
    cells = pd.DataFrame(lines, columns=["seed", *KEYS, *_OURS])
    cells = cells.astype({"validated_at": "Int64"})
    theirs = published.table(f"dualcriterion_table{table}")
    theirs = theirs.rename(columns={"value": "published"})
    cells = pd.merge(cells, theirs, how="left", on=KEYS).fillna({"printed": ""})
    difference = cells["ours_best_epoch"] - cells["published"]
    return cells.assign(difference=difference)


def _kept(rows: Results, table: int) -> Optional[pd.DataFrame]:
    """Returns the kept cells of the runs; None where some of them were not kept."""
    needed = (*KEYS, "ours_best_epoch", "ours_last")
    found = published.stored_table(rows, f"dual_table{table}_seeds.csv", needed)
    if found is None and len(rows.seeds) == 1:
        found = published.stored_table(rows, f"dual_table{table}.csv", needed)
        if found is not None:
            found.insert(0, "seed", rows.seeds[0])
    if found is None:
        return None
    where = ["seed", *KEYS[:2]]
    cells = pd.merge(rows.runs[where], found, on=where)
    return cells if len(cells) == len(METRICS) * len(rows.runs) else None


def _epochs(run: Results) -> dict[str, int]:
    """Returns the epoch of each choice of one run."""
    rounds = run.rounds.set_index("round")
    chosen = [rounds["correct"].idxmax(), rounds.index[-1]]
    validated = rounds.get("validation_correct")
    if validated is not None and validated.notna().any():
        chosen.append(validated.idxmax())
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
    over the classes that occur among labels or answers (Table IV). An answer of no
    class (`NO_CLASS`) is wrong, and no class itself. MCC is Matthews
    correlation coefficient, of many classes Gorodkin's `R_K` (2004); 0 where all
    labels, or all answers, are of one class.
    """
    classes = max(
        2, 1 + int(max(y.max(), predicted[predicted < NO_CLASS].max(initial=0)))
    )
    # Whole numbers of Python's, because products of four counts may not fit 64 bits.
    counts = confusion_matrix(y, predicted, classes).astype(object)
    right, total = np.diag(counts), len(y)
    labels, answers = counts.sum(axis=1), counts.sum(axis=0)
    other_answers, answers = answers[-1], answers[:-1]
    # Every right answer is among the answers, so 0 / 1 stands for 0 / 0.
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


def chosen(rows: Results) -> pd.DataFrame:
    """Returns a row for each run and epoch in which lambda was searched.

    The columns are `seed`, `clients`, `epoch`, `lambda` (chosen), `equally_good` (how
    many lambdas had as many right answers), and accuracies on the judged examples:
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
