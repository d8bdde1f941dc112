"""Federated averaging with a prioritized, multi-criteria mean (DA; PMC).

One round:

    broadcast w -> each client trains w_k and measures its criteria r[k, i]
    -> sums over clients of r_S[k] * (w - w_k) and of r_S[k], for S in the basis
    -> the score in force combines the sums -> server optimizer -> new w

The server sees sums only, and any score over the basis follows from them. OWA and
Choquet compare a client's *normalized* criteria, which it does not know before the
cohort's totals. In two stages it keeps its update until they are broadcast:

    totals T_i -> broadcast T -> each client normalizes and weights its update -> sums
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import with_score_in_force
from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.processes import arguments
from tff_pmc.processes.round_parts import (
    ModelFn,
    RoundParts,
    build_finalizer,
    build_round_parts,
)
from tff_pmc.scores import Basis, Score


def build_prioritized_fed_avg(
    model_fn: ModelFn,
    *,
    priority: Optional[Sequence[str]] = None,
    score: Optional[Score] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    basis: Optional[Basis] = None,
    **training_options: Any,
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
             aggregator=<coefficients=float32[B], model_sums=..., scalar_sums=...>,
             finalizer=the server optimizer's state>
        M = <distributor=<>,
             client_work=<train=<clients=int32, excluded=int32, examples=int32,
                                 loss_sum=float32, ...>>,
             aggregator=<totals=float32[m], monomials=float32[B],
                         score=float32, model_sums=..., scalar_sums=...>,
             finalizer=<update_rejected=int32>>

    After `loss_sum` come the model's own metrics by name (those of its Keras model,
    say), with the values that TFF's `build_weighted_fed_avg` reports. `totals` are the
    sums of the criteria (normalized ones with declared ranges), `score` is the sum of
    the scores. Monomials are float32: a client whose criteria multiply to more than
    1e30, or to less than 1e-30 without one of them being 0, is left out like one that
    is not finite or has no examples.

    Clients' data has one of two forms. *Packed*, D is one whole client,
    `<x=..., y=..., client=int32, place=int32>`, and a pack is a sequence of them:
    one in a deployment, many in a simulation (`tff_pmc.pack`). As in
    TFF's tutorials, D is a batch, and each sequence is the dataset of one
    client. Everything but the loop over examples is the same.

    Args:
        model_fn: a functional model, or a function that makes a
            `tff.learning.models.VariableModel`, as TFF's algorithms take it.
        priority: the codes of criteria, most important first: the prioritized score
            (DA eq. 4, PMC eq. 6). `("DS",)` is federated averaging. Default:
            the declared criteria, in their order.
        score: any other score over the columns of `criteria`, in the place of
            `priority`. OWA and Choquet need the normalization `range` here, and
            `build_two_stage_fed_avg` with the others (`docs/operators.md`).
        criteria: the m criteria the clients measure, codes or `Criterion`s.
        basis: the sums to make; by default those the score needs. With
            `Basis.all_subsets(m)` every ordering follows (`with_score`), and with
            its `minima` every OWA and Choquet integral.
        **training_options: the attributes of `TrainingOptions`: `client_optimizer_fn`,
            which is needed, `client_learning_rate_fn`, `server_optimizer_fn`, `packed`,
            `local_epochs`, `batch_size`, `seed`, `client_attributes`, `report_cohort`,
            `keep_own_model`, `memory`, `metrics_aggregator`, `sums`, a `SumOptions`
            (normalization, clipping, secure sums, privacy).

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
    named = priority, score, criteria, basis
    return _build(model_fn, *named, training_options, two_stage=False)


def compose(
    parts: RoundParts,
    score: Score,
    distributor: Optional[tff.learning.templates.DistributionProcess] = None,
) -> tff.learning.templates.LearningProcess:
    """The learning process of a fixed score, of either form of the sums.

    The `distributor` sends what the clients receive; by default the model.
    """
    weights_type = parts.weights_type
    return tff.learning.templates.compose_learning_process(
        parts.initial_weights,
        distributor or tff.learning.templates.build_broadcast_process(weights_type),
        parts.client_work,
        with_score_in_force(parts.sums, parts.plan.basis, score),
        build_finalizer(parts.server_optimizer, weights_type),
    )


def with_score(state: Any, basis: Basis, score: Score) -> Any:
    """The state of a process with another score in force, whatever `next` takes it on.

    Without it the score is that of the process whose `next` is called, and not of the
    process that made the state.

    Args:
        state: a state of a process built with this basis.
        basis: the basis of the process.
        score: a score the basis covers.

    Returns:
        A state that differs in the score's coefficients alone.

    Raises:
        ValueError: the basis does not cover the score.
    """
    aggregator = dict(state.aggregator)
    aggregator["coefficients"] = basis.coefficients(score)
    return state._replace(aggregator=type(state.aggregator)(aggregator))


def build_two_stage_fed_avg(
    model_fn: tff.learning.models.FunctionalModel,
    *,
    priority: Optional[Sequence[str]] = None,
    score: Optional[Score] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    basis: Optional[Basis] = None,
    **training_options: Any,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of any score under any normalization.

    For simulation: its `next` runs on one machine, and compiles to none of TFF's
    deployment forms (MapReduceForm, DistributeAggregateForm, the mergeable form),
    because a broadcast depends on an aggregate. A pack keeps the updates of all its
    clients: memory grows with the cohort, by a model for each client. With declared
    ranges, or for the weighted average, `build_prioritized_fed_avg` does the same in
    one stage and compiles to all of them.

    The args, types and errors are those of `build_prioritized_fed_avg`, but that the
    model has to be functional, and the clients packed. `totals` in the metrics are of
    the criteria as they came in, `monomials` of normalized ones. The totals are summed
    in the clear: `sums` take neither `privacy` nor a `scalar_sum_factory`.

    Example:
        >>> process = build_two_stage_fed_avg(
        ...     models.mnist_cnn(),
        ...     score=scores.owa("most"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    named = priority, score, criteria, basis
    return _build(model_fn, *named, training_options, two_stage=True)


def _build(model_fn, priority, score, criteria, basis, training_options, two_stage):
    found = criteria_lib.resolve(criteria)
    score = arguments.resolve_score(priority, score, [c.code for c in found])
    basis = basis or Basis.of(len(found), [score])
    basis.coefficients(score)  # Refused here, before anything is traced.
    options = TrainingOptions(**training_options)
    parts = build_round_parts(model_fn, found, basis, options, two_stage=two_stage)
    return compose(parts, score)
