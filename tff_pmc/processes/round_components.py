"""The components of which every process is composed, and their checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Callable, Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import PrioritizedMeanFactory
from tff_pmc.aggregation.baselines import ClientStep
from tff_pmc.aggregation.contributions import aggregated_weights, update_type
from tff_pmc.aggregation.tff_utils import check_type
from tff_pmc.clients import model_metrics
from tff_pmc.clients.dataset_training import build_dataset_client_work
from tff_pmc.clients.packed_training import build_packed_client_work
from tff_pmc.clients.training_options import Training
from tff_pmc.models import PackedModel
from tff_pmc.processes import argument_checks, criterion_probe

Model = Union[
    tff.learning.models.FunctionalModel, Callable[[], tff.learning.models.VariableModel]
]


@dataclasses.dataclass(frozen=True)
class RoundComponents:
    """The components that a process is composed of."""

    initial_weights: tff.Computation  # ( -> W), W the model's `ModelWeights`.
    client_work: tff.learning.templates.ClientWorkProcess
    mean: PrioritizedMeanFactory  # It aggregates the results of the client work.
    server_optimizer: tff.learning.optimizers.Optimizer

    @property
    def weights_type(self) -> tff.Type:
        """The type of the model's `ModelWeights`, W."""
        return self.initial_weights.type_signature.result

    @property
    def update_type(self) -> tff.Type:
        """The type of a client's update, U."""
        return update_type(self.weights_type)


def build_round_components(
    model: Model,
    criteria: Sequence[criteria_lib.Criterion],
    mean: PrioritizedMeanFactory,
    training: Training,
    *,
    client_optimizer: tff.learning.optimizers.Optimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer],
    num_weighted_classes: int = 0,
) -> RoundComponents:
    """Checks the arguments of a builder against the model and builds the components.

    The errors are those of `build_prioritized_fed_avg`.
    """
    if server_optimizer is None:
        server_optimizer = tff.learning.optimizers.build_sgdm(1.0)
    optimizers = {
        "client_optimizer_fn": client_optimizer,
        "server_optimizer_fn": server_optimizer,
    }
    optimizer_type = tff.learning.optimizers.Optimizer
    for name, optimizer in optimizers.items():
        check_type(
            name, optimizer, optimizer_type, "a tff.learning.optimizers.Optimizer"
        )
    training.check_sums(mean.options.hiding_options)
    weights, input_spec = argument_checks.initial_weights_and_spec(model)
    for name, optimizer in optimizers.items():
        argument_checks.check_step(name, optimizer, weights.trainable)
    argument_checks.check_client_optimizer(
        client_optimizer, training, weights.trainable
    )
    packed = training.is_packed(model)
    if not packed:
        _check_dataset_clients(criteria, mean, num_weighted_classes)
    criterion_probe.probe_criteria(
        criteria, model, weights, input_spec, training.client_attributes
    )
    metrics = model_metrics.build_aggregation(
        model, training.metrics_aggregator, hidden=mean.plan.counts_only
    )
    if packed:
        client_work = build_packed_client_work(
            PackedModel.of(model),
            client_optimizer,
            criteria,
            mean.plan,
            training,
            metrics,
            num_weighted_classes=num_weighted_classes,
        )
    else:
        client_work = build_dataset_client_work(
            model_metrics.as_model_fn(model),
            client_optimizer,
            criteria,
            mean.plan,
            training,
            metrics,
        )

    @tff.tensorflow.computation
    def initial_weights():
        return tf.nest.map_structure(tf.constant, weights)

    return RoundComponents(initial_weights, client_work, mean, server_optimizer)


def _check_dataset_clients(
    criteria: Sequence[criteria_lib.Criterion],
    mean: PrioritizedMeanFactory,
    num_weighted_classes: int,
) -> None:
    """Raises a `ValueError` for options that need packed clients."""
    if mean.plan.two_stage:
        raise ValueError(
            "two stages need packed clients, whose updates they keep: pass a "
            "tff.learning.models.FunctionalModel without packed=False, or declare "
            "ranges (normalization='range'), with which one stage is enough"
        )
    if criteria_lib.example_attributes(criteria):
        names = ", ".join(criteria_lib.example_attributes(criteria))
        raise ValueError(
            f"a criterion needs example attributes ({names}), which only packed "
            "clients have: remove packed=False, or the criterion"
        )
    if num_weighted_classes:
        raise ValueError(
            "class weights only apply to packed clients: remove packed=False"
        )


def build_single_client_work(
    inner: tff.learning.templates.ClientWorkProcess, client_step: Optional[ClientStep]
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work whose result is one client's update and size.

    A process of any TFF aggregation factory can take these results, and then sees each
    client's update.

    `inner` sends the sums over a pack's clients of `n_k d_k` and of `n_k`. For a pack
    of one client their quotient is `d_k`. An excluded client sends an update of 0 with
    the weight 0.
    """
    _, weights_type, data_type = inner.next.type_signature.parameter
    sums_type = inner.next.type_signature.result.result.member

    @tff.tensorflow.computation(sums_type, data_type.member, weights_type.member)
    def divide(sums, pack, received):
        num_clients = pack.reduce(0, lambda count, _: count + 1)
        message = (
            "each pack must hold exactly one client (num_packs=len(cohort)), but one "
            "holds"
        )
        assertion = tf.debugging.Assert(
            tf.equal(num_clients, 1), [message, num_clients]
        )
        with tf.control_dependencies([assertion]):
            size = tf.identity(sums.update_weight["monomials"][0])
        update = tf.nest.map_structure(
            lambda total: tf.math.divide_no_nan(total, tf.cast(size, total.dtype)),
            sums.update[0],
        )
        if client_step is not None:
            update = tf.nest.map_structure(
                lambda part: tf.where(size > 0, part, tf.zeros_like(part)),
                client_step(aggregated_weights(received), update),
            )
        return tff.learning.templates.ClientResult(update, size)

    @tff.federated_computation(
        inner.next.type_signature.parameter[0], weights_type, data_type
    )
    def next_fn(state, received, packs):
        output = inner.next(state, received, packs)
        results = tff.federated_map(divide, (output.result, packs, received))
        return tff.templates.MeasuredProcessOutput(
            output.state, results, output.measurements
        )

    return tff.learning.templates.ClientWorkProcess(inner.initialize, next_fn)
