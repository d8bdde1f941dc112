"""The one aggregation: sums of monomial-weighted updates and of raw monomials."""

from __future__ import annotations

import collections

import numpy as np
import tensorflow_federated as tff

from tff_pmc.aggregation.candidates import combine
from tff_pmc.scores import Basis, PolynomialScore


def build_basis_aggregation(
    update_type: tff.Type,
    basis: Basis,
    score: PolynomialScore,
    *,
    model_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None,
    scalar_sum_factory: tff.aggregators.UnweightedAggregationFactory | None = None,
) -> tff.templates.AggregationProcess:
    """Builds the aggregation over a basis, with one score's result.

    With `U` the update's type and `U*B` a tuple of B of them, the `next` of the
    result has the type

        (<state=<candidate=float32[B],model_sums=...,scalar_sums=...>@SERVER,
          U*B@CLIENTS, <criteria=float32[m], monomials=float32[B]>@CLIENTS>
         -> <state@SERVER, result=U@SERVER,
             measurements=<totals=float32[m], monomials=float32[B],
                           score=float32, sums=...>@SERVER>)

    The state carries the candidate, `a_S` for each S: another score over the
    same basis needs no other process (`processes.with_score`).

    Args:
        update_type: the type of one update, a structure of float tensors.
        basis: the monomials whose weighted updates come in.
        score: the score in force; the basis must cover it.
        model_sum_factory: sums the weighted updates; plain sums by default.
        scalar_sum_factory: sums criteria and monomials; plain sums by default.

    Returns:
        A `tff.templates.AggregationProcess`.

    Raises:
        ValueError: the basis does not cover the score.
    """
    size, columns = len(basis), basis.num_criteria
    vector = basis.vector(score)
    sums_type = tff.to_type((update_type,) * size)
    scalars_type = tff.to_type(
        collections.OrderedDict(
            criteria=tff.TensorType(np.float32, [columns]),
            monomials=tff.TensorType(np.float32, [size]),
        )
    )
    model_sums = (model_sum_factory or tff.aggregators.SumFactory()).create(sums_type)
    scalar_sums = (scalar_sum_factory or tff.aggregators.SumFactory()).create(
        scalars_type
    )

    @tff.tensorflow.computation
    def initial_candidate():
        return vector

    @tff.federated_computation
    def initialize():
        return tff.federated_zip(
            collections.OrderedDict(
                candidate=tff.federated_eval(initial_candidate, tff.SERVER),
                model_sums=model_sums.initialize(),
                scalar_sums=scalar_sums.initialize(),
            )
        )

    @tff.tensorflow.computation(
        tff.TensorType(np.float32, [size]), scalars_type, sums_type
    )
    def candidate_update(candidate, scalars, sums):
        return combine(
            basis, candidate, scalars["criteria"], scalars["monomials"], sums
        )

    @tff.federated_computation(
        initialize.type_signature.result,
        tff.FederatedType(sums_type, tff.CLIENTS),
        tff.FederatedType(scalars_type, tff.CLIENTS),
    )
    def next_fn(state, updates, weights):
        models = model_sums.next(state.model_sums, updates)
        scalars = scalar_sums.next(state.scalar_sums, weights)
        update, score_sum = tff.federated_map(
            candidate_update, (state.candidate, scalars.result, models.result)
        )
        new_state = tff.federated_zip(
            collections.OrderedDict(
                candidate=state.candidate,
                model_sums=models.state,
                scalar_sums=scalars.state,
            )
        )
        measurements = tff.federated_zip(
            collections.OrderedDict(
                totals=scalars.result.criteria,
                monomials=scalars.result.monomials,
                score=score_sum,
                model_sums=models.measurements,
                scalar_sums=scalars.measurements,
            )
        )
        return tff.templates.MeasuredProcessOutput(new_state, update, measurements)

    return tff.templates.AggregationProcess(initialize, next_fn)
