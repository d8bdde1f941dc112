"""Confusion matrices, recall and F1 of each class, by scikit-learn's conventions.

They follow from the recorded predictions (`--predictions`), for the last and the best
round, on the examples of all clients and of the tenth of the clients with the lowest
accuracy in that round. With several seeds the counts are summed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.client_statistics import client_means
from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.predictions import NO_CLASS, Predictions
from tff_pmc.record.record_error import RecordMissingError
from tff_pmc.record.results import Results
from tff_pmc.reports import REPORTS, Report, page_model
from tff_pmc.reports.figures import run_labels
from tff_pmc.reports.figures.confusion_plot import (
    ConfusionPart,
    class_f1_plot,
    confusion_plot,
)
from tff_pmc.reports.statistics.confusion import class_metrics, confusion_matrix
from tff_pmc.reports.statistics.row_titles import row_titles
from tff_pmc.reports.statistics.run_summary import results_metric

ALL, WORST = "all clients", "worst tenth"

MAX_LISTED = 5
"""The classes of the lowest F1 that the page lists; fewer are all listed, in order."""

_SEEDS = (
    "Counts are summed over the seeds: of each seed the last tested round, its best "
    "round, and the worst tenth of its clients."
)


def report(results: Results) -> Report:
    """Returns `classes.csv`, `classes.md`, `classes.png` and `confusion.png`.

    It is empty where no run has recorded its predictions. Classes have their names
    where the runs' data has such.
    """
    if results_metric(results) is not ACCURACY:
        return Report()
    parts = [part for label in results.labels for part in _parts(results, label)]
    if not parts:
        return Report()
    tables = [_class_table(part) for part in parts]
    has_more = max(sum(table["examples"] > 0) for table in tables) > MAX_LISTED
    titles = row_titles(results)
    grid = [["run", "clients", "round", "class", *_HEAD]]
    for part, table in zip(parts, tables):
        shown = table[table["examples"] > 0]
        shown = shown.nsmallest(MAX_LISTED, "f1") if has_more else shown
        names = part.names()
        grid += [
            [titles[part.label], part.clients, part.rounds, names[number], *_cells(row)]
            for number, row in shown.iterrows()
        ]
    all_classes = pd.concat(tables).rename_axis("class").reset_index()
    first = ["label", "round", "clients", "class"]
    first += ["name"] * ("name" in all_classes)
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
                    *[_SEEDS] * (len(results.seeds) > 1),
                    *[
                        "All classes are in classes.csv; below are the five with the "
                        "lowest F1."
                    ]
                    * has_more,
                ]
            ),
            page_model.Table(grid, left=4),
        ],
    )
    title = run_labels.title_of(results)
    of_last = [part for part in parts if part.rounds.startswith(_LAST)]
    return Report(
        tables={"classes": all_classes[[*first, *_COLUMNS]]},
        pages={"classes": page},
        figures={
            "classes": class_f1_plot(of_last, title),
            "confusion": confusion_plot(parts, title),
        },
        digits=6,
    )


_COLUMNS = ("examples", "recall", "precision", "f1")
_HEAD = ("examples", "recall", "precision", "F1")
_LAST = "last"


def _class_table(part: ConfusionPart) -> pd.DataFrame:
    """Returns the metrics of each class of a matrix, with what the matrix is of."""
    table = class_metrics(part.counts)
    names = {"name": part.names()} if part.class_names else {}
    about = {"label": part.label, "round": part.rounds, "clients": part.clients}
    return table.assign(**about, **names)


def _parts(results: Results, label: str) -> Iterator[ConfusionPart]:
    """Yields the matrices of a row; none where it has recorded no predictions."""
    runs = results.rounds[results.rounds["label"] == label]
    tested, best, last = {}, {}, {}  # Each a round by seed.
    for seed, run in runs.groupby("seed"):
        if round_num := _last_predicted(results, int(seed), label):
            tested[int(seed)] = round_num
            best[int(seed)] = int(run.set_index("round")["accuracy"].idxmax())
            last[int(seed)] = int(run["round"].iloc[-1])
    if not tested:
        return
    # The last round is without a test where --evaluate_every does not divide it.
    which, of_last = _LAST, ""
    if tested != last:
        which = f"{_LAST} tested"
        of_last = f" of {min(last.values())}" if _is_constant(last.values()) else ""
    chosen = {f"{which} round": (tested, of_last), "best round": (best, "")}
    if tested == best:
        chosen = {f"{which} and best round": (tested, of_last)}
    for words, (round_of_seed, suffix) in chosen.items():
        recorded = []
        for seed, round_num in round_of_seed.items():
            with contextlib.suppress(RecordMissingError):
                recorded.append(results.predictions(seed, label, round_num))
        where = f"{words} of each seed"
        if _is_constant(round_of_seed.values()):
            where = f"{words}, {min(round_of_seed.values())}{suffix}"
        if len(recorded) < len(results.seeds):
            where += f" ({len(recorded)} of {len(results.seeds)} seeds)"
        names = _class_names(results, label)
        for clients, counts in _summed_counts(recorded).items():
            yield ConfusionPart(label, where, clients, counts, names)


def _is_constant(numbers: Iterable[int]) -> bool:
    """Returns whether all numbers are the same."""
    return len({*numbers}) == 1


def _summed_counts(
    recorded: Sequence[Predictions],
) -> Mapping[str, npt.NDArray[np.int64]]:
    """Returns the matrices of all clients and of the worst tenth, summed over seeds."""
    if not recorded:
        return {}
    num_classes = 1 + max(
        int(labels.max(initial=0))
        for predictions in recorded
        for labels in (
            predictions.y,
            predictions.predicted[predictions.predicted < NO_CLASS],
        )
    )
    sums = {
        name: np.zeros([num_classes, num_classes + 1], int) for name in (ALL, WORST)
    }
    for predictions in recorded:
        everyone = np.ones(len(predictions.y), bool)
        for clients, mask in ((ALL, everyone), (WORST, _in_worst_tenth(predictions))):
            answers = predictions.y[mask], predictions.predicted[mask]
            sums[clients] += confusion_matrix(*answers, num_classes)
    return sums


def _class_names(results: Results, label: str) -> Sequence[str]:
    """Returns the names of the classes of a row's data; empty if there are none."""
    if "data_classes" not in results.runs:
        return ()
    names = results.runs.loc[results.runs["label"] == label, "data_classes"].iloc[0]
    return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


def _last_predicted(results: Results, seed: int, label: str) -> int:
    """Returns the last round whose predictions a run has recorded; 0 if none."""
    rounds = results.rounds
    is_run = (rounds["label"] == label) & (rounds["seed"] == seed)
    for round_num in reversed(rounds.loc[is_run, "round"].tolist()):
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
