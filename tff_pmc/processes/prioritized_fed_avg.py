"""Federated averaging with a prioritized, multi-criteria mean (DA; PMC)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional, Union

import tensorflow_federated as tff
from typing_extensions import Unpack

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import PrioritizedMeanFactory, SumOptions
from tff_pmc.aggregation.baseline_factories import WEIGHT_TYPE
from tff_pmc.aggregation.baselines import ClientStep
from tff_pmc.aggregation.sum_options import PLAIN_SUMS
from tff_pmc.clients.training_options import (
    Training,
    TrainingOptions,
    takes_training,
)
from tff_pmc.processes import argument_checks
from tff_pmc.processes.round_components import (
    Model,
    build_round_components,
    build_single_client_work,
)
from tff_pmc.processes.server_evaluation import num_weighted_classes
from tff_pmc.processes.server_step import build_finalizer
from tff_pmc.scores import Basis, Score, single

Factory = Union[
    tff.aggregators.WeightedAggregationFactory,
    tff.aggregators.UnweightedAggregationFactory,
]


@takes_training
def build_prioritized_fed_avg(
    model: Model,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    server_optimizer_fn: Optional[tff.learning.optimizers.Optimizer] = None,
    priority: Optional[Sequence[str]] = None,
    score: Optional[Score] = None,
    aggregator: Optional[Factory] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    basis: Optional[Basis] = None,
    sums: SumOptions = PLAIN_SUMS,
    client_step: Optional[ClientStep] = None,
    model_distributor: Optional[tff.learning.templates.DistributionProcess] = None,
    deployable: bool = False,
    **training: Unpack[TrainingOptions],
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of prioritized multi-criteria averaging.

    One round, with clients k of the cohort and criteria i:

    1.  The server broadcasts its model w.
    2.  Each client trains w on its examples to w_k, and measures its criteria
        `r[k, i] >= 0`.
    3.  It weights its update `w - w_k` by `r_S[k]`, the product of its criteria in S,
        for each set S of the basis.
    4.  The weighted updates, the `r_S[k]` and the `r[k, i]` are summed over the
        clients: the server sees only sums.
    5.  The current score combines the sums. With the totals `T_i = sum_k r[k, i]` and
        `c[k, i] = r[k, i] / T_i`, an ordering o scores a client by

            s[k] = sum_j prod_{l<=j} c[k, o(l)]        (DA eq. 4, PMC eq. 6)

        and the mean update is `D = sum_k s[k] (w - w_k) / sum_k s[k]` (PMC eq. 5).
    6.  The server's optimizer takes D as the gradient: by default `w <- w - D`.

    Scores that compare normalized criteria, OWA and Choquet, need two stages unless
    ranges are declared: between 2 and 3 the clients send only their criteria, and the
    server broadcasts the totals. Two stages are for simulation: a broadcast that
    depends on an aggregate compiles to none of TFF's deployment forms, the clients must
    be packed, a pack keeps the updates of all its clients, and the totals are summed in
    the clear.

    With an `aggregator` the process is federated averaging around this factory, which
    replaces steps 3 to 5, aggregates `(w - w_k, n_k)` and sees each client's update.
    Each pack must then hold one client:
    `pack(examples, cohort, num_packs=len(cohort))`.

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
             aggregator=<totals=float32[m], monomials=float32[B], score=float32,
                         coefficients=<...>, normalization=<...>,
                         model_sums=..., scalar_sums=...>,
             finalizer=<update_rejected=int32>>

    With a label per position, `examples` and `loss_sum` are of the positions that count
    (see `models.select_counted`). The model's metrics (such as those of a Keras model)
    follow `loss_sum` by name, with the values that TFF's `build_weighted_fed_avg`
    reports. `totals` are the sums of the criteria, which declared ranges normalize
    first. `monomials` are the sums of the `r_S[k]`, which two stages compute from
    normalized criteria. `score` is the sum of the scores. `coefficients` are those of
    the current score by the names of the sums, as `<products=<LD=1, DS.LD=1>>`.
    `normalization` contains the divisors of the criteria, or their ranges, under the
    name of the method. With an `aggregator`, its measurements replace all of these.

    Monomials are float32. A client is excluded if its criteria multiply to more than
    1e30, or to less than 1e-30 while none of them is 0; if its update or criteria are
    not finite; or if it has no examples.

    The clients' data have one of two forms. *Packed*: D is one whole client,
    `<x=..., y=..., client=int32, place=int32>`, and a pack is a sequence of them,
    one in a deployment, many in a simulation (`tff_pmc.pack`). *Datasets of batches*,
    as in TFF's tutorials: D is a batch, and a sequence of them is the dataset of one
    client. The two forms differ only in the loop over examples.

    Args:
        model: a functional model, or a function that returns a
            `tff.learning.models.VariableModel`, as TFF's algorithms take it.
        client_optimizer_fn: the clients' optimizer, for example
            `tff.learning.optimizers.build_sgdm(0.1)`. Its state is reset in every
            round, so TFF's `schedule_learning_rate` raises an error: it would count a
            client's steps instead of rounds.
        server_optimizer_fn: the server's optimizer; by default SGD with rate 1, which
            subtracts the weighted mean unscaled (PMC eq. 2 has the rate).
        priority: the codes of criteria, most important first: the prioritized score.
            `("DS",)` is federated averaging. By default the criteria in their order.
        score: any other score over `criteria`, instead of `priority`. A score over
            codes applies to the criteria with these codes, in any order; a score over
            column numbers applies to `criteria` in their order.
        aggregator: any TFF aggregation factory, or `aggregation.BASELINES[name]()`,
            instead of a score. The weight of an update is the client's number of
            examples, float32: the criteria must include DS, and only DS is used. An
            excluded client has the update 0 with the weight 0, which an unweighted
            factory cannot distinguish from an update of 0.
        criteria: the m criteria that the clients measure, codes or `Criterion`s.
        basis: the sums to compute; by default those that the score needs. With
            `Basis.all_subsets(codes)` they determine every ordering (`with_score`), and
            with its `minima` every OWA and Choquet integral. Its codes must be those of
            `criteria`, in their order.
        sums: normalization, clipping, secure sums, privacy. With an aggregator only
            `clip_norm` can be set.
        client_step: with an aggregator, a function `(received weights, update) ->
            update` that each client applies before its update is aggregated, such as
            `aggregation.quantize_parameters(8)`.
        model_distributor: how the model is sent, as in TFF's algorithms; by default by
            a broadcast. With one that sends `<weights=W,
            class_weights=float32[classes]>`, packed clients weight their loss by class
            (`build_adafed`).
        deployable: whether to raise an error for a process that compiles to none of
            TFF's deployment forms.
        **training: the clients' training, see `TrainingOptions`.

    Returns:
        A `tff.learning.templates.LearningProcess`.

    Raises:
        ValueError: a criterion is unknown, listed twice, negative or not a scalar; the
            score weighs by a criterion that is not among them; criteria or codes are a
            set or a dict, which have no order; the basis does not cover the score; the
            process is not deployable; arguments exclude each other; or a number is out
            of range. The message names it.
        TypeError: an optimizer is not a `tff.learning.optimizers.Optimizer`, or the
            aggregator is not a TFF aggregation factory.

    Examples:
        >>> process = build_prioritized_fed_avg(
        ...     models.mnist_cnn(),
        ...     priority=("LD", "DS", "MD"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    options = Training.from_options(training)
    resolved = criteria_lib.resolve(criteria)
    codes = [criterion.code for criterion in resolved]
    if aggregator is not None:
        replaced = {"priority": priority, "score": score, "basis": basis}
        aggregator = argument_checks.as_weighted_factory(aggregator, sums, replaced)
        score = single("DS", codes)
        options = dataclasses.replace(options, packed=True)
    elif client_step is not None:
        raise ValueError(
            "client_step needs an aggregator, which aggregates its result: pass one, "
            "as aggregation.simple_average()"
        )
    score = argument_checks.resolve_score(priority, score, codes)
    mean = PrioritizedMeanFactory(codes, score, basis=basis, sums=sums)
    if deployable and mean.plan.two_stage:
        raise ValueError(
            f"the score {score.label!r} is not deployable with the normalization "
            f"{sums.normalization!r}, with which it needs two stages: declare ranges "
            "(sums=SumOptions('range', ...))"
        )
    classes = num_weighted_classes(model_distributor) if model_distributor else 0
    # Steps 2 and 3: client work. (A round runs the components in the order 1 to 6.)
    components = build_round_components(
        model,
        resolved,
        mean,
        options,
        client_optimizer=client_optimizer_fn,
        server_optimizer=server_optimizer_fn,
        num_weighted_classes=classes,
    )
    client_work = components.client_work
    # Steps 4 and 5: the sums, and the score that combines them.
    if aggregator is None:
        aggregation = mean.create_for_packs(components.update_type)
    else:
        client_work = build_single_client_work(client_work, client_step)
        aggregation = aggregator.create(components.update_type, WEIGHT_TYPE)
    # Step 1: the broadcast of the model.
    distributor = model_distributor
    if distributor is None:
        build_broadcast = tff.learning.templates.build_broadcast_process
        distributor = build_broadcast(components.weights_type)
    return tff.learning.templates.compose_learning_process(
        components.initial_weights,
        distributor,
        client_work,
        aggregation,
        # Step 6: the server's optimizer.
        build_finalizer(components.server_optimizer, components.weights_type),
    )


def with_score(state: Any, basis: Basis, score: Score) -> Any:
    """Returns the state of a process with another current score.

    Every `next` that receives this state uses the score, and returns a state with it. A
    state without a score uses that of the process whose `next` is called, even if
    another process returned the state.

    Args:
        state: a state of a process built with this basis.
        basis: the basis of the process, over the codes of its criteria, as
            `Basis.all_subsets(("DS", "LD"))`. A basis over a number of criteria only
            takes scores over column numbers.
        score: a score that the basis covers.

    Returns:
        The state with the score's coefficients, otherwise unchanged.

    Raises:
        ValueError: the basis does not cover the score, or has no codes.
    """
    coefficients = basis.coefficients(score)
    if any(score.criteria) and not basis.criteria:
        raise ValueError(
            f"the score {score.label!r} is over codes, but the basis has none: build "
            "the process with a basis over the codes of its criteria, as "
            'Basis.all_subsets(("DS", "LD"))'
        )
    aggregator = dict(state.aggregator)
    aggregator["coefficients"] = coefficients
    return state._replace(aggregator=type(state.aggregator)(aggregator))
