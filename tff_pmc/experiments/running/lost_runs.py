"""The callback that ends a run whose rounds leave the model as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from tff_pmc.experiments.callbacks import Callback, FinishedRound, Run
from tff_pmc.record.files import FINISHED
from tff_pmc.record.record_error import LostRunError
from tff_pmc.runtime import lost_rounds


class LostRounds(Callback):
    """Warns of a round that left the model as it was, and ends a run of too many.

    Too many are `--most_lost_rounds` one after another, or all rounds of a shorter
    run. The rounds before a resume count.
    """

    def on_start(self, run: Run) -> None:
        """Counts the rounds before; a run that was lost is a `LostRunError` again."""
        self._label = run.settings.label
        self._most = run.settings.training.most_lost_rounds
        self._rounds = self._lost = 0
        self._why = ""
        if run.rounds_before:
            for row in run.rounds.to_dict("records"):
                self._count(row)
        self._check(self._most)

    def after_round(self, round: FinishedRound) -> bool:
        """Counts the round, and ends the run after too many."""
        self._count(round.row, round.cohort)
        if self._lost == 1:
            logging.warning("%s: round %d: %s", self._label, self._rounds, self._why)
        return 0 < self._most <= self._lost

    def on_end(self, status: str) -> None:
        """Raises a `LostRunError` if too many rounds, or all, were lost."""
        if status == FINISHED:
            self._check(min(self._most, self._rounds))

    def _check(self, most: int) -> None:
        if 0 < most <= self._lost:
            raise LostRunError(
                f"{self._label}: in the rounds {self._rounds - self._lost + 1} to "
                f"{self._rounds} {self._why} (--most_lost_rounds)"
            )

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
