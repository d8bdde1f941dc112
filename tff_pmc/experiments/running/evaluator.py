"""Evaluates each round's model on the clients' test sets, for the record."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

import leaf_data
from leaf_data.client_ids import ClientNumber
from tff_pmc import processes
from tff_pmc._lazy import tff
from tff_pmc.algorithms.algorithm import algorithm_of
from tff_pmc.algorithms.run_context import RunContext, sample_clients, trace_once
from tff_pmc.processes.server_evaluation import build_confusion, f1_by_class
from tff_pmc.record import metric


class TestEvaluator:
    """Evaluates models on the clients' test examples, and on those of the server.

    With `--predictions` the predicted label of each example is recorded.

    Attributes:
        clients: the numbers of the clients that test, [E].
        examples: the test examples of these clients.
        metric: accuracy or loss, by which models are measured.
        central_examples: the size of the central test set; 0 without one.
    """

    __test__ = False  # Not a class of tests for pytest.

    def __init__(self, context: RunContext) -> None:
        settings, data = context.settings, context.data
        self.clients = sample_clients(
            data.test_examples, settings.record.evaluate_clients
        )
        self.examples, self._sizes = data.test_examples, data.test_examples.sizes
        if len(self.clients) < self.examples.num_clients:
            self.examples = self.examples.subset(map(ClientNumber, self.clients))
        self.metric = metric.metric_for(data)
        build = processes.build_correct_counts
        if self.metric is metric.LOSS:
            build = processes.build_loss_sums
        self._central, self.central_examples = None, 0
        if data.central_test is not None:
            self.central_examples = data.central_test.num_labels
            self._central = trace_once(build, context.model, 1)
            self._central_packs = processes.evaluation_packs(
                data.central_test, num_packs=settings.training.num_packs
            )
        self._single = settings.record.predictions
        self._predictor = algorithm_of(settings).build_predictor(context)
        if self._single or self._predictor:
            self._compute = processes.build_federated_prediction(
                context.model, self.examples.num_examples
            )
            packs = processes.prediction_packs
        else:
            self._compute = trace_once(build, context.model, self.examples.num_clients)
            packs = processes.evaluation_packs
        self._packs = packs(self.examples, num_packs=settings.training.num_packs)
        # Clients' own models give labels only, from which the model's metrics cannot
        # be computed.
        self._metrics = None
        if self._predictor is None:
            self._metrics = trace_once(processes.build_metrics, context.model)
        if self._metrics is not None:
            self._metric_packs = self._packs
            if self._single:  # `_packs` are packs for predictions.
                self._metric_packs = processes.evaluation_packs(
                    self.examples, num_packs=settings.training.num_packs
                )
        self._train_loss = None
        if settings.record.global_train_loss:
            train = data.train_examples
            self._num_train_labels = train.num_labels
            self._train_packs = processes.evaluation_packs(
                train, num_packs=settings.training.num_packs
            )
            self._train_loss = trace_once(
                processes.build_loss_sums, context.model, train.num_clients
            )
        self._confusion, server = None, data.server_examples
        if server is not None and data.has_classes:
            self._confusion = build_confusion(
                context.model, *context.server_examples, data.num_classes
            )
            # Whether accuracy is reported on the images that the server has.
            self._reported = np.array_equal(server.x, data.test_examples.x)

    def evaluate_central_test(self, weights: Any) -> Optional[float]:
        """Returns the correct examples of the central test set, or the loss sum.

        It is None if the data set has no central test set.
        """
        if self._central is None:
            return None
        return float(np.asarray(self._central(weights, self._central_packs))[0])

    def evaluate_train_loss(self, weights: Any) -> Optional[float]:
        """Returns the mean loss over all clients' training examples, if recorded."""
        if self._train_loss is None:
            return None
        sums = np.asarray(self._train_loss(weights, self._train_packs), float)
        return round(float(sums.sum()) / self._num_train_labels, 6)

    def model_metrics(self, weights: Any, tested: bool) -> dict[str, Optional[float]]:
        """Returns the model's metrics over all test examples, by name.

        They are None in a round that is not tested.
        """
        if self._metrics is None:
            return {}
        if not tested:
            names = self._metrics.type_signature.result.member
            return dict.fromkeys(tff.structure.name_list(names))
        metric_values = self._metrics(weights, self._metric_packs)
        return dict(
            zip(metric_values, metric.float32_digits([*metric_values.values()]))
        )

    def evaluate_on_server(self, weights: Any) -> tuple[np.ndarray, Optional[int]]:
        """Evaluates a model on the server's examples, if there are any.

        Returns:
            The F1 of each class, NaN for classes that neither occur nor are predicted;
            it is empty without server examples or classes. And the number of correct
            examples, by which the best round can be chosen; it is None if accuracy is
            reported on the same examples.
        """
        if self._confusion is None:
            return np.empty(0), None
        confusion = self._confusion(weights)
        f1 = np.asarray(f1_by_class(confusion), float)
        return f1, None if self._reported else int(np.trace(np.asarray(confusion)))

    def evaluate(
        self, weights: Any, correct_counts: Optional[np.ndarray] = None
    ) -> tuple[np.ndarray, Optional[np.ndarray]]:
        """Evaluates a model on the clients' test examples.

        Args:
            weights: the model's weights.
            correct_counts: the number of correct examples of each client, if it is
                known already.

        Returns:
            The number of correct examples of each client that tests, int64 [E], or the
            sum of its losses, float64; and the predicted label of each example, [N], or
            of each position that counts, [P], if predictions are recorded, else None.
        """
        if correct_counts is not None and not self._single:
            return np.asarray(correct_counts, np.int64)[self.clients], None
        if self._predictor is not None:
            owner = np.repeat(np.arange(len(self._sizes)), self._sizes)
            tests = np.isin(owner, self.clients)
            result = self._predictor.predict(weights)[tests]
        else:
            kind = np.int64 if self.metric.is_count else np.float64
            result = np.asarray(self._compute(weights, self._packs), kind)
        if not self._single and self._predictor is None:
            return result, None
        if self.examples.has_positions:
            result = result[self.examples.y != leaf_data.MASKED]
        labels, splits = self.examples.counted_labels()
        right = np.concatenate([[0], np.cumsum(result == labels)])
        return np.diff(right[splits]), result if self._single else None
