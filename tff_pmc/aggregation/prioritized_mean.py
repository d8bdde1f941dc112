"""The criterion aggregation by itself, for people who compose their own process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.basis_sums import build_basis_sums, with_score_in_force
from tff_pmc.aggregation.building import aggregation_process, parts_of, zipped
from tff_pmc.aggregation.contributions import (
    RunningSums,
    check_not_negative,
    contribution_of,
    weighted_updates,
)
from tff_pmc.aggregation.sum_options import PLAIN_SUMS, SumOptions
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

    Example:
        >>> factory = PrioritizedMeanFactory(("DS", "LD"), ("LD", "DS"))
        >>> process = factory.create(update_type, factory.weight_type)
        >>> process.next(process.initialize(), updates, [[600.0, 2.0], [20.0, 4.0]])
    """

    def __init__(
        self,
        criteria: Sequence[str],
        priority: Union[Sequence[Union[int, str]], Score],
        *,
        sums: SumOptions = PLAIN_SUMS,
        two_stage: bool = False,
    ) -> None:
        """Makes the factory.

        Args:
            criteria: the code of each of the m columns.
            priority: an ordering of codes or columns, or any score.
            sums: the options of the sums.
            two_stage: for scores that need the totals first, OWA and Choquet
                without declared ranges: updates wait at the clients for them, and
                the process compiles to none of TFF's deployment forms.

        Raises:
            ValueError: the ordering does not fit the criteria, one is named twice,
                the score needs declared ranges or two stages, or two stages are
                asked for with sums that hide what clients send.
        """
        if len(set(criteria)) != len(criteria):
            raise ValueError(f"a criterion is named twice: {', '.join(criteria)}")
        self._criteria = tuple(criteria)
        self._score = (
            priority if isinstance(priority, Score) else prioritized(priority, criteria)
        )
        self._plan = sums.plan(Basis.of(len(criteria), [self._score]), self._criteria)
        if not two_stage:
            self._plan.basis.check_computable(self._plan.normalization)
        else:
            sums.check_two_stage()
        self._two_stage = two_stage

    @property
    def weight_type(self) -> tff.Type:
        """The type of a client's weight: its raw criteria, float32 [m]."""
        return tff.TensorType(np.float32, [len(self._criteria)])

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation; a `TypeError` for another type of weights."""
        if not self.weight_type.is_equivalent_to(weight_type):
            raise TypeError(
                f"the weight must be the client's raw criteria, {self.weight_type}, "
                f"got {weight_type}"
            )
        plan, build_sums = self._plan, build_basis_sums
        if self._two_stage:  # Each client is a pack of its own.
            plan, build_sums = self._plan.unweighted(), build_two_stage_sums
        sums = build_sums(value_type, self._plan)
        inner = with_score_in_force(sums, self._plan.basis, self._score)

        @tff.tensorflow.computation(value_type, weight_type)
        def prepare(update, raw):
            if plan.normalization.method != "range":
                raw = check_not_negative(", ".join(self._criteria), raw)
            own = contribution_of(plan, raw, update)
            left_out = tf.cast(tf.logical_not(own.included), tf.int32)
            if self._two_stage:
                sent = own.update, own.criteria
                sent = tf.nest.map_structure(lambda t: t[tf.newaxis], sent)
                return *sent, left_out
            sums_of_one = RunningSums.of_nobody(plan.basis).plus(own, 0, 0.0)
            result = sums_of_one.result(weighted_updates(own), plan.normalization)
            return result.update, result.update_weight, left_out

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
