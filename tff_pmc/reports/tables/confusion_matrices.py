"""Confusion matrices, recall and F1 of each class, by scikit-learn's conventions.

They follow from the recorded predictions (`--predictions`), for the last and the best
round, on the examples of all clients and of the tenth of the clients with the lowest
accuracy in that round.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.client_statistics import client_means
from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.predictions import NO_CLASS, Predictions
from tff_pmc.record.record_error import RecordMissingError
from tff_pmc.record.results import Results
from tff_pmc.reports import REPORTS, Report, page_model, single_seed_only
from tff_pmc.reports.figures import run_labels
from tff_pmc.reports.figures.confusion_plot import ConfusionPart, confusion_plot
from tff_pmc.reports.statistics.confusion import class_metrics, confusion_matrix
from tff_pmc.reports.statistics.run_summary import results_metric

ALL, WORST = "all clients", "worst tenth"


@single_seed_only
def report(results: Results) -> Report:
    """Returns `classes.csv`, `classes.md` and `confusion.png` of one seed's runs.

    It is empty for several seeds, and where no run has recorded its predictions.
    """
    if results_metric(results) is not ACCURACY:
        return Report()
    tables, grid = [], [["run", "clients", "round", "class", *_HEAD]]
    parts = [part for label in results.labels for part in _parts(results, label)]
    for part in parts:
        table = class_metrics(part.counts)
        place = {"label": part.label, "round": part.rounds, "clients": part.clients}
        tables.append(table.assign(**place))
        worst = table[table["examples"] > 0].nsmallest(5, "f1")
        grid += [
            [part.label, part.clients, part.rounds, str(number), *_cells(row)]
            for number, row in worst.iterrows()
        ]
    if not tables:
        return Report()
    all_classes = pd.concat(tables).rename_axis("class").reset_index()
    first = ["label", "round", "clients", "class"]
    page = page_model.Page(
        "Classes",
        [
            page_model.Items(
                [
                    "Recall: the share of a class's examples that are recognized. "
                    "Precision: the share of right ones among the predictions of a "
                    "class. F1: their harmonic mean.",
                    "Best round: that of the highest accuracy on these examples, so "
                    "its numbers are optimistic. Worst tenth: the tenth of the "
                    "clients with the lowest accuracy in the round.",
                    "All classes are in classes.csv; below are the five with the "
                    "lowest F1.",
                ]
            ),
            page_model.Table(grid, left=4),
        ],
    )
    return Report(
        tables={"classes": all_classes[[*first, *_COLUMNS]]},
        pages={"classes": page},
        figures={"confusion": confusion_plot(parts, run_labels.title_of(results))},
        digits=6,
    )


_COLUMNS = ("examples", "recall", "precision", "f1")
_HEAD = ("examples", "recall", "precision", "F1")


def _parts(results: Results, label: str) -> Iterator[ConfusionPart]:
    """Returns the matrices of a run; none where it has recorded no predictions."""
    (seed,) = results.seeds
    run_rounds = results.rounds[results.rounds["label"] == label].set_index("round")
    last, best = int(run_rounds.index[-1]), int(run_rounds["accuracy"].idxmax())
    if not (tested := _last_predicted(results, seed, label)):
        return
    # The last round is without a test where --evaluate_every does not divide it.
    which, of_last = ("last", "") if tested == last else ("last tested", f" of {last}")
    and_best = " and best" if tested == best else ""
    rounds = {tested: f"{which}{and_best} round, {tested}{of_last}"}
    rounds.setdefault(best, f"best round, {best}")
    for round_num, words in rounds.items():
        try:
            predictions = results.predictions(seed, label, round_num)
        except RecordMissingError:
            continue
        recognized = predictions.predicted[predictions.predicted < NO_CLASS]
        num_classes = int(max(predictions.y.max(), recognized.max(initial=0))) + 1
        everyone = np.ones(len(predictions.y), bool)
        for clients, chosen in ((ALL, everyone), (WORST, _in_worst_tenth(predictions))):
            answers = predictions.y[chosen], predictions.predicted[chosen]
            counts = confusion_matrix(*answers, num_classes)
            yield ConfusionPart(label, words, clients, counts)


def _last_predicted(results: Results, seed: int, label: str) -> int:
    """Returns the last round whose predictions a run has recorded; 0 if none."""
    rounds = results.rounds
    for round_num in reversed(rounds.loc[rounds["label"] == label, "round"].tolist()):
        with contextlib.suppress(RecordMissingError):
            results.predictions(seed, label, int(round_num))
            return int(round_num)
    return 0


def _in_worst_tenth(predictions: Predictions) -> npt.NDArray[np.bool_]:
    """Returns whether each example is of a client of the worst tenth, [N]."""
    sizes = np.diff(predictions.row_splits)
    tested = np.flatnonzero(sizes)
    shares = client_means(predictions.correct, sizes)
    worst = tested[np.argsort(shares, kind="stable")[: -(-len(tested) // 10)]]
    return np.isin(np.repeat(np.arange(len(sizes)), sizes), worst)


def _cells(row: pd.Series[float]) -> list[str]:
    shares = [page_model.format_number(row[name], ".3f") for name in _COLUMNS[1:]]
    return [f"{row['examples']:.0f}", *shares]


REPORTS.register("classes", report)
