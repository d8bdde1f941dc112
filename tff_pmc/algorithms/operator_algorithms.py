"""Algorithms that combine criteria by other operators than the prioritized score."""

from __future__ import annotations

import abc
import dataclasses

from declared_settings import Range, setting
from tff_pmc import scores
from tff_pmc.algorithms.algorithm import ALGORITHMS
from tff_pmc.algorithms.scored_algorithms import PriorityAlgorithm, ScoredAlgorithm
from tff_pmc.settings import AggregationSettings, flag_values
from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class _Operator(PriorityAlgorithm):
    """An operator over the criteria that `--priority` names."""

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the operator's score, or that of a single criterion."""
        aggregation = settings.aggregation
        self.check_own_settings()
        if len(aggregation.priority) == 1:
            return scores.prioritized(aggregation.priority, aggregation.criteria)
        return self.combine(aggregation)

    def check_own_settings(self) -> None:
        """Raises a `ValueError` if the operator's own settings are invalid."""

    @abc.abstractmethod
    def combine(self, aggregation: AggregationSettings) -> scores.Score:
        """Returns the score that combines the criteria of `--priority`."""


@dataclasses.dataclass(frozen=True)
class WeightedAverage(_Operator):
    """Clients weighted by a weighted average of their criteria."""

    name = "Weighted average"

    weights: tuple[float, ...] = setting(
        (),
        "The weight of each criterion in the order of --priority, as 0.5,0.3,0.2: "
        "sum 1.",
        flag="average_weights",
        parse=flag_values.parse_numbers,
    )

    def check_own_settings(self) -> None:
        """Raises a `ValueError` without weights."""
        if not self.weights:
            raise ValueError(
                "give --average_weights, a weight for each criterion of --priority"
            )

    def combine(self, aggregation: AggregationSettings) -> scores.Score:
        """Returns the average."""
        return scores.weighted_average(
            self.weights, aggregation.criteria, members=aggregation.priority
        )


@dataclasses.dataclass(frozen=True)
class OrderedWeightedAverage(_Operator):
    """Clients weighted by the ordered weighted average of their criteria.

    It sorts a client's normalized criteria: with --normalization=range in one
    aggregation, otherwise in two, which keep the clients' updates in memory.
    """

    name = "OWA"

    weights: tuple[float, ...] = setting(
        (),
        "The weight of a client's largest criterion, the next, ..., the smallest, as "
        "0.5,0.3,0.2: sum 1.",
        flag="owa_weights",
        parse=flag_values.parse_numbers,
    )
    quantifier: str = setting(
        "",
        "Instead of the weights: how many criteria must be satisfied.",
        flag="owa_quantifier",
        choices=("", *scores.QUANTIFIERS),
    )

    def check_own_settings(self) -> None:
        """Raises a `ValueError` unless either weights or a quantifier are given."""
        if bool(self.weights) == bool(self.quantifier):
            raise ValueError("give either --owa_weights or --owa_quantifier")

    def combine(self, aggregation: AggregationSettings) -> scores.Score:
        """Returns the OWA."""
        weights = self.quantifier or self.weights
        return scores.owa(weights, aggregation.criteria, members=aggregation.priority)


@dataclasses.dataclass(frozen=True)
class ChoquetIntegral(_Operator):
    """Clients weighted by the Choquet integral of their criteria.

    It sorts a client's normalized criteria, as `owa` does.
    """

    name = "Choquet"

    capacity: tuple[tuple[str, float], ...] = setting(
        (),
        "The capacity of each set of criteria, as DS:0.4,LD:0.3,DS+LD:0.8; that of all "
        "criteria is 1.",
        flag="choquet_capacity",
        parse=flag_values.parse_capacity,
    )

    def check_own_settings(self) -> None:
        """Raises a `ValueError` without a capacity."""
        if not self.capacity:
            raise ValueError(
                "give --choquet_capacity, a value for each set of criteria"
            )

    def combine(self, aggregation: AggregationSettings) -> scores.Score:
        """Returns the integral."""
        value = {tuple(subset.split("+")): worth for subset, worth in self.capacity}
        if len(value) < len(self.capacity):
            raise ValueError(
                "--choquet_capacity names a set twice: give each set one value"
            )
        if {code for subset in value for code in subset} != set(aggregation.priority):
            raise ValueError(
                "--choquet_capacity must name these criteria and no others: "
                f"{', '.join(aggregation.priority)}"
            )
        return scores.choquet(value, aggregation.criteria)


@dataclasses.dataclass(frozen=True)
class CriteriaProduct(_Operator):
    """Clients weighted by the product of their criteria."""

    name = "Product"

    def combine(self, aggregation: AggregationSettings) -> scores.Score:
        """Returns the product, one monomial."""
        return scores.product(aggregation.criteria, members=aggregation.priority)


@dataclasses.dataclass(frozen=True)
class DualCriterion(ScoredAlgorithm):
    """Clients weighted by `lambda * quality + (1 - lambda) * quantity` (eq. 1 to 5).

    *Dual-Criterion Model Aggregation in Federated Learning* (Zhang, Yu, Westerlund
    2024). Quality is ACC, the accuracy of the client's model on the evaluation set.
    Here the server holds this set; in the paper each client holds it and measures
    itself. Quantity is DS. With `--adjustment=best_of_all`, the default, each round
    tests all lambdas on the examples of `--judge_on`; the
    experiment `dual_criterion` chooses `test`, because the paper's validation set is
    also its test set. With `--adjustment=fixed` lambda is 0, which is FedAvg.
    """

    name = "Dual-criterion"
    search_flags = ("dual_lambda_steps",)

    lambda_steps: int = setting(
        11,
        "The number of lambdas that a round tests, evenly from 0 to 1. The paper does "
        "not give its values.",
        flag="dual_lambda_steps",
        within=Range(lambda n: 2 <= n <= 101, "2 to 101"),
    )

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score of the first round: quantity alone, lambda 0."""
        return scores.dual(0.0, criteria=settings.aggregation.criteria)

    def candidates(self, settings: RunSettings) -> list[scores.Score]:
        """Returns the scores of all lambdas."""
        criteria = settings.aggregation.criteria
        return list(scores.dual_grid(self.lambda_steps, criteria=criteria))


ALGORITHMS.register("dual", DualCriterion)
ALGORITHMS.register("weighted_average", WeightedAverage)
ALGORITHMS.register("owa", OrderedWeightedAverage)
ALGORITHMS.register("choquet", ChoquetIntegral)
ALGORITHMS.register("product", CriteriaProduct)
