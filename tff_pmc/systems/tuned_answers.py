"""Predictions by each client's own model, after one more local training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from tff_pmc.systems.setup import Setup


class TunedAnswers:
    """The predictions of each client's own model on its own part of the test set.

    Its model is the server's after one more local training: Dual's personalized
    baseline, as its text has it.
    """

    def __init__(self, setup: Setup) -> None:
        """Builds the computation."""
        from tff_pmc import processes
        from tff_pmc.clients import packing

        data, training = setup.data, setup.settings.training
        examples = data.test_examples
        self._x = np.asarray(examples.x)
        self._owner = np.repeat(np.arange(examples.num_clients), examples.sizes)
        self._clients = packing.pack(
            data.train_examples,
            range(examples.num_clients),
            num_packs=training.num_packs,
        )
        self._compute = processes.build_local_tuning_prediction(
            setup.model,
            *(examples.num_clients, examples.num_examples),
            client_optimizer_fn=setup.client_optimizer,
            local_epochs=training.local_epochs,
            batch_size=training.batch_size,
            seed=training.batch_seed,
        )

    def answer(self, weights: Any) -> npt.NDArray[np.int64]:
        """The predicted label of each test example, [N]."""
        answers = np.asarray(self._compute(weights, self._clients, self._x), np.int64)
        own: npt.NDArray[np.int64] = answers[self._owner, np.arange(len(self._owner))]
        return own
