"""AdaFed: weights by the accuracy of the clients' models, and an adaptive loss.

*Performance-based Adaptive Federated Learning* (Giuseppi et al. 2022).
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from declared_settings import ABOVE_0, Range, SettingError, setting
from tff_pmc import scores
from tff_pmc.algorithms.algorithm import ALGORITHMS
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.scored_algorithms import ScoredAlgorithm
from tff_pmc.settings.run_settings import RunSettings

QUALITY = "ACC"
"""The criterion of AdaFed for classes: the accuracy on the server's examples."""


@dataclasses.dataclass(frozen=True)
class AdaFedWeightsOnly(ScoredAlgorithm):
    """AdaFed's weights by accuracy on the server's examples, without adaptive loss.

    The weight is the first of `--criteria`: accuracy, or for a regression (3.2) another
    criterion that is measured on the server's examples.
    """

    name = "AdaFed, weights only"
    needs_server_examples = True
    times_samples: ClassVar[bool] = False
    # The settings by which the loss adapts.
    loss_settings: ClassVar[tuple[str, ...]] = ()

    power: float = setting(
        1.0,
        "The exponent of the accuracy in a client's weight; above 1 it favors accurate "
        "models more.",
        flag="adafed_accuracy_power",
        within=ABOVE_0,
    )

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` if the first criterion is not of server examples."""
        name, first = settings.algorithm_name, settings.measured_criteria[0]
        if not first.needs_server_examples:
            raise SettingError(
                f"--algorithms={name}: the first of --criteria must be {QUALITY}, or "
                "MAPE for a regression"
            )
        if first.code != QUALITY and self.power != 1:
            raise SettingError(
                f"--adafed_accuracy_power applies to {QUALITY} only: for this "
                f"criterion write --criteria={first.code}^{self.power:g}"
            )
        super().check(settings)

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the first criterion, or its product with the number of samples."""
        criteria = settings.aggregation.criteria
        if self.times_samples:
            return scores.product(criteria, members=(criteria[0], "DS"))
        return scores.single(criteria[0], criteria)

    def build_process(
        self, context: RunContext, basis: scores.Basis | None = None
    ) -> Any:
        """Builds the process, which also broadcasts class weights if the loss adapts.

        Without classes the loss does not adapt.
        """
        from tff_pmc import processes

        first, *others = context.criteria
        return processes.build_adafed(
            context.model,
            client_optimizer_fn=context.client_optimizer,
            server_optimizer_fn=context.server_optimizer,
            server_examples=context.server_examples,
            num_classes=context.data.num_classes,
            power=self.power,
            quality=None if first.code == QUALITY else first,
            criteria=others,
            score=self.score(context.settings),
            adapt_loss=bool(self.loss_settings) and context.data.has_classes,
            **{name: getattr(self, name) for name in self.loss_settings},
            sums=context.sums,
            **self.training(context).arguments,
        )

    def counterfactuals(self, settings: RunSettings) -> list[scores.Score]:
        """Raises a `SettingError`: the clients' loss depends on the weighting."""
        return super(ScoredAlgorithm, self).counterfactuals(settings)


@dataclasses.dataclass(frozen=True)
class AdaFed(AdaFedWeightsOnly):
    """AdaFed: weights by accuracy, and class weights `1 / (F1 + epsilon)` (3.1)."""

    name = "AdaFed"
    loss_settings = ("epsilon",)

    epsilon: float = setting(
        0.1,
        "Added to the F1 of a class, whose weight in the loss is 1 / (F1 + epsilon), "
        "at most 1 / epsilon. Simulation 2 has 0.1.",
        flag="adafed_epsilon",
        within=Range(lambda x: 0 < x < 1, "above 0, below 1"),
    )


@dataclasses.dataclass(frozen=True)
class AdaFedTimesSamples(AdaFed):
    """AdaFed with weights by accuracy times number of samples, and adaptive loss."""

    name = "AdaFed, times samples"
    times_samples = True


@dataclasses.dataclass(frozen=True)
class AdaFedWeightsOnlyTimesSamples(AdaFedWeightsOnly):
    """Weights by accuracy times number of samples: the AdaFed of simulation 1."""

    name = "AdaFed, weights only, times samples"
    times_samples = True


ALGORITHMS.register("adafed", AdaFed)
ALGORITHMS.register("adafed_weights_only", AdaFedWeightsOnly)
ALGORITHMS.register("adafed_times_samples", AdaFedTimesSamples)
ALGORITHMS.register("adafed_weights_only_times_samples", AdaFedWeightsOnlyTimesSamples)
