"""What is told of a run's rounds: each has one method, called after a round.

The round's rows are on disk then, and its checkpoint is saved afterwards: what a
callback has written is there when a run goes on after the round.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional, Protocol

import numpy as np
from tqdm import tqdm

import leaf_data
from tff_pmc.record import files
from tff_pmc.record.measures import PERCENTILES, Measure
from tff_pmc.record.predictions import FOLDER
from tff_pmc.record.run_folder import RunFolder
from tff_pmc.reports import escape

Tables = Mapping[str, Sequence[Mapping[str, Any]]]


class RoundDone(NamedTuple):
    """A round that was trained, tested and recorded.

    Attributes:
        round_num: from 1.
        tables: the rows of the record, by the table.
        weights: the model's `ModelWeights` after the round.
        measured: the correct test examples of each client, [K], or the sums of their
            losses.
        predicted: the predicted label of each test example, [N], if they are recorded.
        seconds: of the training, `train`, and of the tests, `test`.
    """

    round_num: int
    tables: Tables
    weights: Any
    measured: np.ndarray
    predicted: Optional[np.ndarray]
    seconds: Mapping[str, float]


class Callback(Protocol):
    """Who is told of rounds."""

    def after_round(self, done: RoundDone) -> Optional[bool]:
        """Is told of a round; ends the run by returning True."""


class Until:
    """Ends a run when a function says so of what was measured."""

    def __init__(self, reached: Callable[[np.ndarray], bool]) -> None:
        self._reached = reached

    def after_round(self, done: RoundDone) -> bool:
        """Asks the function."""
        return bool(self._reached(done.measured))


class Timing:
    """Writes `timing.csv`."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def after_round(self, done: RoundDone) -> None:
        """Writes the seconds of the round."""
        rounded = {name: round(value, 3) for name, value in done.seconds.items()}
        self._folder.append("timing", [{"round": done.round_num, **rounded}])


class Predictions:
    """Writes `predictions/round_NNNN.npz`, and the labels before the first."""

    def __init__(self, folder: str, examples: leaf_data.Examples) -> None:
        self._folder, self._examples = os.path.join(folder, FOLDER), examples

    def after_round(self, done: RoundDone) -> None:
        """Writes the predicted labels, if there are any."""
        if done.predicted is None:
            return
        os.makedirs(self._folder, exist_ok=True)
        examples = self._examples
        if not os.path.exists(os.path.join(self._folder, "labels.npz")):
            self._write(
                "labels.npz",
                y=examples.y.astype(np.uint8),
                row_splits=examples.row_splits,
                client_ids=np.array(examples.client_ids),
            )
        # `check_data` refuses more classes than a byte has.
        predicted = done.predicted.astype(np.uint8)
        self._write(f"round_{done.round_num:04d}.npz", predicted=predicted)

    def _write(self, name: str, **arrays: np.ndarray) -> None:
        with files.replacing(os.path.join(self._folder, name)) as file:
            np.savez_compressed(file, **arrays)


class ProgressBar:
    """A bar that goes on by a round."""

    def __init__(self, title: str, measure: Measure, done: int, rounds: int) -> None:
        """Shows the bar."""
        self._measure = measure
        self._bar = tqdm(
            desc=escape.printable(title),
            unit="round",
            initial=done,
            total=rounds,
            mininterval=1,
        )

    def after_round(self, done: RoundDone) -> None:
        """Shows the round."""
        (row,) = done.tables["rounds"]
        words = words_of(row, sum(done.seconds.values()), self._measure)
        self._bar.set_postfix_str(escape.printable(words), refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Leaves the bar as it is."""
        self._bar.close()


def words_of(row: Mapping[str, Any], seconds: float, measure: Measure) -> str:
    """A round in the words of the progress bar."""
    percentiles = "/".join(f"{row[f'{measure.prefix}p{p}']:.2f}" for p in PERCENTILES)
    name = measure.mean.replace("_", " ")
    text = f"{name} {row[measure.mean]:.3f}, p10/50/90 {percentiles}, {seconds:.1f} s"
    tested = row["testing_rounds"]
    if tested:
        candidates = "candidate" if tested == 1 else "candidates"
        text += f", tested {tested} {candidates} and kept {row['ordering']}"
    return text
