"""The criterion aggregation by itself, for people who compose their own process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.basis_sums import (
    SumFactory,
    build_basis_aggregation,
    with_candidate,
)
from tff_pmc.aggregation.two_stage_sums import build_two_stage_sums
from tff_pmc.clients.contribution import (
    Part,
    add_client,
    check_not_negative,
    no_clients,
    shard_output,
    weigh,
)
from tff_pmc.scores import SUM, Basis, Normalization, Score, prioritized

_Stages = tuple[tff.templates.AggregationProcess, Callable[[Any, Any], Any]]


class PrioritizedMeanFactory(tff.aggregators.WeightedAggregationFactory):
    """The mean of updates, weighted by a score over each client's criteria.

    The weight of an update is the vector of its client's raw criteria, and the
    result is `sum_k p_k d_k` with p of PMC's equation 5. `create` gives a
    `tff.templates.AggregationProcess` whose `next` has the type

        (<state@SERVER, U@CLIENTS, float32[m]@CLIENTS>
         -> <state@SERVER, result=U@SERVER, measurements=...@SERVER>)

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
        normalization: Normalization = SUM,
        clip_norm: Optional[float] = None,
        model_sum_factory: Optional[SumFactory] = None,
        scalar_sum_factory: Optional[SumFactory] = None,
        two_stage: bool = False,
    ) -> None:
        """Makes the factory.

        Args:
            criteria: the code of each of the m columns.
            priority: an ordering of codes or columns, or any score.
            normalization: of the criteria.
            clip_norm: L2 norm to which an update is clipped before it is
                weighted; None does not clip.
            model_sum_factory: sums the weighted updates; plain by default.
            scalar_sum_factory: sums criteria and monomials; plain by default.
            two_stage: for scores that need the totals first, OWA and Choquet
                without declared ranges: updates wait at the clients for them, and
                the process compiles to none of TFF's deployment forms.

        Raises:
            ValueError: the ordering does not fit the criteria, one is named twice,
                the score needs declared ranges or two stages, two stages are asked
                for with a `scalar_sum_factory`, or `clip_norm` is out of range.
        """
        if len(set(criteria)) != len(criteria):
            raise ValueError(f"a criterion is named twice: {', '.join(criteria)}")
        if clip_norm is not None and not 0 < clip_norm < math.inf:
            raise ValueError(f"clip_norm must be finite and above 0, got {clip_norm}")
        self._criteria = tuple(criteria)
        self._score = (
            priority if isinstance(priority, Score) else prioritized(priority, criteria)
        )
        self._basis = Basis.of(len(criteria), [self._score])
        if not two_stage:
            self._basis.check_computable(normalization)
        elif scalar_sum_factory is not None:
            raise ValueError(
                "the two-stage form sends the totals in the clear: leave out "
                "scalar_sum_factory, or declare ranges and take one stage"
            )
        self._two_stage = two_stage
        self._normalization = normalization
        self._clip_norm = clip_norm
        self._sum_factories = {
            "model_sum_factory": model_sum_factory,
            "scalar_sum_factory": scalar_sum_factory,
        }

    @property
    def weight_type(self) -> tff.Type:
        """The type of a client's weight: its raw criteria, float32 [m]."""
        return tff.TensorType(np.float32, [self._basis.num_criteria])

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation for one type of update.

        Args:
            value_type: a structure of float tensors.
            weight_type: must be `self.weight_type`.

        Raises:
            TypeError: the weight is not the vector of the criteria.
        """
        if not self.weight_type.is_equivalent_to(weight_type):
            raise TypeError(
                f"the weight must be the client's raw criteria, {self.weight_type}, "
                f"got {weight_type}"
            )
        build = self._two_stages if self._two_stage else self._one_stage
        inner, client_output = build(value_type)

        @tff.tensorflow.computation(value_type, weight_type)
        def weigh_client(update, raw):
            if self._normalization.method != "range":
                raw = check_not_negative(", ".join(self._criteria), raw)
            return client_output(update, raw)

        @tff.federated_computation(
            inner.initialize.type_signature.result,
            tff.FederatedType(value_type, tff.CLIENTS),
            tff.FederatedType(weight_type, tff.CLIENTS),
        )
        def next_fn(state, updates, criteria):
            weighted, scalars = tff.federated_map(weigh_client, (updates, criteria))
            return inner.next(state, weighted, scalars)

        return tff.templates.AggregationProcess(inner.initialize, next_fn)

    def _one_stage(self, value_type: tff.Type) -> _Stages:
        """The aggregation, and what a client sends to it."""

        def client_output(update, raw):
            part = self._part(self._basis, raw, update)
            sums = add_client(no_clients(self._basis, update), part, 0, 0.0)
            result, _ = shard_output(sums, self._normalization)
            return result.update, result.update_weight

        aggregation = build_basis_aggregation(
            value_type,
            self._basis,
            self._score,
            normalization=self._normalization,
            **self._sum_factories,
        )
        return aggregation, client_output

    def _two_stages(self, value_type: tff.Type) -> _Stages:
        """The same where the client waits for the totals, a shard of one."""
        unweighted = Basis.singles(self._basis.num_criteria)

        def client_output(update, raw):
            part = self._part(unweighted, raw, update)
            return tf.nest.map_structure(
                lambda t: t[tf.newaxis], (part.update, part.criteria)
            )

        sums = build_two_stage_sums(
            value_type,
            self._basis,
            normalization=self._normalization,
            model_sum_factory=self._sum_factories["model_sum_factory"],
        )
        return with_candidate(sums, self._basis, self._score), client_output

    def _part(self, basis: Basis, raw: tf.Tensor, update: Any) -> Part:
        return weigh(basis, self._normalization, self._clip_norm, raw, update)
