"""The parts of a round that every process shares: clients, criteria and sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Callable, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import SumPlan, build_basis_sums, build_two_stage_sums
from tff_pmc.clients import model_metrics
from tff_pmc.clients.dataset_training import build_dataset_client_work
from tff_pmc.clients.packed_training import build_packed_client_work
from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.models import PackedModel
from tff_pmc.processes import arguments
from tff_pmc.scores import Basis

ModelFn = Union[
    tff.learning.models.FunctionalModel, Callable[[], tff.learning.models.VariableModel]
]


@dataclasses.dataclass(frozen=True)
class RoundParts:
    """The parts that are composed into a process.

    `( -> W)`, W the type of the model's `ModelWeights`; local training and the
    criteria; the plan of the sums over the clients, and their aggregation; the server's
    optimizer.
    """

    initial_weights: tff.Computation
    client_work: tff.learning.templates.ClientWorkProcess
    plan: SumPlan
    sums: tff.templates.AggregationProcess
    server_optimizer: tff.learning.optimizers.Optimizer

    @property
    def weights_type(self) -> tff.Type:
        """The type of the model's `ModelWeights`, W."""
        return self.initial_weights.type_signature.result


def build_round_parts(
    model_fn: ModelFn,
    criteria: Sequence[criteria_lib.Criterion],
    basis: Basis,
    options: TrainingOptions,
    *,
    two_stage: bool = False,
    num_weighted_classes: int = 0,
) -> RoundParts:
    """Checks the options against the model and builds the parts.

    With `two_stage` the totals go back to the clients before they weight their updates.
    The errors are those of `build_prioritized_fed_avg`.
    """
    if basis.num_criteria != len(criteria):
        raise ValueError(
            f"the basis is over {basis.num_criteria} criteria, but there are "
            f"{len(criteria)}"
        )
    packed = options.is_packed(model_fn)
    if not packed:
        _check_datasets_suffice(criteria, num_weighted_classes)
    plan = options.sums.plan(basis, [criterion.code for criterion in criteria])
    if two_stage:
        arguments.check_two_stage(packed, options.sums)
    else:
        basis.check_computable(plan.normalization)
    weights, input_spec = arguments.initial_weights(model_fn)
    arguments.probe_criteria(criteria, weights, input_spec, options.client_attributes)
    metrics = model_metrics.build_aggregation(
        model_fn, options.metrics_aggregator, hidden=options.only_counts
    )
    if packed:
        client_work = build_packed_client_work(
            PackedModel.of(model_fn),
            criteria,
            plan,
            options,
            metrics,
            num_weighted_classes=num_weighted_classes,
            updates_wait=two_stage,
        )
    else:
        client_work = build_dataset_client_work(
            model_metrics.as_model_fn(model_fn), criteria, plan, options, metrics
        )

    @tff.tensorflow.computation
    def initial_weights():
        return tf.nest.map_structure(tf.constant, weights)

    build_sums = build_two_stage_sums if two_stage else build_basis_sums
    sums = build_sums(initial_weights.type_signature.result, plan)
    return RoundParts(
        initial_weights, client_work, plan, sums, options.server_optimizer
    )


def _check_datasets_suffice(
    criteria: Sequence[criteria_lib.Criterion], num_weighted_classes: int
) -> None:
    """Refuses what clients in the form of datasets of batches cannot follow."""
    if criteria_lib.example_attributes(criteria):
        names = ", ".join(criteria_lib.example_attributes(criteria))
        raise ValueError(
            f"the examples' attributes ({names}) that a criterion needs travel with "
            "packed clients only"
        )
    if num_weighted_classes:
        raise ValueError("class weights are of packed clients only: leave out packed")
