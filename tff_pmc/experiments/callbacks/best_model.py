"""The callback `best_model`, which also saves the model of the best round."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from typing import Any, ClassVar

import numpy as np

from declared_settings import setting
from tff_pmc._lazy import tff
from tff_pmc.experiments.callbacks.callback import (
    CALLBACKS,
    Callback,
    FinishedRound,
    Run,
)
from tff_pmc.models.model_folder import BEST_MODEL, read_round, save_model
from tff_pmc.record import files
from tff_pmc.record.record_error import RecordError

_WEIGHTS = "weights_of_best.npz"  # The arrays by number, until the run ends.


@dataclasses.dataclass
class BestModel(Callback):
    """Saves the model of the best round as `model_best/`."""

    reads_past: ClassVar[bool] = True

    keep: str = setting(
        "last",
        "The models that a run saves: that of the last round (model/); with best also "
        "that of the best round (model_best/), by the judged accuracy if candidates "
        "are judged, else by the accuracy on the test set.",
        choices=("last", "best"),
    )

    def on_start(self, run: Run) -> None:
        """Raises a `RecordError` if the best model so far was not saved."""
        from tff_pmc.record.best_round import best_round

        self._run, self._path = run, os.path.join(run.folder, _WEIGHTS)
        self._saved = os.path.join(run.folder, BEST_MODEL)
        if self.keep != "best" or not run.rounds_before:
            return
        best, kept = best_round(run.folder)[0], self._read_kept()[0]
        # After a kill the saved model may be that of the round that now runs again.
        if best not in (kept, read_round(self._saved)) and kept <= run.rounds_before:
            raise RecordError(
                f"--keep=best: {run.folder} has no saved model of round {best}, the "
                "best so far: resume without the flag, or choose another folder"
            )

    def after_round(self, round: FinishedRound) -> None:
        """Stores the weights if the round is the best so far."""
        from tff_pmc.record.best_round import best_round

        if self.keep != "best" or best_round(self._run.folder)[0] != round.round_num:
            return
        weights = [*round.weights.trainable, *round.weights.non_trainable]
        with files.atomic_write(self._path) as file:
            np.savez(file, round.round_num, *map(np.asarray, weights))

    def on_end(self, status: str) -> None:
        """Saves the best model of a finished run, and prints its round."""
        from tff_pmc.experiments.load_model import about_model
        from tff_pmc.record.best_round import best_round

        if status != files.FINISHED or self.keep != "best":
            return
        best, name = best_round(self._run.folder)
        kept, arrays = self._read_kept()
        if kept and kept == best:
            split = len(self._run.weights.trainable)
            weights = tff.learning.models.ModelWeights(arrays[:split], arrays[split:])
            about = about_model(self._run.folder, best)
            save_model(self._run.context.model, weights, self._saved, best, about)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        if not best or read_round(self._saved) != best:  # No round had a value.
            return
        judged = name == "judged accuracy"
        judge = self._run.settings.adjustment.judge_on
        on_tests = judge == "test" if judged else name.startswith("test")
        optimistic = " (on the test set: optimistic)" if on_tests else ""
        print(
            f"{self._run.settings.label}: {BEST_MODEL}/ has the model of round "
            f"{best}, the best by {name}{optimistic}",
            flush=True,
        )

    def _read_kept(self) -> tuple[int, list[Any]]:
        """Returns the best round so far and its weights, or 0 and no weights."""
        if not os.path.exists(self._path):
            return 0, []
        with np.load(self._path, allow_pickle=False) as archive:
            number, *arrays = (archive[name] for name in archive.files)
        return int(number), arrays


CALLBACKS.register("best_model", BestModel)
