"""The parts of a round that every process shares: clients, criteria and sums."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Callable, Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import (
    GaussianSums,
    build_basis_sums,
    build_two_stage_sums,
)
from tff_pmc.aggregation.basis_sums import SumFactory
from tff_pmc.clients.contribution import Rule
from tff_pmc.clients.datasets import build_dataset_client_work
from tff_pmc.clients.packed import build_packed_client_work
from tff_pmc.processes import options
from tff_pmc.scores import Basis, Normalization

ModelFn = Union[
    tff.learning.models.FunctionalModel,
    Callable[[], tff.learning.models.VariableModel],
]


@dataclasses.dataclass(frozen=True)
class Training:
    """What is composed into a process.

    Attributes:
        initial_weights: `( -> W)`, W the type of the model's `ModelWeights`.
        client_work: local training and the criteria; see
            `clients.client_work.build_client_work`.
        rule: criteria, basis and normalization.
        sums: of `aggregation.build_basis_sums` or `build_two_stage_sums`.
        server_optimizer: of the server.
    """

    initial_weights: tff.Computation
    client_work: tff.learning.templates.ClientWorkProcess
    rule: Rule
    sums: tff.templates.AggregationProcess
    server_optimizer: tff.learning.optimizers.Optimizer

    @property
    def weights_type(self) -> tff.Type:
        """W."""
        return self.initial_weights.type_signature.result


def build_training(
    model_fn: ModelFn,
    criteria: Sequence[criteria_lib.Criterion],
    basis: Basis,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    server_optimizer_fn: Optional[tff.learning.optimizers.Optimizer] = None,
    packed: Optional[bool] = None,
    local_epochs: int = 1,
    batch_size: int = 0,
    seed: int = 0,
    normalization: str = "sum",
    criteria_ranges: Optional[Mapping[str, tuple[float, float]]] = None,
    client_attributes: Sequence[str] = (),
    clip_norm: Optional[float] = None,
    model_sum_factory: Optional[SumFactory] = None,
    scalar_sum_factory: Optional[SumFactory] = None,
    privacy: Optional[GaussianSums] = None,
    report_num_clients: Optional[int] = None,
    num_weighted_classes: int = 0,
    keep_own_model: Sequence[int] = (),
    two_stage: bool = False,
) -> Training:
    """Checks the options and builds the parts.

    Args and errors are those of `build_prioritized_fed_avg`, with the criteria
    resolved and the basis known; `two_stage` makes the sums as of
    `build_two_stage_fed_avg`, and `num_weighted_classes` and `keep_own_model` are
    those of `build_packed_client_work`.
    """
    if basis.num_criteria != len(criteria):
        raise ValueError(
            f"the basis is over {basis.num_criteria} criteria, but there are "
            f"{len(criteria)}"
        )
    is_functional = isinstance(model_fn, tff.learning.models.FunctionalModel)
    packed = is_functional if packed is None else packed
    options.check_form(is_functional, packed, batch_size, seed, report_num_clients)
    if not packed and criteria_lib.example_attributes(criteria):
        names = ", ".join(criteria_lib.example_attributes(criteria))
        raise ValueError(
            f"the examples' attributes ({names}) that a criterion needs travel with "
            "packed clients only"
        )
    if not packed and (num_weighted_classes or len(keep_own_model)):
        raise ValueError(
            "class weights and keep_own_model are of packed clients only: leave out "
            "packed=False"
        )
    options.check_range(local_epochs, batch_size, clip_norm)
    server_optimizer_fn = server_optimizer_fn or tff.learning.optimizers.build_sgdm(1.0)
    options.check_optimizer("client_optimizer_fn", client_optimizer_fn)
    options.check_optimizer("server_optimizer_fn", server_optimizer_fn)
    factories = (model_sum_factory, scalar_sum_factory)
    options.check_sums(privacy, factories, report_num_clients, normalization)
    if two_stage:
        options.check_two_stage(
            packed, privacy=privacy, scalar_sum_factory=scalar_sum_factory
        )
    # What is measured beside the sums is not protected as they are.
    only_counts = privacy is not None or scalar_sum_factory is not None
    codes = [criterion.code for criterion in criteria]
    rule = Rule(
        tuple(criteria),
        basis,
        Normalization.declared(normalization, codes, criteria_ranges),
        clip_norm,
    )
    if not two_stage:
        basis.check_computable(rule.normalization)
    if privacy is not None:
        factories = privacy.factories(basis, rule.normalization, clip_norm)

    weights, input_spec = options.initial_weights(model_fn)
    options.probe_criteria(criteria, weights, input_spec, client_attributes)
    if packed:
        client_work = build_packed_client_work(
            model_fn,
            _first_stage(rule) if two_stage else rule,
            client_optimizer_fn,
            local_epochs=local_epochs,
            batch_size=batch_size,
            seed=seed,
            client_attributes=client_attributes,
            report_num_clients=report_num_clients,
            only_counts=only_counts,
            num_weighted_classes=num_weighted_classes,
            keep_own_model=keep_own_model,
            keep_updates=two_stage,
        )
    else:
        client_work = build_dataset_client_work(
            options.as_model_fn(model_fn),
            rule,
            client_optimizer_fn,
            local_epochs=local_epochs,
            client_attributes=client_attributes,
            only_counts=only_counts,
        )

    @tff.tensorflow.computation
    def initial_weights():
        return tf.nest.map_structure(tf.constant, weights)

    weights_type = initial_weights.type_signature.result
    sums_options = dict(
        normalization=rule.normalization, model_sum_factory=factories[0]
    )
    if two_stage:
        sums = build_two_stage_sums(weights_type, basis, **sums_options)
    else:
        sums = build_basis_sums(
            weights_type, basis, scalar_sum_factory=factories[1], **sums_options
        )
    return Training(initial_weights, client_work, rule, sums, server_optimizer_fn)


def _first_stage(rule: Rule) -> Rule:
    """The rule by which clients measure their criteria and weigh nothing yet."""
    return dataclasses.replace(rule, basis=Basis.singles(len(rule.criteria)))
