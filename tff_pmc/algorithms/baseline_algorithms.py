"""Algorithms whose aggregation is a factory of TFF's kind: Dual's baselines (Table I).

The paper prints the parameters of none of them.
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
    """An algorithm around an aggregation factory; a subclass only defines `factory`.

    The weight of a client's update is its number of examples.
    """

    one_client_per_pack = True
    unused_flags = ("normalization", "max_update_norm")

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score for the weights on record: the number of examples."""
        return scores.single("DS", settings.aggregation.criteria)

    @abc.abstractmethod
    def factory(self, settings: RunSettings) -> Any:
        """Makes the `tff.aggregators` factory."""

    def check(self, settings: RunSettings) -> None:
        """Refuses what the factory, in the place of the sums, would not follow."""
        on, default = settings.aggregation, AggregationSettings()
        given = on.normalization, on.max_update_norm
        if given != (default.normalization, default.max_update_norm):
            raise SettingError(
                "--normalization and --max_update_norm do not go with the algorithm "
                f"{settings.algorithm_name}, which does not weigh by criteria"
            )
        super().check(settings)

    def client_step(self, settings: RunSettings) -> Any:
        """Returns what a client does with its model before the factory sees its update.

        None, the default, for nothing; see `baselines.quantize_parameters`.
        """
        return None

    def build_trainer(self, context: RunContext) -> Trainer:
        """Builds the trainer of a process around the factory."""
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
    """A factory of `aggregation.baselines` with the algorithm's name and settings."""

    def factory(self, settings: RunSettings) -> Any:
        """Makes the factory."""
        from tff_pmc.aggregation import baselines

        build = getattr(baselines, slug(self.name))
        return build(**dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class SimpleAverage(_Baseline):
    """The simple average of Dual's Table I: all clients count alike."""

    name = "Simple average"
    weighs_equally = True


@dataclasses.dataclass(frozen=True)
class WeightedMean(_Baseline):
    """The weighted mean of Dual's Table I: federated averaging by TFF's mean."""

    name = "Weighted mean"


@dataclasses.dataclass(frozen=True)
class Median(_Baseline):
    """The median of Dual's Table I: all clients count alike, and no sum gives it."""

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
        "The rate of the step. The paper does not give it.",
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
        "By the formula: the share of the old global model, with 1 - alpha of the "
        "simple mean of the new models. The paper does not give it.",
        flag="personalized_alpha",
        within=BELOW_1,
        needs=Needs("--personalized_form=formula", lambda on: on.form == "formula"),
    )
    form: str = setting(
        "formula",
        "By the formula of the paper, or by its text (each client tunes the model).",
        flag="personalized_form",
        choices=("formula", "text"),
    )

    @property
    def needs_classes(self) -> bool:
        """By the text, the labels that clients' models predict are compared."""
        return self.form == "text"

    def check(self, settings: RunSettings) -> None:
        """Refuses by the text a rate of the round, which tuning does not follow."""
        if self.form == "text" and settings.training.client_rate_decay < 1:
            raise SettingError(
                "--client_rate_decay does not go with --personalized_form=text, whose "
                "clients tune each round's model at --learning_rate"
            )
        super().check(settings)

    def build_predictor(self, context: RunContext) -> Optional[TunedModelPredictor]:
        """Answers, by the text, with the tuned model of each client."""
        return TunedModelPredictor(context) if self.form == "text" else None


class TunedModelPredictor:
    """The predictions of each client's model on the client's part of the test set.

    Its model is the server's after one more local training.
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
        answers = np.asarray(self._compute(weights, self._clients, self._x), np.int64)
        own: npt.NDArray[np.int64] = answers[self._owner, np.arange(len(self._owner))]
        return own


@dataclasses.dataclass(frozen=True)
class Laplace(_Baseline):
    """The differential privacy of Dual's Table I: noise, and no guarantee."""

    name = "Laplace"
    weighs_equally = True

    epsilon: float = setting(
        1.0,
        "The noise has the scale 1/epsilon on every parameter. The paper does not "
        "give it.",
        flag="laplace_epsilon",
        within=ABOVE_0,
    )

    def factory(self, settings: RunSettings) -> Any:
        """Makes the factory; the noise is drawn by the seed of the batches."""
        from tff_pmc.aggregation import baselines

        seed = settings.training.seed
        return baselines.laplace(epsilon=self.epsilon, seed=seed)


@dataclasses.dataclass(frozen=True)
class Quantized(_Baseline):
    """The quantization of Dual's Table I: each client's parameters, then their mean."""

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
        """Builds the simple average: the client rounds, and not the mean."""
        from tff_pmc.aggregation import baselines

        return baselines.simple_average()

    def client_step(self, settings: RunSettings) -> Any:
        """Rounds the trained model at the client."""
        from tff_pmc.aggregation import baselines

        return baselines.quantize_parameters(self.bits)


@dataclasses.dataclass(frozen=True)
class QuantizedUpdates(_Baseline):
    """Clients' updates rounded to levels between each tensor's extremes.

    Dual's Quantization rounds the clients' models: see the algorithm `quantized`.
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
