"""The mean of updates, weighted by a score over criteria, as a TFF aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from declared_settings import require_sequence
from tff_pmc.aggregation.basis_sums import build_basis_sums, build_scored_mean
from tff_pmc.aggregation.contributions import (
    RunningSums,
    check_not_negative,
    compute_contribution,
    weighted_updates,
)
from tff_pmc.aggregation.sum_options import PLAIN_SUMS, SumOptions
from tff_pmc.aggregation.tff_utils import (
    build_aggregation_process,
    check_type,
    federated_struct,
    members_by_name,
)
from tff_pmc.aggregation.two_stage_sums import build_two_stage_sums
from tff_pmc.scores import Basis, Score, prioritized


class PrioritizedMeanFactory(tff.aggregators.WeightedAggregationFactory):
    """The mean of updates, weighted by a score over each client's criteria.

    The weight of an update is the vector of its client's raw criteria, and the result
    is `sum_k p_k d_k` with the `p_k` of PMC's equation 5. `create` returns a
    `tff.templates.AggregationProcess` whose `next` has the type

        (<state@SERVER, U@CLIENTS, float32[m]@CLIENTS>
         -> <state@SERVER, result=U@SERVER, measurements=...@SERVER>)

    The measurements contain `excluded`, the number of clients whose update or criteria
    are not finite or too large (`SumOptions`).

    `build_prioritized_fed_avg` uses `create_for_packs`, the server's half of `create`:
    its clients weight their updates themselves, several to a pack.

    OWA and Choquet without declared ranges need the totals of the criteria first. They
    take two stages, between which the clients keep their updates, and the process
    compiles to none of TFF's deployment forms.

    Attributes:
        score: the score that the initial state selects.
        options: the options of the sums.
        plan: the plan of the sums, with the `basis` and whether it is `two_stage`.

    Examples:
        >>> factory = PrioritizedMeanFactory(("DS", "LD"), ("LD", "DS"))
        >>> process = factory.create(update_type, factory.weight_type)
        >>> process.next(process.initialize(), updates, [[600.0, 2.0], [20.0, 4.0]])
    """

    def __init__(
        self,
        criteria: Sequence[str],
        priority: Union[Sequence[Union[int, str]], Score],
        *,
        basis: Optional[Basis] = None,
        sums: SumOptions = PLAIN_SUMS,
    ) -> None:
        """Checks the criteria, the score and the options, and plans the sums.

        Args:
            criteria: the codes of the m criteria, in the order of the weights.
            priority: an ordering of codes or column numbers, or any score. A score over
                codes applies to the criteria with these codes, in any order.
            basis: the sums to compute; by default those that the score needs.
            sums: the options of the sums.

        Raises:
            ValueError: the ordering or score does not fit the criteria; a criterion is
                listed twice; the criteria are a set or a dict, which have no order; the
                basis does not cover the score; or the sums need two stages and options
                hide what clients send.
        """
        check_type("sums", sums, SumOptions, "a SumOptions")
        criteria = require_sequence("criteria", criteria)
        if len(set(criteria)) != len(criteria):
            raise ValueError(f"a criterion is named twice: {', '.join(criteria)}")
        self._criteria = criteria
        if not isinstance(priority, Score):
            priority = prioritized(priority, criteria)
        self.score = priority.over(criteria)
        basis = (basis or Basis.of(criteria, [self.score])).over(criteria)
        basis.coefficients(self.score)  # Raises here, before anything is traced.
        self.options, self.plan = sums, sums.plan(basis, self._criteria)
        if not self.plan.two_stage:
            basis.check_computable(self.plan.normalization)

    @property
    def weight_type(self) -> tff.Type:
        """The type of a client's weight: its raw criteria, float32 [m]."""
        return tff.TensorType(np.float32, [len(self._criteria)])

    def create_sums(self, update_type: tff.Type) -> tff.templates.AggregationProcess:
        """Creates the aggregation of packs' messages to sums; see `combine`."""
        build = build_two_stage_sums if self.plan.two_stage else build_basis_sums
        return build(update_type, self.plan)

    def create_for_packs(
        self, update_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation of packs' messages to the mean update."""
        sums = self.create_sums(update_type)
        return build_scored_mean(sums, self.plan.basis, self.score)

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation; raises a `TypeError` for another type of weights."""
        if not self.weight_type.is_equivalent_to(weight_type):
            raise TypeError(
                f"the weight must be the client's raw criteria, {self.weight_type}, "
                f"got {weight_type}"
            )
        inner = self.create_for_packs(value_type)
        # Each client is one pack.
        plan = self.plan.first_stage() if self.plan.two_stage else self.plan

        @tff.tensorflow.computation(value_type, weight_type)
        def prepare(update, raw):
            if plan.normalization.method != "range":
                raw = check_not_negative(", ".join(self._criteria), raw)
            contribution = compute_contribution(plan, raw, update)
            excluded = tf.cast(tf.logical_not(contribution.included), tf.int32)
            if self.plan.two_stage:
                stacked = contribution.update, contribution.criteria
                stacked = tf.nest.map_structure(lambda t: t[tf.newaxis], stacked)
                return *stacked, excluded
            client_sums = RunningSums.zeros(plan.basis).add(contribution, 0, 0.0)
            message = client_sums.message(plan, weighted_updates(contribution))
            return message.updates, message.update_weight, excluded

        def next_fn(state, updates, criteria):
            prepared = tff.federated_map(prepare, (updates, criteria))
            weighted, scalars, excluded = prepared
            output = inner.next(state, weighted, scalars)
            measurements = federated_struct(
                **members_by_name(output.measurements),
                excluded=tff.federated_sum(excluded),
            )
            return tff.templates.MeasuredProcessOutput(
                output.state, output.result, measurements
            )

        return build_aggregation_process(
            inner.initialize, next_fn, value_type, weight_type
        )
