"""The test of a round's model on every client's test set, for the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

import leaf_data
from tff_pmc import processes
from tff_pmc.processes.server_examples import build_confusion, f1_of_classes
from tff_pmc.record import measures
from tff_pmc.systems.setup import Setup


class AtServer(NamedTuple):
    """What a round's model is on the server's own examples.

    Attributes:
        columns: of `rounds.csv`: `macro_f1`, the mean of the classes' F1, and, where
            accuracy is reported on other examples, `validation_correct`, what the
            model gets right: the best round can be chosen by it.
        f1: of each class; empty where the server has no examples.
    """

    columns: Mapping[str, float]
    f1: Sequence[float]


class TestEvaluator:
    """The clients' test examples, and the computation that judges a model on them.

    Attributes:
        measure: what they are measured by.
    """

    __test__ = False  # No test of pytest's, whatever its name begins with.

    def __init__(self, setup: Setup) -> None:
        """Builds it; with `--predictions` each single answer is recorded."""
        settings, data = setup.settings, setup.data
        self._examples = data.test_examples
        self.measure = measures.measure_of(data)
        self._single = settings.record.predictions
        self._own = settings.system.own_answers(setup)
        if self._single or self._own:
            self._compute = processes.build_federated_prediction(
                setup.model, self._examples.num_examples
            )
            packs = processes.prediction_packs
        else:
            build = processes.build_correct_counts
            if self.measure is measures.LOSS:
                build = processes.build_loss_sums
            self._compute = build(setup.model, self._examples.num_clients)
            packs = processes.evaluation_packs
        num_packs = settings.training.num_packs
        self._packs = packs(self._examples, num_packs=num_packs)
        self._confusion = None
        self._reported = True
        if data.server_examples is not None:
            self._confusion = build_confusion(
                setup.model, *setup.server_examples, data.num_classes
            )
            self._reported = _same_images(data.server_examples, data.test_examples)

    def at_server(self, weights: Any) -> AtServer:
        """Measures a model on the server's examples, where there are any."""
        if self._confusion is None:
            return AtServer({}, ())
        confusion = self._confusion(weights)
        f1 = np.asarray(f1_of_classes(confusion), float)
        columns = {"macro_f1": round(float(f1.mean()), 6)}
        if not self._reported:
            columns["validation_correct"] = int(np.trace(np.asarray(confusion)))
        return AtServer(columns, f1)

    def of(
        self, weights: Any, known: Optional[np.ndarray] = None
    ) -> tuple[np.ndarray, Optional[np.ndarray]]:
        """Judges a model, or takes the correct examples that are known already.

        Returns the correct examples of each client, int64 [K], or the sums of their
        losses, float64; and the predicted label of each example, [N], if single answers
        are recorded.
        """
        if known is not None and not self._single:
            return np.asarray(known, np.int64), None
        if self._own is not None:
            result = self._own.answer(weights)
        else:
            kind = np.int64 if self.measure.counted else np.float64
            result = np.asarray(self._compute(weights, self._packs), kind)
        if not self._single and self._own is None:
            return result, None
        right = np.concatenate([[0], np.cumsum(result == self._examples.y)])
        counts = np.diff(right[self._examples.row_splits])
        return counts, result if self._single else None


def _same_images(server: leaf_data.Examples, reported: leaf_data.Examples) -> bool:
    """Whether the server has the very images that accuracy is reported on."""
    return np.array_equal(server.x, reported.x)
