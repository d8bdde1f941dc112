"""The callback `best_model`: the model of the best round, with that of the last one."""

from __future__ import annotations

import dataclasses
import os

import numpy as np

from leaf_data.settings import setting
from tff_pmc._lazy import tff
from tff_pmc.experiments.callbacks.callback import (
    CALLBACKS,
    Callback,
    FinishedRound,
    Run,
)
from tff_pmc.models.trained_model import BEST_MODEL
from tff_pmc.record import files

_WEIGHTS = "weights_of_best.npz"  # The arrays by number, until the run ends.


@dataclasses.dataclass
class BestModel(Callback):
    """Saves the model of the best round as `model_best/`."""

    keep: str = setting(
        "last",
        "The models that a run saves. best: with the last round's, model/, that of the "
        "best round, model_best/, by the judged accuracy where candidates are judged; "
        "else it is chosen on the test set.",
        choices=("last", "best"),
    )

    def on_start(self, run: Run) -> None:
        """Stores the run's context."""
        self._run = run
        self._path = os.path.join(run.folder, _WEIGHTS)

    def after_round(self, round: FinishedRound) -> None:
        """Stores the weights if there was no better round."""
        from tff_pmc.record.best_round import best_round

        if self.keep != "best" or best_round(self._run.folder)[0] != round.round_num:
            return
        weights = [*round.weights.trainable, *round.weights.non_trainable]
        with files.replacing(self._path) as file:
            np.savez(file, *map(np.asarray, weights))

    def on_end(self, status: str) -> None:
        """Saves the best model of a run that is finished, and prints its round."""
        from tff_pmc.models.trained_model import save_model
        from tff_pmc.record.best_round import best_round

        if status != files.FINISHED or not os.path.exists(self._path):
            return
        best, name = best_round(self._run.folder)
        with np.load(self._path, allow_pickle=False) as archive:
            arrays = [archive[one] for one in archive.files]
        split = len(self._run.weights.trainable)
        weights = tff.learning.models.ModelWeights(arrays[:split], arrays[split:])
        folder = os.path.join(self._run.folder, BEST_MODEL)
        save_model(self._run.context.model, weights, folder)
        os.unlink(self._path)
        judged = name == "judged accuracy"
        judge = self._run.settings.adjustment.judge_on
        on_tests = judge == "test" if judged else name.startswith("test")
        optimistic = " (on the test set: optimistic)" if on_tests else ""
        print(
            f"{self._run.settings.label}: {BEST_MODEL}/ is of round {best}, the best "
            f"by {name}{optimistic}",
            flush=True,
        )


CALLBACKS.register("best_model", BestModel)
