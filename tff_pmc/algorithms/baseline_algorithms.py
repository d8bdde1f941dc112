"""Algorithms that wrap a TFF aggregation factory: the baselines of Dual's Table I.

The paper does not print their parameters.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from declared_settings import (
    ABOVE_0,
    BELOW_1,
    Needs,
    Range,
    SettingError,
    setting,
)
from leaf_data.client_ids import ClientNumber
from tff_pmc import scores
from tff_pmc.algorithms.algorithm import ALGORITHMS, Algorithm
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.trainer import FixedTrainer, Trainer
from tff_pmc.settings import AggregationSettings
from tff_pmc.settings.run_settings import RunSettings, slug


@dataclasses.dataclass(frozen=True)
class FactoryAlgorithm(Algorithm):
    """An algorithm that wraps an aggregation factory; a subclass defines `factory`.

    The weight of a client's update is its number of examples.
    """

    one_client_per_pack = True
    unused_flags = ("normalization", "max_update_norm")

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score of the recorded weights: the number of examples."""
        return scores.single("DS", settings.aggregation.criteria)

    @abc.abstractmethod
    def factory(self, settings: RunSettings) -> Any:
        """Builds the `tff.aggregators` factory."""

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` for settings of sums, which the factory ignores."""
        aggregation, default = settings.aggregation, AggregationSettings()
        values = aggregation.normalization, aggregation.max_update_norm
        if values != (default.normalization, default.max_update_norm):
            raise SettingError(
                "--normalization and --max_update_norm have no effect with the "
                f"algorithm {settings.algorithm_name}, which does not weight by "
                "criteria: remove them"
            )
        super().check(settings)

    def client_step(self, settings: RunSettings) -> Any:
        """Returns a function that a client applies to its trained model, or None.

        The factory aggregates the update to its result; see
        `baselines.quantize_parameters`.
        """
        return None

    def build_trainer(self, context: RunContext) -> Trainer:
        """Builds the trainer of a process that aggregates with the factory."""
        from tff_pmc import processes

        settings = context.settings
        process = processes.build_prioritized_fed_avg(
            context.model,
            client_optimizer_fn=context.client_optimizer,
            server_optimizer_fn=context.server_optimizer,
            aggregator=self.factory(settings),
            client_step=self.client_step(settings),
            criteria=context.criteria,
            sums=context.sums,
            **self.training(context).arguments,
        )
        return FixedTrainer(context, process, self.score(settings))


@dataclasses.dataclass(frozen=True)
class _Baseline(FactoryAlgorithm):
    """An algorithm that wraps the function of its name in `aggregation.baselines`."""

    def factory(self, settings: RunSettings) -> Any:
        """Builds the factory."""
        from tff_pmc.aggregation import baselines

        build = getattr(baselines, slug(self.name))
        return build(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class SimpleAverage(_Baseline):
    """The simple average of Dual's Table I: all clients have equal weights."""

    name = "Simple average"
    weighs_equally = True


@dataclasses.dataclass(frozen=True)
class WeightedMean(_Baseline):
    """The weighted mean of Dual's Table I: federated averaging with TFF's mean."""

    name = "Weighted mean"


@dataclasses.dataclass(frozen=True)
class Median(_Baseline):
    """The coordinate-wise median of Dual's Table I, with equal weights."""

    name = "Median"
    weighs_equally = True


@dataclasses.dataclass(frozen=True)
class Momentum(_Baseline):
    """The momentum of Dual's Table I, on the weighted mean."""

    name = "Momentum"

    beta: float = setting(
        0.9,
        "The momentum. The paper does not give it.",
        flag="momentum_beta",
        within=BELOW_1,
    )
    eta: float = setting(
        1.0,
        "The learning rate of the step. The paper does not give it.",
        flag="momentum_eta",
        within=ABOVE_0,
    )


@dataclasses.dataclass(frozen=True)
class Personalized(_Baseline):
    """The personalized baseline of Dual's Table I, by its formula or by its text."""

    name = "Personalized"
    weighs_equally = True

    alpha: float = setting(
        0.5,
        "In the formula, the weight of the old global model; the simple mean of the "
        "new models has 1 - alpha. The paper does not give it.",
        flag="personalized_alpha",
        within=BELOW_1,
        needs=Needs("--personalized_form=formula", lambda on: on.form == "formula"),
    )
    form: str = setting(
        "formula",
        "The formula of the paper, or its text (each client tunes the model).",
        flag="personalized_form",
        choices=("formula", "text"),
    )

    @property
    def needs_classes(self) -> bool:
        """Whether it compares labels: by the text, those that tuned models predict."""
        return self.form == "text"

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` for a decaying rate, which tuning does not follow."""
        if self.form == "text" and settings.training.client_rate_decay < 1:
            raise SettingError(
                "--client_rate_decay cannot be combined with --personalized_form=text: "
                "clients tune each round's model at the constant --learning_rate"
            )
        super().check(settings)

    def build_predictor(self, context: RunContext) -> Optional[TunedModelPredictor]:
        """Builds, for the text, the predictor that tunes the model for each client."""
        return TunedModelPredictor(context) if self.form == "text" else None


class TunedModelPredictor:
    """Predicts each client's test examples with the client's tuned model.

    The tuned model is the server's after one more local training on the client.
    """

    def __init__(self, context: RunContext) -> None:
        from tff_pmc import processes
        from tff_pmc.clients import packing

        data, training = context.data, context.settings.training
        examples = data.test_examples
        self._x = np.asarray(examples.x)
        self._owner = np.repeat(np.arange(examples.num_clients), examples.sizes)
        self._clients = packing.pack(
            data.train_examples,
            list(map(ClientNumber, range(examples.num_clients))),
            num_packs=training.num_packs,
            max_bytes=training.max_pack_bytes,
        )
        self._compute = processes.build_local_tuning_prediction(
            context.model,
            num_clients=examples.num_clients,
            num_examples=examples.num_examples,
            client_optimizer_fn=context.client_optimizer,
            training=training,
        )

    def predict(self, weights: Any) -> npt.NDArray[np.int64]:
        """Predicts the label of each test example, [N]."""
        predictions = np.asarray(
            self._compute(weights, self._clients, self._x), np.int64
        )
        client_predictions: npt.NDArray[np.int64] = predictions[
            self._owner, np.arange(len(self._owner))
        ]
        return client_predictions


@dataclasses.dataclass(frozen=True)
class Laplace(_Baseline):
    """The Laplace noise of Dual's Table I, which guarantees no privacy."""

    name = "Laplace"
    weighs_equally = True

    epsilon: float = setting(
        1.0,
        "The scale of the noise on every parameter is 1/epsilon. The paper does not "
        "give epsilon.",
        flag="laplace_epsilon",
        within=ABOVE_0,
    )

    def factory(self, settings: RunSettings) -> Any:
        """Builds the factory; its noise depends on the seed of the batches."""
        from tff_pmc.aggregation import baselines

        seed = settings.training.seed
        return baselines.laplace(epsilon=self.epsilon, seed=seed)


@dataclasses.dataclass(frozen=True)
class Quantized(_Baseline):
    """The quantization of Dual's Table I: the mean of rounded client models."""

    name = "Quantized"
    weighs_equally = True

    bits: int = setting(
        8,
        "Q: each parameter is rounded to a multiple of 1 / (2^Q - 1). The paper does "
        "not give it.",
        flag="quantized_bits",
        within=Range(lambda n: 1 <= n <= 16, "from 1 to 16"),
    )

    def factory(self, settings: RunSettings) -> Any:
        """Builds the simple average: the clients round, not the server."""
        from tff_pmc.aggregation import baselines

        return baselines.simple_average()

    def client_step(self, settings: RunSettings) -> Any:
        """Returns the function that rounds a client's trained model."""
        from tff_pmc.aggregation import baselines

        return baselines.quantize_parameters(self.bits)


@dataclasses.dataclass(frozen=True)
class QuantizedUpdates(_Baseline):
    """Rounds the clients' updates to levels between each tensor's extremes.

    The algorithm `quantized`, Dual's baseline, rounds the clients' models instead.
    """

    name = "Quantized updates"

    levels: int = setting(
        256,
        "The number of levels to which an update is rounded.",
        flag="quantized_levels",
        within=Range(
            lambda n: 2 <= n <= 65536 and n & (n - 1) == 0,
            "a power of two, 2 to 65536",
        ),
    )


_ALGORITHMS: tuple[type[Algorithm], ...] = (
    *(SimpleAverage, WeightedMean, Median, Momentum, Personalized, Laplace),
    *(Quantized, QuantizedUpdates),
)
for _algorithm in _ALGORITHMS:
    ALGORITHMS.register(slug(_algorithm.name), _algorithm)
