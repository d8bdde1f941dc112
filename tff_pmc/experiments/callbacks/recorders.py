"""The callbacks that write a run's folder: tables, predictions, checkpoints, model."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import numpy as np

from tff_pmc.experiments.callbacks import Callback, FinishedRound, Run
from tff_pmc.models.model_folder import MODEL
from tff_pmc.record import files, predictions

if TYPE_CHECKING:
    from tff_pmc.record.run_folder import RunFolder


class TableRecorder(Callback):
    """Appends the round's rows to the tables of the folder. It is called first."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def after_round(self, round: FinishedRound) -> None:
        """Writes the rows."""
        self._folder.write(round.record)


class CheckpointRecorder(Callback):
    """Saves the state of the process after all other callbacks.

    A checkpoint therefore implies that the rows up to its round are on disk.
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


class ModelSaver(Callback):
    """Saves the model of the last round of a finished run as `model/`."""

    def on_start(self, run: Run) -> None:
        """Stores the model and its weights before the next round."""
        self._model, self._weights = run.context.model, run.weights
        self._run_folder, self._round = run.folder, run.rounds_before

    def after_round(self, round: FinishedRound) -> None:
        """Stores the weights."""
        self._weights, self._round = round.weights, round.round_num

    def on_end(self, status: str) -> None:
        """Writes the model."""
        from tff_pmc.experiments.load_model import about_model
        from tff_pmc.models.model_folder import save_model

        if status == files.FINISHED:
            about = about_model(self._run_folder, self._round)
            folder = os.path.join(self._run_folder, MODEL)
            save_model(self._model, self._weights, folder, about=about)


class PredictionRecorder(Callback):
    """Writes the predicted labels of each tested round, and the true labels once."""

    def on_start(self, run: Run) -> None:
        """Stores the test examples whose predictions are written."""
        self._folder, self._examples = run.folder, run.test_examples

    def after_round(self, round: FinishedRound) -> None:
        """Writes the predicted labels of a round that was tested."""
        if round.predicted is None:
            return
        labels = predictions.labels_path(self._folder)
        if not os.path.exists(labels):
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.dirname(labels))
            y, row_splits = self._examples.counted_labels()
            with files.atomic_write(labels) as file:
                np.savez_compressed(
                    file,
                    y=y.astype(np.uint8),
                    row_splits=row_splits,
                    client_ids=np.array(self._examples.client_ids),
                )
        # `check_run` rejects more classes than a byte can count.
        predicted = round.predicted.astype(np.uint8)
        path = predictions.predictions_path(self._folder, round.round_num)
        with files.atomic_write(path) as file:
            np.savez_compressed(file, predicted=predicted)
