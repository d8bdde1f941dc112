"""The mean of updates under a score over criteria, as an aggregation of TFF's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from declared_settings import require_sequence
from tff_pmc.aggregation.basis_sums import build_basis_sums, with_score_in_force
from tff_pmc.aggregation.contributions import (
    RunningSums,
    check_not_negative,
    contribution_of,
    weighted_updates,
)
from tff_pmc.aggregation.sum_options import PLAIN_SUMS, SumOptions
from tff_pmc.aggregation.tff_utils import (
    aggregation_process,
    check_kind,
    parts_of,
    zipped,
)
from tff_pmc.aggregation.two_stage_sums import build_two_stage_sums
from tff_pmc.scores import Basis, Score, prioritized


class PrioritizedMeanFactory(tff.aggregators.WeightedAggregationFactory):
    """The mean of updates, weighted by a score over each client's criteria.

    The weight of an update is the vector of its client's raw criteria, and the
    result is `sum_k p_k d_k` with p of PMC's equation 5. `create` gives a
    `tff.templates.AggregationProcess` whose `next` has the type

        (<state@SERVER, U@CLIENTS, float32[m]@CLIENTS>
         -> <state@SERVER, result=U@SERVER, measurements=...@SERVER>)

    The measurements have `excluded`, the number of clients that do not count, as their
    update or a criterion is not finite or too large (`SumOptions`).

    `build_prioritized_fed_avg` aggregates by it: its clients weight their updates
    themselves, several in a pack, so that it takes `create_for_packs`, which is the
    same without the clients' part.

    OWA and Choquet without declared ranges need the totals of the criteria first:
    updates wait at the clients for them, in two stages, and the process compiles to
    none of TFF's deployment forms.

    Attributes:
        score: the score in force.
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
        """Makes the factory.

        Args:
            criteria: the code of each of the m columns.
            priority: an ordering of codes or columns, or any score: by codes it is
                that of these criteria, whichever columns it was built over.
            basis: the sums to make; by default those that the score needs.
            sums: the options of the sums.

        Raises:
            ValueError: the ordering or score does not fit the criteria, one is named
                twice, or they have no order; the basis does not cover the score; or the
                sums need two stages and hide what clients send.
        """
        check_kind("sums", sums, SumOptions, "a SumOptions")
        criteria = require_sequence("criteria", criteria)
        if len(set(criteria)) != len(criteria):
            raise ValueError(f"a criterion is named twice: {', '.join(criteria)}")
        self._criteria = criteria
        if not isinstance(priority, Score):
            priority = prioritized(priority, criteria)
        self.score = priority.over(criteria)
        basis = (basis or Basis.of(criteria, [self.score])).over(criteria)
        basis.coefficients(self.score)  # Refused here, before anything is traced.
        self.options, self.plan = sums, sums.plan(basis, self._criteria)
        if not self.plan.two_stage:
            basis.check_computable(self.plan.normalization)

    @property
    def weight_type(self) -> tff.Type:
        """The type of a client's weight: its raw criteria, float32 [m]."""
        return tff.TensorType(np.float32, [len(self._criteria)])

    def create_sums(self, update_type: tff.Type) -> tff.templates.AggregationProcess:
        """Creates the sums over packs, of which any score over the basis follows."""
        build = build_two_stage_sums if self.plan.two_stage else build_basis_sums
        return build(update_type, self.plan)

    def create_for_packs(
        self, update_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the mean of what packs of clients send; see `create_sums`."""
        sums = self.create_sums(update_type)
        return with_score_in_force(sums, self.plan.basis, self.score)

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation; a `TypeError` for another type of weights."""
        if not self.weight_type.is_equivalent_to(weight_type):
            raise TypeError(
                f"the weight must be the client's raw criteria, {self.weight_type}, "
                f"got {weight_type}"
            )
        inner = self.create_for_packs(value_type)
        # Each client is one pack.
        plan = self.plan.unweighted() if self.plan.two_stage else self.plan

        @tff.tensorflow.computation(value_type, weight_type)
        def prepare(update, raw):
            if plan.normalization.method != "range":
                raw = check_not_negative(", ".join(self._criteria), raw)
            own = contribution_of(plan, raw, update)
            left_out = tf.cast(tf.logical_not(own.included), tf.int32)
            if self.plan.two_stage:
                sent = own.update, own.criteria
                sent = tf.nest.map_structure(lambda t: t[tf.newaxis], sent)
                return *sent, left_out
            sums_of_one = RunningSums.of_nobody(plan.basis).plus(own, 0, 0.0)
            message = sums_of_one.message(plan, weighted_updates(own))
            return message.updates, message.update_weight, left_out

        def next_fn(state, updates, criteria):
            prepared = tff.federated_map(prepare, (updates, criteria))
            weighted, scalars, left_out = prepared
            output = inner.next(state, weighted, scalars)
            excluded = tff.federated_sum(left_out)
            measured = zipped(**parts_of(output.measurements), excluded=excluded)
            return tff.templates.MeasuredProcessOutput(
                output.state, output.result, measured
            )

        return aggregation_process(inner.initialize, next_fn, value_type, weight_type)
