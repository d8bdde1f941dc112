"""What a round's model gets right on every client's test set, for the record."""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

import leaf_data
from tff_pmc import processes
from tff_pmc.experiments import builders
from tff_pmc.experiments.config import RunConfig
from tff_pmc.reports.predictions import FOLDER


class TestSets:
    """The clients' test sets, and the computation that answers them."""

    def __init__(self, config: RunConfig, data: leaf_data.FederatedDataset) -> None:
        """Builds it; with `config.predictions` each single answer is recorded."""
        self._examples, self._single = data.test_examples, config.predictions
        model, num_shards = builders.build_model(config), config.num_shards
        if self._single:
            self._compute = processes.build_federated_prediction(
                model, self._examples.num_examples
            )
            shards = processes.prediction_shards
        else:
            self._compute = processes.build_federated_evaluation(
                model, self._examples.num_clients
            )
            shards = processes.evaluation_shards
        self._shards = shards(self._examples, num_shards=num_shards)
        self._judge = None
        if data.server_examples is not None:
            self._judge = processes.build_server_judge(
                model, *builders.server_examples(data), data.num_classes
            )

    def validate(self, weights: Any) -> dict[str, int]:
        """What a model gets right of the server's own examples, where there are any.

        Columns of `rounds.csv`, so that the best round can be chosen on examples that
        accuracy is not reported on.
        """
        if self._judge is None:
            return {}
        return {"validation_correct": int(self._judge(weights, []))}

    def answer(
        self, weights: Any, known: Optional[np.ndarray] = None
    ) -> tuple[np.ndarray, Optional[np.ndarray]]:
        """Judges a model.

        Args:
            weights: the model's `ModelWeights`.
            known: correct examples of each client where they are known already.

        Returns:
            Correct examples of each client, int64 [K], and the predicted label of each
            example, [N], if single answers are recorded.
        """
        if known is not None and not self._single:
            return np.asarray(known, np.int64), None
        result = np.asarray(self._compute(weights, self._shards), np.int64)
        if not self._single:
            return result, None
        right = np.concatenate([[0], np.cumsum(result == self._examples.y)])
        return np.diff(right[self._examples.row_splits]), result

    def record(
        self, folder: str, round_num: int, predicted: Optional[np.ndarray]
    ) -> None:
        """Writes `predictions/round_NNNN.npz`, and the labels before the first."""
        if predicted is None:
            return
        path = os.path.join(folder, FOLDER)
        os.makedirs(path, exist_ok=True)
        examples = self._examples
        if not os.path.exists(os.path.join(path, "labels.npz")):
            _write(
                os.path.join(path, "labels.npz"),
                y=examples.y.astype(np.uint8),
                row_splits=examples.row_splits,
                client_ids=np.array(examples.client_ids),
            )
        _write(
            os.path.join(path, f"round_{round_num:04d}.npz"),
            predicted=predicted.astype(np.uint8),  # No data set has 256 classes.
        )


def _write(path: str, **arrays: np.ndarray) -> None:
    with open(path + ".new", "wb") as file:
        np.savez_compressed(file, **arrays)
    os.replace(path + ".new", path)
