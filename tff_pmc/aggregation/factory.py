"""The criterion aggregation by itself, for people who compose their own process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Optional, Union

import numpy as np
import tensorflow_federated as tff

from tff_pmc.aggregation.basis_sums import SumFactory, build_basis_aggregation
from tff_pmc.clients.contribution import (
    add_client,
    check_not_negative,
    no_clients,
    shard_output,
    weigh,
)
from tff_pmc.scores import SUM, Basis, Normalization, Score, prioritized


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

        Raises:
            ValueError: the ordering does not fit the criteria, one is named twice,
                the score needs declared ranges, or `clip_norm` is out of range.
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
        self._basis.check_computable(normalization)
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
        inner = build_basis_aggregation(
            value_type,
            self._basis,
            self._score,
            normalization=self._normalization,
            **self._sum_factories,
        )

        @tff.tensorflow.computation(value_type, weight_type)
        def weigh_client(update, raw):
            if self._normalization.method != "range":
                raw = check_not_negative(", ".join(self._criteria), raw)
            part = weigh(self._basis, self._normalization, self._clip_norm, raw, update)
            sums = add_client(no_clients(self._basis, update), part, 0, 0.0)
            result, _ = shard_output(sums, self._normalization)
            return result.update, result.update_weight

        @tff.federated_computation(
            inner.initialize.type_signature.result,
            tff.FederatedType(value_type, tff.CLIENTS),
            tff.FederatedType(weight_type, tff.CLIENTS),
        )
        def next_fn(state, updates, criteria):
            weighted, scalars = tff.federated_map(weigh_client, (updates, criteria))
            return inner.next(state, weighted, scalars)

        return tff.templates.AggregationProcess(inner.initialize, next_fn)
