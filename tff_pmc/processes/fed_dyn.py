"""FedDyn: a regularizer of the clients' losses that changes in each round."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Optional, Union

import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc.aggregation import PrioritizedMeanFactory, SumOptions
from tff_pmc.aggregation.dynamic_regularizer import with_dynamic_regularizer
from tff_pmc.aggregation.sum_options import PLAIN_SUMS
from tff_pmc.clients.control_variates import LocalGradients
from tff_pmc.clients.training_options import Training
from tff_pmc.processes.round_components import Model, build_round_components
from tff_pmc.processes.server_step import build_finalizer


def build_fed_dyn(
    model: Model,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    num_clients: int,
    training: Training,
    alpha: float = 0.01,
    num_trainable: Optional[int] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS^0",),
    sums: SumOptions = PLAIN_SUMS,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of FedDyn (Acar et al. 2021, Algorithm 1).

    It is that of `build_prioritized_fed_avg` with equal weights, and

    -   each client k trains on its loss `- <g_k, w> + alpha/2 ||w - w_received||^2`,
        and keeps `g_k <- g_k - alpha (w_k - w_received)`: see `LocalGradients`;
    -   the server adds `h / alpha` to the mean update: see `with_dynamic_regularizer`.

    The state of the client work contains the g_k as `memory`, and the state of the
    aggregator h. The server subtracts the result from its model, without a learning
    rate.

    Args:
        model: a functional model.
        client_optimizer_fn: the clients' optimizer. Its steps approximate the minimum
            of the client's loss, which the paper assumes.
        num_clients: the number of clients in the federation.
        training: the clients' training, without `prox_mu` and `memory`.
        alpha: the weight of the regularizer, above 0.
        num_trainable: m, the number of clients that have training examples; by default
            all.
        criteria: the criteria that clients measure; they must include DS^0, which is 1
            for every client.
        sums: normalization and `max_update_norm` of the sums.

    Raises:
        ValueError: as `build_prioritized_fed_avg`; alpha or a number of clients is out
            of range, or the training has a `prox_mu`, a memory or adversaries.
    """
    if training.prox_mu or training.memory is not None:
        raise ValueError("FedDyn sets prox_mu and memory itself: remove them")
    if sums.clip_norm:
        raise ValueError(
            "clip_norm cannot be combined with FedDyn, which computes h from whole "
            "updates: remove it"
        )
    memory = LocalGradients(num_clients, alpha)
    num_trainable = num_clients if num_trainable is None else num_trainable
    if not 1 <= num_trainable <= num_clients:
        raise ValueError(
            f"num_trainable must be from 1 to num_clients={num_clients}, got "
            f"{num_trainable}"
        )
    training = dataclasses.replace(training, prox_mu=alpha, memory=memory)
    measured = criteria_lib.resolve(criteria)
    codes = [criterion.code for criterion in measured]
    mean = PrioritizedMeanFactory(codes, scores.single("DS^0", codes), sums=sums)
    components = build_round_components(
        model,
        measured,
        mean,
        training,
        client_optimizer=client_optimizer_fn,
        server_optimizer=None,
    )
    weights_type = components.weights_type
    aggregation = mean.create_for_packs(components.update_type)
    return tff.learning.templates.compose_learning_process(
        components.initial_weights,
        tff.learning.templates.build_broadcast_process(weights_type),
        components.client_work,
        with_dynamic_regularizer(aggregation, alpha, num_trainable),
        build_finalizer(components.server_optimizer, weights_type),
    )
