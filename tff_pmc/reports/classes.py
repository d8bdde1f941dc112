"""Confusion matrices, recall and F1 of each class, by scikit-learn's conventions.

They follow from the recorded predictions (`--predictions`), for the last and the best
round, on the examples of all clients and of the tenth of the clients with the lowest
accuracy in that round.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.metrics import ACCURACY, client_means
from tff_pmc.record.predictions import NO_CLASS, Predictions
from tff_pmc.record.record_error import RecordMissingError
from tff_pmc.record.results import Results
from tff_pmc.reports import Report, figures, pages, plots, styles
from tff_pmc.reports.summary import measure_of

ALL, WORST = "all clients", "worst tenth"

_MOST_NUMBERED = 12
"""Of more classes the cells of a matrix have no room for numbers."""

Counts = npt.NDArray[np.int64]


class _Part(NamedTuple):
    """A confusion matrix, and what it is of."""

    label: str  # Of the run.
    rounds: str  # Such as "last round, 40".
    clients: str  # `ALL` or `WORST`.
    counts: Counts


def report(results: Results) -> Report:
    """Returns `classes.csv`, `classes.md` and `confusion.png` of one seed's runs.

    It is empty for several seeds, and where no run has recorded its predictions.
    """
    if len(results.seeds) > 1 or measure_of(results) is not ACCURACY:
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
        figures={"confusion": confusion_plot(parts, plots.title_of(results))},
        digits=6,
    )


_COLUMNS = ("examples", "recall", "precision", "f1")
_HEAD = ("examples", "recall", "precision", "F1")


def confusion_matrix(
    y_true: Counts, y_pred: Counts, num_classes: int, normalize: str | None = None
) -> npt.NDArray[Any]:
    """Returns the number of examples by true label (row) and predicted label (column).

    It is scikit-learn's function of this name with `labels=range(num_classes)`, and a
    last column more, of predictions that are no class, as of scores that are not
    numbers: the shape is [num_classes, num_classes + 1].

    Args:
        y_true: the labels, int [N].
        y_pred: the predictions, int [N].
        num_classes: the number of classes.
        normalize: `true` for shares of the examples of a label (a row), `pred` of those
            of a prediction (a column), `all` of all examples; by default counts.
            A share of nothing is 0.
    """
    shape = num_classes, num_classes + 1
    column = np.minimum(y_pred, num_classes, dtype=np.int64)
    counts = np.bincount(
        np.ravel_multi_index((y_true, column), shape), minlength=np.prod(shape)
    ).reshape(shape)
    return counts if normalize is None else _shares(counts, normalize)


def _shares(counts: Counts, normalize: str) -> npt.NDArray[np.float64]:
    axes = {"true": 1, "pred": 0, "all": None}
    if normalize not in axes:
        raise ValueError(
            f"normalize is {normalize!r}: choose {', '.join(axes)} or None"
        )
    return counts / np.maximum(1, counts.sum(axis=axes[normalize], keepdims=True))


def class_metrics(counts: Counts) -> pd.DataFrame:
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


def _parts(results: Results, label: str) -> Iterator[_Part]:
    """Returns the matrices of a run; none where it has recorded no predictions."""
    (seed,) = results.seeds
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
            answers = found.y[chosen], found.predicted[chosen]
            counts = confusion_matrix(*answers, num_classes)
            yield _Part(label, words, clients, counts)


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
def confusion_plot(parts: Sequence[_Part], title: str = "") -> Figure:
    """Draws confusion matrices, normalized over the true labels, two in a row."""
    figure = figures.blank(0.7 + 3.2 * -(-len(parts) // 2))
    every = figure.subplots(-(-len(parts) // 2), 2, squeeze=False)
    for axes, part in zip(every.flat, parts):
        counts = part.counts[:, : len(part.counts)]
        shares = _shares(part.counts, "true")[:, : len(part.counts)]
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.grid(False)
        axes.set(xlabel="Predicted label", ylabel="True label")
        name = styles.figure_text(part.label)
        axes.set_title(f"{name}\n{part.rounds}, {part.clients}")
        if len(counts) > _MOST_NUMBERED:
            continue
        axes.set_xticks(range(len(counts)))
        axes.set_yticks(range(len(counts)))
        look = {"ha": "center", "va": "center", "fontsize": 5}
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count or ''}", color=color, **look)
    figure.colorbar(image, ax=every, shrink=0.6, label="share of the true label")
    figures.entitle(figure, f"Confusion matrices (normalize: true)\n{title}")
    return figure


def _cells(row: pd.Series[float]) -> list[str]:
    shares = [pages.number(row[name], ".3f") for name in _COLUMNS[1:]]
    return [f"{row['examples']:.0f}", *shares]
