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

    One round, of a cohort of clients k and the criteria i:

    1.  The server sends its model w to the clients.
    2.  Each client trains w on its examples to w_k, and measures its criteria
        `r[k, i] >= 0`.
    3.  It weights its update `w - w_k` by `r_S[k]`, the product of its criteria in a
        set S, for each set of the basis.
    4.  The updates so weighted, the `r_S[k]` and the `r[k, i]` are summed over the
        clients: the server sees sums only.
    5.  The score in force combines the sums. With the totals `T_i = sum_k r[k, i]` and
        `c[k, i] = r[k, i] / T_i` an ordering o scores a client by

            s[k] = sum_j prod_{l<=j} c[k, o(l)]        (DA eq. 4, PMC eq. 6)

        and the mean update is `D = sum_k s[k] (w - w_k) / sum_k s[k]` (PMC eq. 5).
    6.  The server's optimizer takes D for a gradient: by default `w <- w - D`.

    Scores that compare normalized criteria, OWA and Choquet, need two stages, unless
    their ranges are declared: between 2 and 3 the clients send their criteria alone,
    and the totals are sent back. That is for simulation: a broadcast that depends on an
    aggregate compiles to none of TFF's deployment forms, the clients have to be packed,
    a pack keeps the updates of all its clients, and totals are summed in the clear.

    With an `aggregator` the process is federated averaging around this factory: it
    replaces steps 3 to 5, aggregates `(w - w_k, n_k)`, and sees each client's. Each
    pack must then hold one client: `pack(examples, cohort, num_packs=len(cohort))`.

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

    The model's metrics (such as those of a Keras model) follow `loss_sum` by name, with
    the values that TFF's `build_weighted_fed_avg` reports. `totals` are the sums of the
    criteria, which declared ranges normalize first. `monomials` are the sums of the
    `r_S[k]`, which two stages compute of normalized criteria. `score` is the sum of the
    scores. `coefficients` are those of the score in force by the names of the sums, as
    `<products=<LD=1, DS.LD=1>>`. `normalization` has what the criteria are divided by,
    or their ranges, under the name of the method. An aggregator's measurements replace
    these.

    Monomials are float32. A client is left out if its criteria multiply to more than
    1e30, or to less than 1e-30 while none of them is 0. A client whose update or
    criteria are not finite, or which has no examples, is also left out.

    Clients' data has one of two forms. *Packed*, D is one whole client,
    `<x=..., y=..., client=int32, place=int32>`, and a pack is a sequence of them:
    one in a deployment, many in a simulation (`tff_pmc.pack`). As in
    TFF's tutorials, D is a batch, and each sequence is the dataset of one
    client. The two forms differ only in the loop over examples.

    Args:
        model: a functional model, or a function that makes a
            `tff.learning.models.VariableModel`, as TFF's algorithms take it.
        client_optimizer_fn: the clients' optimizer, for example
            `tff.learning.optimizers.build_sgdm(0.1)`. Its state begins anew in every
            round, so that TFF's `schedule_learning_rate` is refused: it would count a
            client's steps, and not the rounds.
        server_optimizer_fn: the server's optimizer; by default SGD with rate 1, which
            takes the weighted mean as it is (PMC eq. 2 has the rate).
        priority: the codes of criteria, most important first: the prioritized score.
            `("DS",)` is federated averaging. Default: the criteria in their order.
        score: any other score over `criteria`, instead of `priority`. Its codes are
            those of `criteria`, whichever columns it was built over; columns that were
            named by number are those of `criteria` as they stand.
        aggregator: any factory of TFF's, or `aggregation.BASELINES[name]()`, in the
            place of a score. The weight of an update is the client's number of
            examples, float32: DS has to be among the criteria, and only DS counts. A
            client whose update is not finite comes as 0 with the weight 0: an
            unweighted factory cannot distinguish it from an update of 0.
        criteria: the m criteria the clients measure, codes or `Criterion`s.
        basis: the sums to make; by default those the score needs. With
            `Basis.all_subsets(codes)` every ordering follows (`with_score`), and with
            its `minima` every OWA and Choquet integral. Its codes have to be those of
            `criteria`, in their order.
        sums: normalization, clipping, secure sums, privacy. With an aggregator only
            `clip_norm` can be given.
        client_step: of an aggregator: what a client does with its trained model before
            its update is aggregated, as `aggregation.quantize_parameters(8)`.
        model_distributor: how the model is sent, as in TFF's algorithms; by default by
            a broadcast. One that sends `<weights=W, class_weights=float32[classes]>`
            has packed clients train on the loss so weighted (`build_adafed`).
        deployable: whether to refuse a process that compiles to none of TFF's
            deployment forms.
        **training: the clients' training, see `TrainingOptions`.

    Returns:
        A `tff.learning.templates.LearningProcess`.

    Raises:
        ValueError: a criterion is unknown, named twice, negative or no scalar, the
            score weighs by one that is not among them, codes have no order, as a set,
            the basis does not cover the score, the process would not be deployable,
            arguments exclude each other, or a number is out of range; the message
            names it.
        TypeError: an optimizer is not a `tff.learning.optimizers.Optimizer`, or the
            aggregator no factory of TFF's.

    Examples:
        >>> process = build_prioritized_fed_avg(
        ...     models.mnist_cnn(),
        ...     priority=("LD", "DS", "MD"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    options = Training.from_options(training)
    found = criteria_lib.resolve(criteria)
    codes = [criterion.code for criterion in found]
    if aggregator is not None:
        others = {"priority": priority, "score": score, "basis": basis}
        aggregator = argument_checks.as_weighted_factory(aggregator, sums, others)
        score = single("DS", codes)
        options = dataclasses.replace(options, packed=True)
    elif client_step is not None:
        raise ValueError("client_step needs an aggregator, which sees its result")
    score = argument_checks.resolve_score(priority, score, codes)
    mean = PrioritizedMeanFactory(codes, score, basis=basis, sums=sums)
    if deployable and mean.plan.two_stage:
        raise ValueError(
            f"the score {score.label!r} needs two stages with the normalization "
            f"{sums.normalization!r}, and is not deployable: declare ranges "
            "(sums=SumOptions('range', ...))"
        )
    classes = num_weighted_classes(model_distributor) if model_distributor else 0
    # Built here, the components run in the order of steps 1 to 6. Clients: 2 and 3.
    components = build_round_components(
        model,
        found,
        mean,
        options,
        client_optimizer=client_optimizer_fn,
        server_optimizer=server_optimizer_fn,
        num_weighted_classes=classes,
    )
    client_work = components.client_work
    # The sums, and the score that combines them: 4 and 5.
    if aggregator is None:
        aggregation = mean.create_for_packs(components.update_type)
    else:
        client_work = build_single_client_work(client_work, client_step)
        aggregation = aggregator.create(components.update_type, WEIGHT_TYPE)
    # The model is sent: 1.
    distributor = model_distributor
    if distributor is None:
        build_broadcast = tff.learning.templates.build_broadcast_process
        distributor = build_broadcast(components.weights_type)
    return tff.learning.templates.compose_learning_process(
        components.initial_weights,
        distributor,
        client_work,
        aggregation,
        # The server's optimizer: 6.
        build_finalizer(components.server_optimizer, components.weights_type),
    )


def with_score(state: Any, basis: Basis, score: Score) -> Any:
    """Returns the state of a process with another score in force.

    Every `next` that receives the state uses this score. A state without a score uses
    that of the process whose `next` is called, not that of the process that made it.

    Args:
        state: a state of a process built with this basis.
        basis: the basis of the process, over the codes of its criteria, as
            `Basis.all_subsets(("DS", "LD"))`; of a number of criteria it takes scores
            by column numbers alone.
        score: a score the basis covers.

    Returns:
        A state that differs in the score's coefficients alone.

    Raises:
        ValueError: the basis does not cover the score, or does not know its codes.
    """
    coefficients = basis.coefficients(score)
    if any(score.criteria) and not basis.criteria:
        raise ValueError(
            f"the score {score.label!r} is by codes, and the basis does not say which "
            "column has which: build the process with one over the codes of its "
            'criteria, as Basis.all_subsets(("DS", "LD"))'
        )
    aggregator = dict(state.aggregator)
    aggregator["coefficients"] = coefficients
    return state._replace(aggregator=type(state.aggregator)(aggregator))
