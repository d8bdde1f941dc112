"""The parts of a round that every process shares: clients, sums, the server's step."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import PrioritizedMeanFactory
from tff_pmc.aggregation.baselines import ClientStep
from tff_pmc.aggregation.building import check_kind
from tff_pmc.aggregation.contributions import averaged, update_type
from tff_pmc.clients import model_metrics
from tff_pmc.clients.dataset_training import build_dataset_client_work
from tff_pmc.clients.packed_training import build_packed_client_work
from tff_pmc.clients.training_options import Training
from tff_pmc.models import PackedModel
from tff_pmc.models.functional import cast_to_common_float
from tff_pmc.processes import arguments

Model = Union[
    tff.learning.models.FunctionalModel, Callable[[], tff.learning.models.VariableModel]
]


@dataclasses.dataclass(frozen=True)
class RoundParts:
    """The parts that are composed into a process."""

    initial_weights: tff.Computation  # ( -> W), W the model's `ModelWeights`.
    client_work: tff.learning.templates.ClientWorkProcess
    mean: PrioritizedMeanFactory  # It aggregates what the client work sends.
    server_optimizer: tff.learning.optimizers.Optimizer

    @property
    def weights_type(self) -> tff.Type:
        """The type of the model's `ModelWeights`, W."""
        return self.initial_weights.type_signature.result

    @property
    def update_type(self) -> tff.Type:
        """The type of a client's update, U."""
        return update_type(self.weights_type)


def build_round_parts(
    model: Model,
    criteria: Sequence[criteria_lib.Criterion],
    mean: PrioritizedMeanFactory,
    training: Training,
    *,
    client_optimizer: tff.learning.optimizers.Optimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer],
    num_weighted_classes: int = 0,
) -> RoundParts:
    """Checks the arguments of a builder against the model and builds the parts.

    The errors are those of `build_prioritized_fed_avg`.
    """
    if server_optimizer is None:
        server_optimizer = tff.learning.optimizers.build_sgdm(1.0)
    optimizers = {
        "client_optimizer_fn": client_optimizer,
        "server_optimizer_fn": server_optimizer,
    }
    for name, optimizer in optimizers.items():
        kind = tff.learning.optimizers.Optimizer
        check_kind(name, optimizer, kind, "a tff.learning.optimizers.Optimizer")
    training.check_sums(mean.options.hiding)
    weights, input_spec = arguments.initial_weights(model)
    for name, optimizer in optimizers.items():
        arguments.check_step(name, optimizer, weights.trainable)
    arguments.check_client_optimizer(client_optimizer, training, weights.trainable)
    packed = training.is_packed(model)
    if not packed:
        _check_datasets_suffice(criteria, mean, num_weighted_classes)
    arguments.probe_criteria(
        criteria, model, weights, input_spec, training.client_attributes
    )
    metrics = model_metrics.build_aggregation(
        model, training.metrics_aggregator, hidden=mean.plan.only_counts
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

    return RoundParts(initial_weights, client_work, mean, server_optimizer)


def _check_datasets_suffice(
    criteria: Sequence[criteria_lib.Criterion],
    mean: PrioritizedMeanFactory,
    num_weighted_classes: int,
) -> None:
    """Refuses what clients in the form of datasets of batches cannot follow."""
    if mean.plan.two_stage:
        raise ValueError(
            "two stages keep the updates of packed clients: they need a "
            "tff.learning.models.FunctionalModel, and no packed=False; with "
            "normalization='range' one stage is enough"
        )
    if criteria_lib.example_attributes(criteria):
        names = ", ".join(criteria_lib.example_attributes(criteria))
        raise ValueError(
            f"the examples' attributes ({names}) that a criterion needs travel with "
            "packed clients only"
        )
    if num_weighted_classes:
        raise ValueError("class weights are for packed clients only: leave packed out")


def one_client_each(
    inner: tff.learning.templates.ClientWorkProcess, client_step: Optional[ClientStep]
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work whose results are a client's update and its size.

    It is what any aggregation factory of TFF's takes, which sees each client's update.

    `inner` sends the sum over a pack's clients of `n_k d_k`, and of `n_k`. Of one
    client they give `d_k` back. One that is left out sends an update of 0 all the same.
    """
    _, weights_type, data_type = inner.next.type_signature.parameter
    sums_type = inner.next.type_signature.result.result.member

    @tff.tensorflow.computation(sums_type, data_type.member, weights_type.member)
    def divide(sums, pack, received):
        clients = pack.reduce(0, lambda count, _: count + 1)
        message = (
            "each pack must hold exactly one client (make as many packs as the cohort "
            "has clients), but one holds"
        )
        one = tf.debugging.Assert(tf.equal(clients, 1), [message, clients])
        with tf.control_dependencies([one]):
            size = tf.identity(sums.update_weight["monomials"][0])
        update = tf.nest.map_structure(
            lambda total: tf.math.divide_no_nan(total, tf.cast(size, total.dtype)),
            sums.update[0],
        )
        if client_step is not None:
            update = tf.nest.map_structure(
                lambda part: tf.where(size > 0, part, tf.zeros_like(part)),
                client_step(averaged(received), update),
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


def apply_update(
    optimizer: tff.learning.optimizers.Optimizer, state: Any, weights: Any, update: Any
) -> tuple[Any, Any, tf.Tensor]:
    """Takes one server step: `w - server_rate * update` (PMC eq. 2) for SGD.

    An update is received minus trained weights, as everywhere in TFF: a
    gradient to the optimizer, which steps the trainable variables. Non-trainable
    ones (batch-norm statistics) are averages and not directions: they become
    the clients' mean with the same weights, whatever the optimizer. Those that
    are no floats stay (see `averaged`). An update that is all zero (no client was
    included, or every score was 0) or not finite, or whose model is not, leaves
    model and optimizer as they are: the last result is then 1.
    """
    next_state, trainable = optimizer.next(state, weights.trainable, update.trainable)
    means = iter(tf.nest.flatten(update.non_trainable))
    non_trainable = tf.nest.map_structure(
        lambda w: w - next(means) if w.dtype.is_floating else w, weights.non_trainable
    )
    norm = tf.linalg.global_norm(cast_to_common_float(tf.nest.flatten(update)))
    finite = [
        tf.reduce_all(tf.math.is_finite(part))
        for part in (norm, *tf.nest.flatten((trainable, non_trainable)))
        if part.dtype.is_floating
    ]
    rejected = tf.logical_not(tf.reduce_all(finite)) | tf.equal(norm, 0.0)

    def unless_rejected(old, new):
        return tf.nest.map_structure(lambda o, n: tf.where(rejected, o, n), old, new)

    stepped = tff.learning.models.ModelWeights(
        unless_rejected(weights.trainable, trainable),
        unless_rejected(weights.non_trainable, non_trainable),
    )
    return unless_rejected(state, next_state), stepped, tf.cast(rejected, tf.int32)


def build_optimizer_initializer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.Computation:
    """Builds `( -> the server optimizer's initial state)` for a model's weights."""

    @tff.tensorflow.computation
    def initial_state():
        return optimizer.initialize(
            tff.types.type_to_tf_tensor_specs(weights_type.trainable)
        )

    return initial_state


def build_finalizer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.learning.templates.FinalizerProcess:
    """Builds the finalizer around `apply_update`, for a whole `ModelWeights`."""
    initial_state = build_optimizer_initializer(optimizer, weights_type)
    state_type = initial_state.type_signature.result

    @tff.tensorflow.computation(state_type, weights_type, update_type(weights_type))
    def step(state, weights, update):
        state, weights, rejected = apply_update(optimizer, state, weights, update)
        measured = collections.OrderedDict(update_rejected=rejected)
        return tff.templates.MeasuredProcessOutput(state, weights, measured)

    @tff.tensorflow.computation(state_type)
    def get_hparams(state):
        return optimizer.get_hparams(state)

    @tff.tensorflow.computation(state_type, get_hparams.type_signature.result)
    def set_hparams(state, hparams):
        return optimizer.set_hparams(state, hparams)

    @tff.federated_computation
    def initialize():
        return tff.federated_eval(initial_state, tff.SERVER)

    @tff.federated_computation(
        *(
            tff.FederatedType(part, tff.SERVER)
            for part in (state_type, weights_type, update_type(weights_type))
        )
    )
    def next_fn(state, weights, update):
        output = tff.federated_map(step, (state, weights, update))
        return tff.templates.MeasuredProcessOutput(
            output.state, output.result, output.measurements
        )

    return tff.learning.templates.FinalizerProcess(
        initialize, next_fn, get_hparams_fn=get_hparams, set_hparams_fn=set_hparams
    )
