"""Federated averaging whose ordering is adjusted online (DA, Algorithm 1).

One round:

    the cohort trains once -> sums over the whole basis come back once
    -> a candidate's model is a linear combination of them
    -> all clients judge it -> the search chooses it or names the next candidate

Here training and judging are two federated computations, with the search between
them: no more candidates are tested than must be. `online_iterative` is the same as
one pure process, of the same parts.
"""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from typing_extensions import Unpack

from tff_pmc import criteria as criteria_lib
from tff_pmc import search
from tff_pmc.aggregation import PrioritizedMeanFactory, SumOptions, combine
from tff_pmc.aggregation.basis_sums import named_coefficients
from tff_pmc.aggregation.sum_options import PLAIN_SUMS
from tff_pmc.aggregation.tff_utils import zipped
from tff_pmc.clients.training_options import (
    Training,
    TrainingOptions,
    takes_training,
)
from tff_pmc.processes import argument_checks
from tff_pmc.processes.evaluation import build_correct_counts
from tff_pmc.processes.round_components import (
    Model,
    RoundComponents,
    build_round_components,
)
from tff_pmc.processes.server_step import apply_update, build_optimizer_initializer
from tff_pmc.runtime import lost_round_warnings
from tff_pmc.scores import Basis, Score, prioritized


class OnlineState(NamedTuple):
    """The state between two rounds, in either form of online adjustment.

    Attributes:
        learning: a `tff.learning.templates.LearningAlgorithmState`: the model, and
            the states of client work, sums and server optimizer.
        index: the index of the candidate in force in the list of candidates, int32.
        correct: the number of examples that the model got right when it was chosen,
            int32; -1 before the first round, where nothing is judged, and where
            `set_model_weights` has replaced the model.
    """

    learning: Any
    index: Any
    correct: Any


class OnlineOutput(NamedTuple):
    """The result of a round.

    Attributes:
        state: the `OnlineState` after the round.
        metrics: `<client_work, aggregator, finalizer>` as of
            `build_prioritized_fed_avg`, of the chosen model.
        trials: the candidates tested, in order.
        counts: the judge's counts for the chosen model; None where nothing is judged.
        train_seconds: the seconds that the training took; the rest went into testing.
    """

    state: OnlineState
    metrics: collections.OrderedDict
    trials: list[search.Trial]
    counts: Optional[np.ndarray]
    train_seconds: float = 0.0


class OnlineParts(NamedTuple):
    """The parts of which either form of online adjustment is composed."""

    candidates: tuple[Score, ...]  # In the order of testing.
    first: int  # The index of the candidate in force in the first round.
    components: RoundComponents
    initialize: tff.Computation  # ( -> OnlineState@SERVER)
    train: tff.Computation  # See `_build_train`.
    step: Callable[..., collections.OrderedDict]  # See `_build_step`.

    @property
    def basis(self) -> Basis:
        """The basis of the sums."""
        return self.components.mean.plan.basis


def chosen(
    trained: Any, stepped: Any, index: Any, correct: Any
) -> tuple[OnlineState, collections.OrderedDict]:
    """Returns the state and the metrics of a round that chose a candidate.

    Both forms call it, with arrays or with tensors: `trained` is of `OnlineParts.train`
    (without the sums), `stepped` of its `step` to the candidate of this index, whose
    model gets so many examples right.
    """
    learning = tff.learning.templates.LearningAlgorithmState(
        global_model_weights=stepped["weights"],
        distributor=(),
        client_work=trained["client_work"],
        aggregator=trained["aggregator"],
        finalizer=stepped["optimizer"],
    )
    metrics = collections.OrderedDict(
        client_work=trained["metrics"]["client_work"],
        aggregator=collections.OrderedDict(
            trained["metrics"]["aggregator"],
            score=stepped["score"],
            coefficients=stepped["coefficients"],
        ),
        finalizer=collections.OrderedDict(update_rejected=stepped["update_rejected"]),
    )
    return OnlineState(learning, index, correct), metrics


@dataclasses.dataclass(frozen=True)
class OnlineAdjustedFedAvg:
    """Online adjustment by two federated computations, train and judge, and a search.

    Attributes:
        parts: the candidates, and the parts that the round is made of.
        policy: one of `search.POLICIES`; with `fixed` nothing is judged.
        judge: `(<W@SERVER, J@CLIENTS> -> int32@SERVER)`: examples that a model gets
            right, in all or for each client.
    """

    parts: OnlineParts
    policy: str
    judge: tff.Computation

    @property
    def candidates(self) -> tuple[Score, ...]:
        """The scores that are searched, in the order of testing."""
        return self.parts.candidates

    def initialize(self) -> OnlineState:
        """Returns the state before the first round."""
        return self.parts.initialize()

    def next(
        self, state: OnlineState, clients: Sequence[Any], judges: Sequence[Any]
    ) -> OnlineOutput:
        """Runs one round: the cohort trains once, then candidates are tested.

        Args:
            state: the state after the round before.
            clients: the cohort's data, as of `build_prioritized_fed_avg`.
            judges: all clients' data, as the judge takes it.

        Raises:
            ValueError: a federated judge is given no data.
        """
        output, _ = self.next_with_sums(state, clients, judges)
        return output

    def next_with_sums(
        self, state: OnlineState, clients: Sequence[Any], judges: Sequence[Any]
    ) -> tuple[OnlineOutput, Any]:
        """Runs one round as `next`; also returns what `parts.train` gave.

        Of its sums `step` makes the models of other scores. They are as large as a
        model for each set of the basis, so that an `OnlineOutput` does not keep them.
        """
        if self.policy != "fixed":
            self.check_judges(judges)
        start = time.perf_counter()
        trained = self.parts.train(state.learning, clients)
        train_seconds = time.perf_counter() - start
        output = self.choose(state, trained, judges)
        return output._replace(train_seconds=train_seconds), trained

    def choose(
        self, state: OnlineState, trained: Any, judges: Sequence[Any]
    ) -> OnlineOutput:
        """Tests candidates on what `parts.train` gave, the second part of `next`."""
        if self.policy == "fixed":
            # Of a state of another process the search resumes; this does not.
            index, correct, tried, counts = self.parts.first, -1, [], None
            stepped = self.step(state, trained, self.candidates[index])
        else:
            before = search.SearchState(int(state.index), int(state.correct))
            trials = search.CandidateSearch(self.policy, len(self.candidates), before)
            while trials.next is not None:
                tested = trials.next
                candidate = self.step(state, trained, self.candidates[tested])
                found = self.correct(candidate["weights"], judges)
                trials.report(int(found.sum()))
                # The models of the others need not stay in memory.
                if trials.best.index == tested:
                    stepped, counts = candidate, found
            index, correct = trials.chosen.index, trials.chosen.correct
            tried = trials.tried
        next_state, metrics = chosen(
            trained, stepped, np.int32(index), np.int32(correct)
        )
        lost_round_warnings.warn_if_lost(self.parts.train, metrics)
        return OnlineOutput(next_state, metrics, tried, counts)

    def get_model_weights(self, state: OnlineState) -> Any:
        """Returns the model of a state, a `tff.learning.models.ModelWeights`."""
        return state.learning.global_model_weights

    def set_model_weights(self, state: OnlineState, weights: Any) -> OnlineState:
        """Returns the state with another model, as of a `LearningProcess` of TFF's.

        How many examples the new model classifies correctly is not known: the next
        round searches as the first one does, from the candidate in force.
        """
        type_ = self.parts.components.weights_type
        made = tff.tensorflow.computation(lambda given: given, type_)(weights)
        learning = state.learning._replace(global_model_weights=made)
        return state._replace(learning=learning, correct=np.int32(-1))

    def check_judges(self, judges: Sequence[Any]) -> None:
        """Raises a `ValueError` where a federated judge is given no data."""
        if isinstance(self.judge, tff.Computation) and not judges:
            raise ValueError("judges is empty: there is nothing to judge candidates on")

    def correct(self, weights: Any, judges: Sequence[Any]) -> np.ndarray:
        """Returns what the judge finds that a model gets right, int64 [] or [K]."""
        return np.asarray(self.judge(weights, judges), np.int64)

    def step(
        self,
        state: OnlineState,
        trained: Any,
        score: Score,
        rate: Optional[float] = None,
    ) -> Any:
        """Takes the server's step with one score, for which no client does anything.

        `trained` is what `parts.train` gave, and `rate` another learning rate of the
        server. A `ValueError` reports that the sums do not cover the score, or that the
        server's optimizer has no learning rate.
        """
        optimizer = self.parts.components.server_optimizer
        optimizer_state = state.learning.finalizer
        if rate is not None:
            settings = optimizer.get_hparams(optimizer_state)
            if "learning_rate" not in settings:
                raise ValueError(
                    "the server's optimizer has no learning rate to change"
                )
            settings["learning_rate"] = np.float32(rate)
            optimizer_state = optimizer.set_hparams(optimizer_state, settings)
        return self.parts.step(
            self.parts.basis.coefficients(score),
            trained["sums"],
            optimizer_state,
            # In a state that was put together the arrays may be in lists.
            tff.learning.models.ModelWeights(
                tuple(state.learning.global_model_weights.trainable),
                tuple(state.learning.global_model_weights.non_trainable),
            ),
        )


@takes_training
def build_online_adjusted_fed_avg(
    model: Model,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    server_optimizer_fn: Optional[tff.learning.optimizers.Optimizer] = None,
    priority: Optional[Sequence[str]] = None,
    candidates: Optional[Sequence[Score]] = None,
    first: Optional[Score] = None,
    others: Sequence[Score] = (),
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    policy: str = "backtracking",
    judge: Optional[tff.Computation] = None,
    num_clients: Optional[int] = None,
    sums: SumOptions = PLAIN_SUMS,
    **training: Unpack[TrainingOptions],
) -> OnlineAdjustedFedAvg:
    """Builds online adjustment as train, judge and a search between them.

    One round, whose steps 1 to 4 are those of `build_prioritized_fed_avg`, with the
    sums that all candidates need:

    5.  A candidate's score combines the sums, and the server's optimizer steps to its
        model: first that of the candidate in force, then the others in their order.
    6.  All clients count the examples that the model gets right.
    7.  With `backtracking` the candidate is chosen if it is at least as good as the
        model of the round before; else the next is tested, and where none is as good,
        the best is chosen (DA, Algorithm 1). `best_of_all` tests all and chooses the
        best, of equals the first.

    Args:
        model: as of `build_prioritized_fed_avg`.
        client_optimizer_fn: the clients' optimizer.
        server_optimizer_fn: the server's optimizer; by default SGD with rate 1.
        priority: the ordering in force in the first round. The candidates are all
            orderings of the same criteria, tested in the order of
            `search.orderings`. Default: the declared criteria, in their order.
        candidates: scores to search in the place of orderings.
        first: the candidate in force in the first round, if `priority` does not name
            it; by default the first.
        others: scores that are not searched, and whose models follow from the sums,
            too; see `counterfactuals`.
        criteria: the criteria the clients measure, codes or `Criterion`s.
        policy: `backtracking` (the paper's), `best_of_all`, or `fixed`, which judges
            nothing and keeps the first candidate; see `search.POLICIES`.
        judge: `(<W@SERVER, J@CLIENTS> -> int32@SERVER)`, how many examples a model
            gets right, for whatever data J. By default
            `build_federated_evaluation`, which needs a functional model.
        num_clients: the number of clients in the federation, K, for each of which the
            default judge then counts; by default it counts for all together, with a
            `scalar_sum_factory` by a secure sum.
        sums: normalization, clipping, secure sums, privacy. Two stages follow from
            the candidates and the normalization.
        **training: the clients' training, see `TrainingOptions`.

    Returns:
        An `OnlineAdjustedFedAvg`: `initialize()`, `next(state, clients, judges)`,
        `get_model_weights(state)`, `set_model_weights(state, weights)`.

    Raises:
        ValueError: as `build_prioritized_fed_avg`; an unknown policy; `first` is not
            among the candidates; more than
            `search.MAX_CRITERIA` criteria to order; sums that hide what clients
            send, without a judge that keeps to them: the default one returns exact
            counts, and a secure sum for all together only.

    Examples:
        >>> online = build_online_adjusted_fed_avg(
        ...     models.femnist_cnn(),
        ...     priority=("MD", "DS", "LD"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.01),
        ...     batch_size=10,
        ... )
        >>> tests = evaluation_packs(data.test_examples)
        >>> output = online.next(online.initialize(), clients, tests)
    """
    options = Training.from_options(training)
    try:
        search.check_policy(policy)
    except ValueError as error:
        raise ValueError(f"policy {error}") from error
    judge = judge or default_judge(model, num_clients, sums, secure=True)
    parts = build_parts(
        model,
        options,
        client_optimizer=client_optimizer_fn,
        server_optimizer=server_optimizer_fn,
        priority=priority,
        candidates=candidates,
        first=first,
        others=others,
        criteria=criteria,
        sums=sums,
    )
    return OnlineAdjustedFedAvg(parts, policy, judge)


def build_parts(
    model: Model,
    training: Training,
    *,
    client_optimizer: tff.learning.optimizers.Optimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer],
    priority: Optional[Sequence[str]],
    candidates: Optional[Sequence[Score]],
    first: Optional[Score] = None,
    others: Sequence[Score] = (),
    criteria: Sequence[Union[str, criteria_lib.Criterion]],
    sums: SumOptions,
) -> OnlineParts:
    """Checks and builds the parts; args are of `build_online_adjusted_fed_avg`."""
    measured = criteria_lib.resolve(criteria)
    codes = [criterion.code for criterion in measured]
    for name, value in {"candidates": candidates, "first": first}.items():
        if priority is not None and value is not None:
            raise ValueError(f"give either priority or {name}, not both")
    if candidates is not None:
        candidates = argument_checks.scores_over("candidates", candidates, codes)
        if not candidates:
            raise ValueError("there are no candidates to search")
        in_force = candidates[0]
    else:
        in_force = argument_checks.resolve_score(priority, None, codes)
        names = [codes[column] for column in sorted(in_force.columns)]
        candidates = [prioritized(order, codes) for order in search.orderings(names)]
    if first is not None:
        (in_force,) = argument_checks.scores_over("first", [first], codes)
    index = _index_of(in_force, candidates)
    others = argument_checks.scores_over("others", others, codes)
    basis = Basis.of(codes, [*candidates, *others])
    mean = PrioritizedMeanFactory(codes, candidates[index], basis=basis, sums=sums)
    components = build_round_components(
        model,
        measured,
        mean,
        training,
        client_optimizer=client_optimizer,
        server_optimizer=server_optimizer,
    )
    summed = mean.create_sums(components.update_type)
    initialize = _build_initialize(components, summed, index)
    state_type = initialize.type_signature.result.member
    train = _build_train(components, summed, state_type)
    return OnlineParts(
        tuple(candidates), index, components, initialize, train, _build_step(components)
    )


def _index_of(in_force: Score, candidates: Sequence[Score]) -> int:
    """Returns the index of the equal candidate, else of one of the same terms."""

    def terms(score: Score) -> Any:
        return score.products, score.minima, score.step_powers

    equal = [i for i, score in enumerate(candidates) if score == in_force]
    others = [i for i, s in enumerate(candidates) if terms(s) == terms(in_force)]
    if not equal + others:
        raise ValueError(
            f"first is the score {in_force.label!r}, which is not among the candidates "
            f"{'; '.join(score.label for score in candidates)}"
        )
    return (equal + others)[0]


def _build_initialize(
    components: RoundComponents, sums: tff.templates.AggregationProcess, first: int
) -> tff.Computation:
    """Builds `( -> OnlineState@SERVER)`."""
    optimizer = build_optimizer_initializer(
        components.server_optimizer, components.weights_type
    )

    @tff.federated_computation
    def initialize():
        learning = tff.learning.templates.LearningAlgorithmState(
            global_model_weights=tff.federated_eval(
                components.initial_weights, tff.SERVER
            ),
            distributor=tff.federated_value((), tff.SERVER),
            client_work=components.client_work.initialize(),
            aggregator=sums.initialize(),
            finalizer=tff.federated_eval(optimizer, tff.SERVER),
        )
        search_state = (
            tff.federated_value(np.int32(value), tff.SERVER) for value in (first, -1)
        )
        return tff.federated_zip(
            OnlineState(tff.federated_zip(learning), *search_state)
        )

    return initialize


def _build_train(
    components: RoundComponents,
    sums: tff.templates.AggregationProcess,
    state_type: tff.Type,
) -> tff.Computation:
    """Builds the training of one cohort, whose result is the sums.

    (<LearningAlgorithmState@SERVER, {D*}@CLIENTS>
     -> <client_work=..., aggregator=...,
         sums=<models=W*B, scales=float32[m], monomials=float32[B]>,
         metrics=<client_work=..., aggregator=...>>@SERVER)
    """
    data_type = components.client_work.next.type_signature.parameter[2]

    @tff.federated_computation(
        tff.FederatedType(state_type.learning, tff.SERVER), data_type
    )
    def train(state, clients):
        received = tff.federated_broadcast(state.global_model_weights)
        work = components.client_work.next(state.client_work, received, clients)
        found = sums.next(
            state.aggregator, work.result.update, work.result.update_weight
        )
        return collections.OrderedDict(
            client_work=work.state,
            aggregator=found.state,
            sums=found.result,
            metrics=zipped(
                client_work=work.measurements, aggregator=found.measurements
            ),
        )

    return train


def _build_step(components: RoundComponents) -> Callable[..., collections.OrderedDict]:
    """Builds the server's step to one candidate's model, a `tf.function`.

    Its arguments are the candidate's coefficients `a_S`, float32 [B], the sums, the
    optimizer's state and the weights; its result the same weights and state after the
    step, `update_rejected`, `score`, the sum of the clients' scores, and the
    `coefficients` by the names of their sums.
    """
    basis = components.mean.plan.basis

    @tf.function
    def step(coefficients, sums, optimizer_state, weights):
        update, score = combine(
            basis, coefficients, sums["scales"], sums["monomials"], sums["models"]
        )
        optimizer_state, weights, rejected = apply_update(
            components.server_optimizer, optimizer_state, weights, update
        )
        return collections.OrderedDict(
            weights=weights,
            optimizer=optimizer_state,
            update_rejected=rejected,
            score=score,
            coefficients=named_coefficients(basis, coefficients),
        )

    return step


def default_judge(
    model: Any, num_clients: Optional[int], sums: SumOptions, *, secure: bool = False
) -> tff.Computation:
    """Builds an evaluation, by client or of all, which needs a functional model.

    Its counts are exact, so that it is refused with hidden sums; with secure ones
    it may be `secure` itself, if it counts for all together.
    """
    secure &= list(sums.hiding) == ["scalar_sum_factory"] and num_clients is None
    for name in () if secure else sums.hiding:
        raise ValueError(
            f"{name} would hide the sums of training, while the default judge returns "
            "exact counts of correct examples: give another judge"
        )
    if not isinstance(model, tff.learning.models.FunctionalModel):
        raise ValueError(
            "with a model_fn, give a judge: a computation (<W@SERVER, data@CLIENTS> "
            "-> int32@SERVER) of how many examples a model gets right"
        )
    return build_correct_counts(model, num_clients, secure=secure)
