"""The parts of a round that every process shares: clients, sums, the server's step."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any, Callable, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import SumPlan, build_basis_sums, build_two_stage_sums
from tff_pmc.aggregation.contributions import update_type
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
    """The parts that are composed into a process."""

    initial_weights: tff.Computation  # ( -> W), W the model's `ModelWeights`.
    client_work: tff.learning.templates.ClientWorkProcess
    plan: SumPlan
    sums: tff.templates.AggregationProcess  # As the plan has them.
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
    weights, input_spec = arguments.initial_weights(model_fn)
    arguments.check_client_optimizer(options, weights.trainable)
    packed = options.is_packed(model_fn)
    if not packed:
        _check_datasets_suffice(criteria, num_weighted_classes)
    plan = options.sums.plan(basis, [criterion.code for criterion in criteria])
    if two_stage:
        if not packed:
            raise ValueError(
                "the two-stage form keeps the updates of packed clients: it needs a "
                "tff.learning.models.FunctionalModel, and no packed=False"
            )
        options.sums.check_two_stage()
    else:
        basis.check_computable(plan.normalization)
    arguments.probe_criteria(
        criteria, model_fn, weights, input_spec, options.client_attributes
    )
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
    sums = build_sums(update_type(initial_weights.type_signature.result), plan)
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


def apply_update(
    optimizer: tff.learning.optimizers.Optimizer, state: Any, weights: Any, update: Any
) -> tuple[Any, Any, tf.Tensor]:
    """One server step, in TensorFlow: `w - server_rate * update` (PMC eq. 2) for SGD.

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
    norm = tf.linalg.global_norm(tf.nest.flatten(update))
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
