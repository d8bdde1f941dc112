"""Federated averaging with a prioritized, multi-criteria mean (DA; PMC).

One round:

    broadcast w -> each client trains w_k and measures its criteria r[k, i]
    -> sums over clients of r_S[k] * (w - w_k) and of r_S[k], for S in the basis
    -> the score in force combines the sums -> server optimizer -> new w

The server sees sums only, and any score over the basis follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import GaussianSums, with_candidate
from tff_pmc.aggregation.basis_sums import SumFactory
from tff_pmc.processes import options
from tff_pmc.processes.finalizer import build_finalizer
from tff_pmc.processes.training import ModelFn, Training, build_training
from tff_pmc.scores import Basis, Score


def build_prioritized_fed_avg(
    model_fn: ModelFn,
    *,
    priority: Optional[Sequence[str]] = None,
    score: Optional[Score] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    basis: Optional[Basis] = None,
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
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of prioritized multi-criteria averaging.

    With `W` the type of the model's `ModelWeights`, m criteria and B sums, the
    process has

        initialize: ( -> S@SERVER)
        next: (<S@SERVER, {D*}@CLIENTS> -> <state=S@SERVER, metrics=M@SERVER>)
        get_model_weights: (S -> W)

        S = tff.learning.templates.LearningAlgorithmState:
            <global_model_weights=W, distributor=<>,
             client_work=<seed=int32, round=int32>,
             aggregator=<candidate=float32[B], model_sums=..., scalar_sums=...>,
             finalizer=the server optimizer's state>
        M = <distributor=<>,
             client_work=<train=<clients=int32, excluded=int32, examples=int32,
                                 loss_sum=float32>>,
             aggregator=<totals=float32[m], monomials=float32[B],
                         score=float32, model_sums=..., scalar_sums=...>,
             finalizer=<update_rejected=int32>>

    `totals` are the sums of the criteria (normalized ones with declared ranges),
    `score` is the sum of the scores. Monomials are float32: a client whose criteria
    multiply to more than 3e38 is left out like one that is not finite.

    Clients' data has one of two forms. *Packed*, D is one whole client,
    `<x=..., y=..., client=int32>`, and each placement holds a sequence of them:
    one in a deployment, many in a simulation (`clients.packing.pack`). As in
    TFF's tutorials, D is a batch, and each placement is the dataset of one
    client. Everything but the loop over examples is the same.

    Args:
        model_fn: a functional model, or a function that makes a
            `tff.learning.models.VariableModel`, as TFF's algorithms take it.
        priority: codes of criteria, most important first: the prioritized score
            (DA eq. 4, PMC eq. 6). `("DS",)` is federated averaging. Default:
            the declared criteria, in their order.
        score: any other score over the columns of `criteria`, in the place of
            `priority`. OWA and Choquet need the normalization `range` here, and
            `build_two_stage_fed_avg` with the others (`docs/operators.md`).
        criteria: the m criteria the clients measure, codes or `Criterion`s.
        basis: the sums to make; by default those the score needs. With
            `Basis.all_subsets(m)` every ordering follows (`with_score`), and with
            its `minima` every OWA and Choquet integral.
        client_optimizer_fn: the clients' optimizer, for example
            `tff.learning.optimizers.build_sgdm(0.1)`.
        server_optimizer_fn: the server's; by default SGD with rate 1, which
            takes the weighted mean as it is (PMC eq. 2 has the rate).
        packed: the form of the data; by default packed for a functional model
            and datasets of batches for a `model_fn`.
        local_epochs: passes over a client's examples, E (beside any repetition
            a dataset makes by itself).
        batch_size: packed only: B; 0 trains on all examples in one batch.
        seed: packed only: of the order of the batches.
        normalization: of the criteria: `sum` (the papers'), `max` or `range`;
            see `scores.Normalization`.
        criteria_ranges: (low, high) by code, for the normalization `range`.
        client_attributes: names of attributes that travel with each client;
            `criteria.attribute(name)` makes one a criterion.
        clip_norm: the L2 norm to which each client clips its update, before it
            is weighted; None does not clip.
        model_sum_factory: sums the weighted updates over placements, for
            example `tff.aggregators.SecureSumFactory`; plain by default.
        scalar_sum_factory: sums criteria and monomials; plain by default. With
            one given, the metrics count the clients and measure nothing else,
            because measurements are summed in the clear.
        privacy: noise for differential privacy; needs the normalization `range`
            and `clip_norm`.
        report_num_clients: packed simulation only: the federation's size; the
            metrics then show each client's raw criteria. None (the default)
            keeps everything but sums from the server.

    Returns:
        A `tff.learning.templates.LearningProcess`.

    Raises:
        ValueError: a criterion is unknown, named twice, negative or no scalar,
            the basis does not cover the score, the score needs the totals first,
            options exclude each other, or a number is out of range; the message
            names it.
        TypeError: an optimizer is not a `tff.learning.optimizers.Optimizer`.

    Example:
        >>> process = build_prioritized_fed_avg(
        ...     models.mnist_cnn(),
        ...     priority=("LD", "DS", "MD"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    found = criteria_lib.resolve(criteria)
    codes = [criterion.code for criterion in found]
    score = options.resolve_score(priority, score, codes)
    basis = basis or Basis.of(len(found), [score])
    basis.vector(score)  # Refused here, before anything is traced.
    training = build_training(
        model_fn,
        found,
        basis,
        client_optimizer_fn=client_optimizer_fn,
        server_optimizer_fn=server_optimizer_fn,
        packed=packed,
        local_epochs=local_epochs,
        batch_size=batch_size,
        seed=seed,
        normalization=normalization,
        criteria_ranges=criteria_ranges,
        client_attributes=client_attributes,
        clip_norm=clip_norm,
        model_sum_factory=model_sum_factory,
        scalar_sum_factory=scalar_sum_factory,
        privacy=privacy,
        report_num_clients=report_num_clients,
    )
    return compose(training, score)


def compose(
    training: Training,
    score: Score,
    distributor: Optional[tff.learning.templates.DistributionProcess] = None,
) -> tff.learning.templates.LearningProcess:
    """The learning process of a fixed score, of either form of the sums.

    Args:
        training: clients, criteria and the rule of the sums.
        score: which the training's basis covers.
        distributor: sends what the clients receive; by default the model.
    """
    weights_type = training.weights_type
    return tff.learning.templates.compose_learning_process(
        training.initial_weights,
        distributor or tff.learning.templates.build_broadcast_process(weights_type),
        training.client_work,
        with_candidate(training.sums, training.rule.basis, score),
        build_finalizer(training.server_optimizer, weights_type),
    )


def with_score(state: Any, basis: Basis, score: Score) -> Any:
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
