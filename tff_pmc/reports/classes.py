"""Which classes a run gets wrong: confusion matrices, recall and F1 of each class.

They follow from the recorded predictions (`--predictions`), for the last and the best
round, on the examples of all clients and of the tenth of the clients with the lowest
accuracy in that round.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.metrics import ACCURACY, client_means
from tff_pmc.record.predictions import NO_CLASS, Predictions
from tff_pmc.record.record_error import RecordMissingError
from tff_pmc.record.results import Results
from tff_pmc.reports import Report, figures, pages, plots
from tff_pmc.reports.summary import measure_of

ALL, WORST = "all clients", "worst tenth"

_MOST_NUMBERED = 12
"""Of more classes the cells of a matrix have no room for numbers."""

Counts = npt.NDArray[np.int64]


class _Part(NamedTuple):
    """A confusion matrix, and what it is of."""

    rounds: str  # Such as "last round, 40".
    clients: str  # `ALL` or `WORST`.
    counts: Counts


def report(results: Results) -> Report:
    """Returns `classes.csv`, `classes.md` and `confusion_RUN.png` of one seed's runs.

    It is empty for several seeds, and where no run has recorded its predictions.
    """
    if len(results.seeds) > 1 or measure_of(results) is not ACCURACY:
        return Report()
    tables, drawn, grid = [], {}, [["run", "clients", "round", "class", *_HEAD]]
    for label in results.labels:
        parts = [*_parts(results, results.seeds[0], label)]
        if not parts:
            continue
        title = f"{label}: labels and predictions. {plots.title_of(results)}"
        drawn[f"confusion_{plots.file_name(label)}"] = confusion_plot(parts, title)
        for part in parts:
            table = of_classes(part.counts)
            place = {"label": label, "round": part.rounds, "clients": part.clients}
            tables.append(table.assign(**place))
            worst = table[table["examples"] > 0].nsmallest(5, "f1")
            for number, row in worst.iterrows():
                grid.append(
                    [label, part.clients, part.rounds, str(number), *_cells(row)]
                )
    if not tables:
        return Report()
    every = pd.concat(tables).rename_axis("class").reset_index()
    first = ["label", "round", "clients", "class"]
    page = pages.Page(
        "Classes",
        [
            pages.Items(
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
            pages.Table(grid, left=4),
        ],
    )
    return Report(
        tables={"classes": every[[*first, *_COLUMNS]]},
        pages={"classes": page},
        figures=drawn,
        digits=6,
    )


_COLUMNS = ("examples", "recall", "precision", "f1")
_HEAD = ("examples", "recall", "precision", "F1")


def confusion(labels: Counts, predicted: Counts, num_classes: int) -> Counts:
    """Returns the number of examples by label (row) and prediction (column).

    A prediction that is no class, as of scores that are not numbers, is in the last
    column: the shape is [num_classes, num_classes + 1].
    """
    column = np.where(predicted < num_classes, predicted, num_classes)
    counts = np.bincount(
        labels * (num_classes + 1) + column, minlength=num_classes * (num_classes + 1)
    )
    return counts.reshape(num_classes, num_classes + 1)


def of_classes(counts: Counts) -> pd.DataFrame:
    """Returns the examples, recall, precision and F1 of each class, a row a class.

    The recall of a class without examples is NaN, as is the precision of a class that
    is never predicted; F1 is 2 hits / (examples + predictions).
    """
    hits = np.diag(counts)
    examples, predictions = counts.sum(axis=1), counts.sum(axis=0)[: len(counts)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(
            {
                "examples": examples,
                "recall": hits / examples,
                "precision": hits / predictions,
                "f1": 2 * hits / (examples + predictions),
            }
        )


def _parts(results: Results, seed: int, label: str) -> Iterator[_Part]:
    """Returns the matrices of a run; none where it has recorded no predictions."""
    own = results.rounds[results.rounds["label"] == label].set_index("round")
    last, best = int(own.index[-1]), int(own["accuracy"].idxmax())
    if not (tested := _last_predicted(results, seed, label)):
        return
    # The last round is without a test where --evaluate_every does not divide it.
    which, of = ("last", "") if tested == last else ("last tested", f" of {last}")
    both = " and best" if tested == best else ""
    rounds = {tested: f"{which}{both} round, {tested}{of}"}
    rounds.setdefault(best, f"best round, {best}")
    for round_num, words in rounds.items():
        try:
            found = results.predictions(seed, label, round_num)
        except RecordMissingError:
            continue
        recognized = found.predicted[found.predicted < NO_CLASS]
        num_classes = int(max(found.y.max(), recognized.max(initial=0))) + 1
        everyone = np.ones(len(found.y), bool)
        for clients, chosen in ((ALL, everyone), (WORST, _of_worst(found))):
            counts = confusion(found.y[chosen], found.predicted[chosen], num_classes)
            yield _Part(words, clients, counts)


def _last_predicted(results: Results, seed: int, label: str) -> int:
    """Returns the last round whose predictions a run has recorded; 0 if none."""
    rounds = results.rounds
    for round_num in reversed(rounds.loc[rounds["label"] == label, "round"].tolist()):
        with contextlib.suppress(RecordMissingError):
            results.predictions(seed, label, int(round_num))
            return int(round_num)
    return 0


def _of_worst(found: Predictions) -> npt.NDArray[np.bool_]:
    """Returns whether each example is of a client of the worst tenth, [N]."""
    sizes = np.diff(found.row_splits)
    tested = np.flatnonzero(sizes)
    shares = client_means(found.correct, sizes)
    worst = tested[np.argsort(shares, kind="stable")[: -(-len(tested) // 10)]]
    return np.isin(np.repeat(np.arange(len(sizes)), sizes), worst)


@figures.styled
def confusion_plot(parts: list[_Part], title: str = "") -> Figure:
    """Draws confusion matrices, each row as shares of the label's examples."""
    figure = figures.blank(0.7 + 3.2 * (len(parts) // 2))
    every = figure.subplots(-(-len(parts) // 2), 2, squeeze=False)
    for axes, part in zip(every.flat, parts):
        counts = part.counts[:, : len(part.counts)]
        shares = counts / np.maximum(1, part.counts.sum(axis=1, keepdims=True))
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.grid(False)
        axes.set(xlabel="prediction", ylabel="label")
        axes.set_title(f"{part.rounds}, {part.clients}")
        if len(counts) <= _MOST_NUMBERED:
            axes.set_xticks(range(len(counts)))
            axes.set_yticks(range(len(counts)))
            for (row, column), count in np.ndenumerate(counts):
                if count:
                    color = "white" if shares[row, column] > 0.5 else "black"
                    axes.text(
                        column,
                        row,
                        f"{count}",
                        ha="center",
                        va="center",
                        fontsize=5,
                        color=color,
                    )
    figure.colorbar(image, ax=every, shrink=0.6, label="share of the label's examples")
    figures.entitle(figure, title)
    return figure


def _cells(row: pd.Series[float]) -> list[str]:
    shares = [pages.number(row[name], ".3f") for name in _COLUMNS[1:]]
    return [f"{row['examples']:.0f}", *shares]
