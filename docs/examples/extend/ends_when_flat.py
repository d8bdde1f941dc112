"""The callback `ends_when_flat`."""

import dataclasses

from declared_settings import AT_LEAST_1, setting
from tff_pmc.experiments.callbacks import CALLBACKS, Callback


@dataclasses.dataclass
class EndsWhenFlat(Callback):
    """Ends a run whose accuracy has not risen for some rounds."""

    flat_rounds: int = setting(
        5,
        "With --callbacks=ends_when_flat, for how many rounds.",
        within=AT_LEAST_1,
    )

    def on_start(self, run):
        """Keeps the run, to look at its rounds."""
        self._run = run

    def after_round(self, round):
        """Ends the run if the best round is `flat_rounds` rounds ago."""
        accuracy = self._run.rounds["accuracy"]
        return len(accuracy) - 1 - accuracy.argmax() >= self.flat_rounds


CALLBACKS.register("ends_when_flat", EndsWhenFlat)
