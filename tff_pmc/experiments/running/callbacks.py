"""Who is told of a run's rounds: functions that are called after each round.

The round's rows are on disk then, and its checkpoint is saved afterwards: what a
listener has written is there when a run goes on after the round.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
from absl import logging
from tqdm import tqdm

import leaf_data
from tff_pmc.record import files
from tff_pmc.record.metrics import PERCENTILES, Measure
from tff_pmc.record.predictions import FOLDER
from tff_pmc.record.record_error import LostRunError
from tff_pmc.record.round_record import RoundRecord
from tff_pmc.record.tables import COHORT, ROUNDS
from tff_pmc.reports import escape
from tff_pmc.runtime import lost_rounds


class RoundDone(NamedTuple):
    """A round that was trained, tested and recorded."""

    record: RoundRecord  # What it came to.
    weights: Any  # The model's `ModelWeights` after the round.
    predicted: Optional[np.ndarray] = None  # The label of each test example, if known.

    @property
    def round_num(self) -> int:
        """The round, from 1."""
        return self.record.round_num

    @property
    def row(self) -> dict[str, Any]:
        """Its row of `rounds.csv`."""
        return ROUNDS.rows(self.record)[0]

    @property
    def cohort(self) -> list[dict[str, Any]]:
        """Its rows of `cohort.csv`."""
        return COHORT.rows(self.record)


Listener = Callable[[RoundDone], Optional[bool]]
"""Is told of a round; ends the run by returning True."""


def predictions(folder: str, examples: leaf_data.Examples) -> Listener:
    """Writes `predictions/round_NNNN.npz`, and the labels where they are not there."""
    folder = os.path.join(folder, FOLDER)
    labels = os.path.join(folder, "labels.npz")

    def write(name: str, **arrays: np.ndarray) -> None:
        with files.replacing(os.path.join(folder, name)) as file:
            np.savez_compressed(file, **arrays)

    def after_round(done: RoundDone) -> None:
        if done.predicted is None:
            return
        if not os.path.exists(labels):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder)
            write(
                "labels.npz",
                y=examples.y.astype(np.uint8),
                row_splits=examples.row_splits,
                client_ids=np.array(examples.client_ids),
            )
        # `Setup.of` refuses more classes than a byte has.
        predicted = done.predicted.astype(np.uint8)
        write(f"round_{done.round_num:04d}.npz", predicted=predicted)

    return after_round


class LostRounds:
    """Warns of a round that left the model as it was, and ends a run of too many.

    To go on would be to pretend. Those before a kill count, too.
    """

    def __init__(
        self, label: str, most: int, before: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self._label, self._most, self._lost, self._why = label, most, 0, ""
        self._rounds = 0
        for row in before:
            self._count(row)

    def after_round(self, done: RoundDone) -> None:
        """Counts the round, or not."""
        self._count(done.row, done.cohort)
        if self._lost == 1:
            logging.warning("%s: round %d: %s", self._label, done.round_num, self._why)
        self.check()

    def check(self) -> None:
        """Ends the run, by a `LostRunError`, after the last of too many rounds."""
        if 0 < self._most <= self._lost:
            raise LostRunError(
                f"{self._label}: in the rounds {self._rounds - self._lost + 1} to "
                f"{self._rounds} {self._why} (--most_lost_rounds)"
            )

    def check_all(self) -> None:
        """Ends, as `check` does, a run that moved its model in no round at all."""
        self._most = min(self._most, self._rounds)
        self.check()

    def _count(
        self, row: Mapping[str, Any], cohort: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self._rounds += 1
        example = ""
        if cohort:
            first = dict(cohort[0])  # If all are left out, it is.
            name, *_ = map(first.pop, ("client", "round", "excluded", "weight"))
            values = ", ".join(f"{code} {value}" for code, value in first.items())
            example = f"client {name} has {values}"
        names = "--max_update_norm", "--learning_rate"
        self._why = lost_rounds.reason(row, *names, example) or ""
        self._lost = self._lost + 1 if self._why else 0


class ProgressBar:
    """A bar that goes on by a round; where there is no terminal, some ten lines."""

    def __init__(self, title: str, measure: Measure, done: int, rounds: int) -> None:
        self._measure, self._title = measure, escape.printable(title)
        self._rounds = rounds
        self._bar = tqdm(
            desc=self._title,
            unit="round",
            initial=done,
            total=rounds,
            mininterval=1,
            disable=not sys.stderr.isatty(),
        )
        self.close = self._bar.close

    def after_round(self, done: RoundDone) -> None:
        """Shows the round."""
        words = words_of(done.row, sum(done.record.seconds.values()), self._measure)
        words, often = escape.printable(words), -(-self._rounds // 10)
        if not self._bar.disable:
            self._bar.set_postfix_str(words, refresh=False)
            self._bar.update()
        elif done.round_num % often == 0 or done.round_num == self._rounds:
            place = f"round {done.round_num} of {self._rounds}"
            print(f"{self._title}: {place}, {words}", file=sys.stderr, flush=True)


def words_of(row: Mapping[str, Any], seconds: float, measure: Measure) -> str:
    """A round in the words of the progress bar."""
    if row[measure.mean] == "":
        return f"not tested, {seconds:.1f} s"
    percentiles = "/".join(f"{row[f'{measure.prefix}p{p}']:.2f}" for p in PERCENTILES)
    name = measure.mean.replace("_", " ")
    text = f"{name} {row[measure.mean]:.3f}, p10/50/90 {percentiles}, {seconds:.1f} s"
    tested = row["testing_rounds"]
    if tested:
        candidates = "candidate" if tested == 1 else "candidates"
        text += f", tested {tested} {candidates} and kept {row['ordering']}"
    return text
