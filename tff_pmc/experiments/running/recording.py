"""The callbacks of every run: they write its folder, or end it if its rounds are lost.

The folder has tables, predictions, checkpoints and the model.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from tff_pmc.experiments.callbacks import Callback, FinishedRound, Run
from tff_pmc.models.model_folder import MODEL
from tff_pmc.record import files, predictions
from tff_pmc.record.record_error import LostRunError
from tff_pmc.record.run_folder import RunFolder
from tff_pmc.runtime import lost_round_warnings


class Record(Callback):
    """Appends the round's rows to the tables of the folder. It is called first."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def after_round(self, round: FinishedRound) -> None:
        """Writes the rows."""
        self._folder.write(round.record)


class LostRounds(Callback):
    """Warns of a round that did not change the model, and ends a run with too many.

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
        if status == files.FINISHED:
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
            first = dict(cohort[0])  # Shown only if all are excluded, hence the first.
            name, *_ = map(first.pop, ("client", "round", "excluded", "weight"))
            values = ", ".join(f"{code} {value}" for code, value in first.items())
            example = f"client {name} has {values}"
        names = "--max_update_norm", "--learning_rate"
        self._why = lost_round_warnings.reason(row, *names, example) or ""
        self._lost = self._lost + 1 if self._why else 0


class Checkpoint(Callback):
    """Saves the state of the process. It is called last.

    A checkpoint reports that the rows up to its round are on disk.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def on_start(self, run: Run) -> None:
        """Saves the first state, so that a folder with rows has a checkpoint."""
        if not run.rounds_before:
            self._folder.save(run.state, 0)

    def after_round(self, round: FinishedRound) -> None:
        """Saves the state after the round."""
        self._folder.save(round.state, round.round_num)


class TrainedModel(Callback):
    """Saves the model of the last round of a run that is finished, as `model/`."""

    def on_start(self, run: Run) -> None:
        """Takes the model as it is before the next round."""
        self._model, self._weights = run.context.model, run.weights
        self._run_folder, self._round = run.folder, run.rounds_before

    def after_round(self, round: FinishedRound) -> None:
        """Stores the weights."""
        self._weights, self._round = round.weights, round.round_num

    def on_end(self, status: str) -> None:
        """Writes the model."""
        from tff_pmc.experiments.trained import about_model
        from tff_pmc.models.model_folder import save_model

        if status == files.FINISHED:
            about = about_model(self._run_folder, self._round)
            folder = os.path.join(self._run_folder, MODEL)
            save_model(self._model, self._weights, folder, about=about)


class PredictionRecorder(Callback):
    """Writes `predictions/round_NNNN.npz`, and the labels once; see `predictions`."""

    def on_start(self, run: Run) -> None:
        """Takes the test examples that are predicted."""
        self._folder, self._examples = run.folder, run.test_examples

    def after_round(self, round: FinishedRound) -> None:
        """Writes the predicted labels of a round that was tested."""
        if round.predicted is None:
            return
        labels = predictions.labels_path(self._folder)
        if not os.path.exists(labels):
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.dirname(labels))
            with files.replacing(labels) as file:
                np.savez_compressed(
                    file,
                    y=self._examples.y.astype(np.uint8),
                    row_splits=self._examples.row_splits,
                    client_ids=np.array(self._examples.client_ids),
                )
        # `RunContext.of` refuses more classes than a byte has.
        predicted = round.predicted.astype(np.uint8)
        path = predictions.path_of(self._folder, round.round_num)
        with files.replacing(path) as file:
            np.savez_compressed(file, predicted=predicted)
