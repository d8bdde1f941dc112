"""Operators that combine criteria in another way than the prioritized score."""

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
        """Returns the operator's score; of one criterion alone, the criterion."""
        on = settings.aggregation
        self.check_own_settings()
        if len(on.priority) == 1:
            return scores.prioritized(on.priority, on.criteria)
        return self.combine(on)

    def check_own_settings(self) -> None:
        """Refuses the operator's settings alone, with a `ValueError`."""

    @abc.abstractmethod
    def combine(self, on: AggregationSettings) -> scores.Score:
        """Returns the score of several of the criteria."""


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
        """Refuses to have no weights."""
        if not self.weights:
            raise ValueError("give --average_weights")

    def combine(self, on: AggregationSettings) -> scores.Score:
        """Returns the average."""
        return scores.weighted_average(self.weights, on.criteria, members=on.priority)


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
        "In the place of the weights: how many criteria have to be satisfied.",
        flag="owa_quantifier",
        choices=("", *scores.QUANTIFIERS),
    )

    def check_own_settings(self) -> None:
        """Refuses both weights and a quantifier, and neither."""
        if bool(self.weights) == bool(self.quantifier):
            raise ValueError("give --owa_weights or --owa_quantifier, one of them")

    def combine(self, on: AggregationSettings) -> scores.Score:
        """Returns the OWA."""
        weights = self.quantifier or self.weights
        return scores.owa(weights, on.criteria, members=on.priority)


@dataclasses.dataclass(frozen=True)
class ChoquetIntegral(_Operator):
    """Clients weighted by the Choquet integral of their criteria.

    It sorts a client's normalized criteria, as `owa` does.
    """

    name = "Choquet"

    capacity: tuple[tuple[str, float], ...] = setting(
        (),
        "What each set of criteria is worth, as DS:0.4,LD:0.3,DS+LD:0.8; that of all "
        "is 1.",
        flag="choquet_capacity",
        parse=flag_values.parse_capacity,
    )

    def check_own_settings(self) -> None:
        """Refuses to have no capacity."""
        if not self.capacity:
            raise ValueError("give --choquet_capacity")

    def combine(self, on: AggregationSettings) -> scores.Score:
        """Returns the integral."""
        value = {tuple(subset.split("+")): worth for subset, worth in self.capacity}
        if len(value) < len(self.capacity):
            raise ValueError("the capacity names a set twice")
        if {code for subset in value for code in subset} != set(on.priority):
            raise ValueError(
                f"the capacity must name the criteria {', '.join(on.priority)}, and "
                "no others"
            )
        return scores.choquet(value, on.criteria)


@dataclasses.dataclass(frozen=True)
class CriteriaProduct(_Operator):
    """Clients weighted by the product of their criteria."""

    name = "Product"

    def combine(self, on: AggregationSettings) -> scores.Score:
        """Returns the product, one monomial."""
        return scores.product(on.criteria, members=on.priority)


@dataclasses.dataclass(frozen=True)
class DualCriterion(ScoredAlgorithm):
    """Clients weighted by `lambda * quality + (1 - lambda) * quantity` (eq. 1 to 5).

    It is of *Dual-Criterion Model Aggregation in Federated Learning* (Zhang, Yu,
    Westerlund 2024). Quality is ACC, the accuracy of the client's model on the
    evaluation set, which is the server's here; in the paper each client has it and
    scores itself. Quantity is DS. With `--adjustment=best_of_all`, its default, all
    lambdas are tried in each round on the examples of `--judge_on`: the paper's
    validation set is the one that is reported, `test`. With `--adjustment=fixed` lambda
    stays 0, which is FedAvg.
    """

    name = "Dual-criterion"
    search_flags = ("dual_lambda_steps",)

    lambda_steps: int = setting(
        11,
        "How many lambdas are tried in a round, evenly from 0 to 1. The paper does "
        "not give the values it tries.",
        flag="dual_lambda_steps",
        within=Range(lambda n: 2 <= n <= 101, "2 to 101"),
    )

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score in force in the first round, of the quantity alone."""
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
