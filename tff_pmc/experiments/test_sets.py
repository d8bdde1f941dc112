"""What a round's model gets right on every client's test set, for the record."""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np

import leaf_data
from tff_pmc import processes
from tff_pmc.clients import packing
from tff_pmc.experiments import builders
from tff_pmc.experiments.config import RunConfig
from tff_pmc.processes.baseline_fed_avg import build_local_tuning_prediction
from tff_pmc.reports.predictions import FOLDER


class TestSets:
    """The clients' test sets, and the computation that answers them."""

    def __init__(self, config: RunConfig, data: leaf_data.FederatedDataset) -> None:
        """Builds it; with `config.predictions` each single answer is recorded."""
        self._examples, self._single = data.test_examples, config.predictions
        model, num_shards = builders.build_model(config), config.num_shards
        self._own = OwnAnswers(config, data, model) if config.tunes_locally else None
        if self._single or self._own:
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
        apart = data.options.get("server_set") != "reported"
        if data.server_examples is not None and apart:
            self._judge = processes.build_server_judge(
                model, *builders.server_examples(data), data.num_classes
            )

    def validate(self, weights: Any) -> dict[str, int]:
        """What a model gets right of the server's examples, where they are its own.

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
        if self._own is not None:
            result = self._own.answer(weights)
        else:
            result = np.asarray(self._compute(weights, self._shards), np.int64)
        if not self._single and self._own is None:
            return result, None
        right = np.concatenate([[0], np.cumsum(result == self._examples.y)])
        counts = np.diff(right[self._examples.row_splits])
        return counts, result if self._single else None

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


class OwnAnswers:
    """What each client's own model answers on its own part of the test set.

    Its model is the server's after one more local training: Dual's personalized
    baseline, as its text has it.
    """

    def __init__(
        self, config: RunConfig, data: leaf_data.FederatedDataset, model: Any
    ) -> None:
        """Builds the computation."""
        examples = data.test_examples
        self._x = np.asarray(examples.x)
        self._owner = np.repeat(np.arange(examples.num_clients), examples.sizes)
        everybody = range(examples.num_clients)
        self._clients = packing.pack(
            data.train_examples, everybody, num_shards=config.num_shards
        )
        self._compute = build_local_tuning_prediction(
            model,
            *(examples.num_clients, examples.num_examples),
            client_optimizer_fn=builders.client_optimizer(config),
            local_epochs=config.local_epochs,
            batch_size=config.batch_size,
            seed=config.batch_seed,
        )

    def answer(self, weights: Any) -> np.ndarray:
        """The predicted label of each test example, [N]."""
        answers = np.asarray(self._compute(weights, self._clients, self._x), np.int64)
        return answers[self._owner, np.arange(len(self._owner))]


def _write(path: str, **arrays: np.ndarray) -> None:
    with open(path + ".new", "wb") as file:
        np.savez_compressed(file, **arrays)
    os.replace(path + ".new", path)
