"""Federated averaging with a prioritized, multi-criteria mean (DA; PMC).

One round:

    broadcast w -> each client trains w_k and measures its criteria r[k, i]
    -> sums over clients of r_S[k] * (w - w_k) and of r_S[k], for S in the basis
    -> the score in force combines the sums -> server optimizer -> new w

The server sees sums only, and any score over the basis follows from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import build_basis_aggregation
from tff_pmc.clients.training import build_packed_client_work
from tff_pmc.processes.finalizer import build_finalizer
from tff_pmc.scores import Basis, PolynomialScore, prioritized


def build_prioritized_fed_avg(
    model: tff.learning.models.FunctionalModel,
    *,
    priority: Sequence[str] | None = None,
    score: PolynomialScore | None = None,
    criteria: Sequence[str | criteria_lib.Criterion] = ("DS", "LD", "MD"),
    basis: Basis | None = None,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    server_optimizer_fn: tff.learning.optimizers.Optimizer | None = None,
    local_epochs: int = 1,
    batch_size: int = 0,
    seed: int = 0,
    report_num_clients: int | None = None,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of prioritized multi-criteria averaging.

    With `W` the type of the model's weights, S the state
    `tff.learning.templates.LearningAlgorithmState`, and M the measurements of
    its four parts, the process has

        initialize: ( -> S@SERVER)
        next: (<S@SERVER, {<x=..., y=..., client=int32>*}@CLIENTS>
               -> <state=S@SERVER, metrics=M@SERVER>)
        get_model_weights: (S -> W)

    Each element is one whole client and each placement holds a sequence of
    them: one in a deployment, many in a simulation (`clients.packing.pack`).

    Args:
        model: a functional model; its `input_spec` types the clients' data.
        priority: codes of criteria, most important first: the prioritized score
            (DA eq. 4, PMC eq. 6). `("DS",)` is federated averaging. Default:
            the declared criteria, in their order.
        score: any other polynomial score over the columns of `criteria`, in the
            place of `priority`.
        criteria: the m criteria the clients measure, codes or `Criterion`s.
        basis: the sums to make; by default those the score needs. With
            `Basis.all_subsets(m)` every ordering follows (`with_score`).
        client_optimizer_fn: the clients' optimizer, for example
            `tff.learning.optimizers.build_sgdm(0.1)`.
        server_optimizer_fn: the server's; by default SGD with rate 1, which
            takes the weighted mean as it is (PMC eq. 2 has the rate).
        local_epochs: passes over a client's examples, E.
        batch_size: B; 0 trains on all examples of a client in one batch.
        seed: of the order of the batches.
        report_num_clients: simulation only: the federation's size; the metrics
            then show each client's raw criteria. None (the default) keeps
            everything but sums from the server.

    Returns:
        A `tff.learning.templates.LearningProcess`.

    Raises:
        ValueError: a criterion is unknown or named twice, the basis does not
            cover the score, both `priority` and `score` are given, or a number
            is out of range.
        TypeError: an optimizer is not a `tff.learning.optimizers.Optimizer`.

    Example:
        >>> process = build_prioritized_fed_avg(
        ...     models.mnist_cnn(),
        ...     priority=("LD", "DS", "MD"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    found = criteria_lib.resolve(criteria)
    score = _score(priority, score, [criterion.code for criterion in found])
    basis = basis or Basis.of(len(found), [score])
    if basis.num_criteria != len(found):
        raise ValueError(
            f"the basis is over {basis.num_criteria} criteria, but there are "
            f"{len(found)}"
        )
    if local_epochs < 1:
        raise ValueError(f"local_epochs must be at least 1, got {local_epochs}")
    if batch_size < 0:
        raise ValueError(f"batch_size must be 0 (all) or more, got {batch_size}")
    server_optimizer_fn = server_optimizer_fn or tff.learning.optimizers.build_sgdm(1.0)
    for name, optimizer in (
        ("client_optimizer_fn", client_optimizer_fn),
        ("server_optimizer_fn", server_optimizer_fn),
    ):
        if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
            raise TypeError(
                f"{name} must be a tff.learning.optimizers.Optimizer, "
                f"got {type(optimizer).__name__}"
            )

    @tff.tensorflow.computation
    def initial_weights():
        trainable, non_trainable = model.initial_weights
        return tff.learning.models.ModelWeights(
            tuple(tf.constant(w) for w in trainable),
            tuple(tf.constant(w) for w in non_trainable),
        )

    weights_type = initial_weights.type_signature.result
    return tff.learning.templates.compose_learning_process(
        initial_weights,
        tff.learning.templates.build_broadcast_process(weights_type),
        build_packed_client_work(
            model,
            found,
            basis,
            client_optimizer_fn,
            local_epochs=local_epochs,
            batch_size=batch_size,
            seed=seed,
            report_num_clients=report_num_clients,
        ),
        build_basis_aggregation(weights_type, basis, score),
        build_finalizer(server_optimizer_fn, weights_type),
    )


def with_score(state: Any, basis: Basis, score: PolynomialScore) -> Any:
    """The state of a process with another score in force.

    Args:
        state: a state of a process built with this basis.
        basis: the basis of the process.
        score: a score the basis covers.

    Returns:
        A state that differs in the candidate alone.

    Raises:
        ValueError: the basis does not cover the score.
    """
    aggregator = dict(state.aggregator)
    aggregator["candidate"] = basis.vector(score)
    return state._replace(aggregator=type(state.aggregator)(aggregator))


def _score(
    priority: Sequence[str] | None,
    score: PolynomialScore | None,
    codes: list[str],
) -> PolynomialScore:
    if score is not None:
        if priority is not None:
            raise ValueError("give either priority or score, not both")
        return score
    order = codes if priority is None else priority
    order = [criteria_lib.ALIASES.get(code, code) for code in order]
    return prioritized(order, codes)
