"""Federated averaging whose ordering is adjusted online (DA, Algorithm 1).

One round:

    the cohort trains once and sends the sums over the whole basis
    -> a candidate's model is computed from a linear combination of the sums
    -> all clients judge it -> the search chooses it or names the next candidate

Here training and judging are two federated computations with the search between them,
so that no more candidates are tested than the search needs. `online_iterative` composes
the same components into one pure process.
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
from tff_pmc.aggregation.tff_utils import federated_struct
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
    """The state between two rounds, in both forms of online adjustment.

    Attributes:
        learning: a `tff.learning.templates.LearningAlgorithmState`: the model, and
            the states of client work, sums and server optimizer.
        index: the index of the current candidate in the list of candidates, int32.
        correct: the number of examples that the model classified correctly when it was
            chosen, int32; -1 before the first round, if nothing is judged, and after
            `set_model_weights` has replaced the model.
    """

    learning: Any
    index: Any
    correct: Any


class OnlineOutput(NamedTuple):
    """The result of a round.

    Attributes:
        state: the `OnlineState` after the round.
        metrics: `<client_work, aggregator, finalizer>` for the chosen model, as in
            `build_prioritized_fed_avg`.
        trials: the tested candidates, in order.
        counts: the judge's counts for the chosen model; None if nothing is judged.
        train_seconds: the seconds that the training took.
    """

    state: OnlineState
    metrics: collections.OrderedDict
    trials: list[search.Trial]
    counts: Optional[np.ndarray]
    train_seconds: float = 0.0


class OnlineComponents(NamedTuple):
    """The components of both forms of online adjustment."""

    candidates: tuple[Score, ...]  # In the order of testing.
    first: int  # The index of the candidate that the first round tests first.
    components: RoundComponents
    initialize: tff.Computation  # ( -> OnlineState@SERVER)
    train: tff.Computation  # See `_build_train`.
    step: Callable[..., collections.OrderedDict]  # See `_build_step`.

    @property
    def basis(self) -> Basis:
        """The basis of the sums."""
        return self.components.mean.plan.basis


def finish_round(
    training_output: Any, server_output: Any, index: Any, correct: Any
) -> tuple[OnlineState, collections.OrderedDict]:
    """Returns the state and the metrics of a round that chose a candidate.

    Both forms call it, with arrays or tensors. `training_output` is the result of
    `OnlineComponents.train` (without the sums), `server_output` that of its `step` for
    the candidate `index`, and `correct` the number of examples that the new model
    classifies correctly.
    """
    learning = tff.learning.templates.LearningAlgorithmState(
        global_model_weights=server_output["weights"],
        distributor=(),
        client_work=training_output["client_work"],
        aggregator=training_output["aggregator"],
        finalizer=server_output["optimizer"],
    )
    metrics = collections.OrderedDict(
        client_work=training_output["metrics"]["client_work"],
        aggregator=collections.OrderedDict(
            training_output["metrics"]["aggregator"],
            score=server_output["score"],
            coefficients=server_output["coefficients"],
        ),
        finalizer=collections.OrderedDict(
            update_rejected=server_output["update_rejected"]
        ),
    )
    return OnlineState(learning, index, correct), metrics


@dataclasses.dataclass(frozen=True)
class OnlineAdjustedFedAvg:
    """Online adjustment by two federated computations, train and judge, and a search.

    Attributes:
        parts: the candidates, and the components of a round.
        policy: one of `search.POLICIES`; with `fixed` nothing is judged.
        judge: `(<W@SERVER, J@CLIENTS> -> int32@SERVER)`: the number of examples that a
            model classifies correctly, in total or per client.
    """

    parts: OnlineComponents
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
            state: the state after the previous round.
            clients: the cohort's data, as for `build_prioritized_fed_avg`.
            judges: all clients' data, as the judge takes them.

        Raises:
            ValueError: `judges` is empty, and the judge is a federated computation.
        """
        output, _ = self.next_with_sums(state, clients, judges)
        return output

    def next_with_sums(
        self, state: OnlineState, clients: Sequence[Any], judges: Sequence[Any]
    ) -> tuple[OnlineOutput, Any]:
        """Runs one round as `next`; also returns the result of `parts.train`.

        `step` computes the models of other scores from its sums. An `OnlineOutput` does
        not keep the sums, because they are as large as one model per set of the basis.
        """
        if self.policy != "fixed":
            self.check_judges(judges)
        start = time.perf_counter()
        training_output = self.parts.train(state.learning, clients)
        train_seconds = time.perf_counter() - start
        output = self.choose(state, training_output, judges)
        return output._replace(train_seconds=train_seconds), training_output

    def choose(
        self, state: OnlineState, trained: Any, judges: Sequence[Any]
    ) -> OnlineOutput:
        """Runs the second half of `next`: tests candidates after `parts.train`."""
        if self.policy == "fixed":
            # The state's index is where a search resumes. `fixed` ignores it, because
            # the state may come from another process.
            index, correct, trials, counts = self.parts.first, -1, [], None
            server_output = self.step(state, trained, self.candidates[index])
        else:
            search_state = search.SearchState(int(state.index), int(state.correct))
            candidate_search = search.CandidateSearch(
                self.policy, len(self.candidates), search_state
            )
            while candidate_search.next is not None:
                tested = candidate_search.next
                candidate = self.step(state, trained, self.candidates[tested])
                candidate_counts = self.count_correct(candidate["weights"], judges)
                candidate_search.report(int(candidate_counts.sum()))
                # Only the best model stays in memory.
                if candidate_search.best.index == tested:
                    server_output, counts = candidate, candidate_counts
            index, correct = (
                candidate_search.chosen.index,
                candidate_search.chosen.correct,
            )
            trials = candidate_search.tried
        next_state, metrics = finish_round(
            trained, server_output, np.int32(index), np.int32(correct)
        )
        lost_round_warnings.warn_if_lost(self.parts.train, metrics)
        return OnlineOutput(next_state, metrics, trials, counts)

    def get_model_weights(self, state: OnlineState) -> Any:
        """Returns the model of a state, a `tff.learning.models.ModelWeights`."""
        return state.learning.global_model_weights

    def set_model_weights(self, state: OnlineState, weights: Any) -> OnlineState:
        """Returns the state with another model, as a TFF `LearningProcess` does.

        How many examples the new model classifies correctly is unknown, so the next
        round searches as the first round does, from the current candidate.
        """
        type_ = self.parts.components.weights_type
        tensors = tff.tensorflow.computation(lambda w: w, type_)(weights)
        learning = state.learning._replace(global_model_weights=tensors)
        return state._replace(learning=learning, correct=np.int32(-1))

    def check_judges(self, judges: Sequence[Any]) -> None:
        """Raises a `ValueError` if the judge is federated and has no data."""
        if isinstance(self.judge, tff.Computation) and not judges:
            raise ValueError(
                "judges is empty: pass the data on which candidates are judged"
            )

    def count_correct(self, weights: Any, judges: Sequence[Any]) -> np.ndarray:
        """Runs the judge; returns its counts of correct examples, int64 [] or [K]."""
        return np.asarray(self.judge(weights, judges), np.int64)

    def correct(self, weights: Any, judges: Sequence[Any]) -> np.ndarray:
        """The earlier name of `count_correct`, kept for one more release."""
        return self.count_correct(weights, judges)

    def step(
        self,
        state: OnlineState,
        trained: Any,
        score: Score,
        rate: Optional[float] = None,
    ) -> Any:
        """Computes the server update for one score from a round's sums.

        It needs no client. `trained` is the result of `parts.train`, and `rate`, if
        given, replaces the server's learning rate. Raises a `ValueError` if the sums do
        not cover the score, or the server's optimizer has no learning rate to replace.
        """
        optimizer = self.parts.components.server_optimizer
        optimizer_state = state.learning.finalizer
        if rate is not None:
            hparams = optimizer.get_hparams(optimizer_state)
            if "learning_rate" not in hparams:
                raise ValueError(
                    "rates need a server optimizer with a learning rate: "
                    f"{type(optimizer).__name__} has none to change"
                )
            hparams["learning_rate"] = np.float32(rate)
            optimizer_state = optimizer.set_hparams(optimizer_state, hparams)
        return self.parts.step(
            self.parts.basis.coefficients(score),
            trained["sums"],
            optimizer_state,
            # A state that a user has composed may contain lists.
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
    """Builds online adjustment by two federated computations and a search between them.

    One round starts with steps 1 to 4 of `build_prioritized_fed_avg`, with the sums
    that all candidates need:

    5.  A candidate's score combines the sums, and the server's optimizer steps to its
        model: first for the current candidate, then for the rest in their order.
    6.  All clients count the examples that the model classifies correctly.
    7.  With `backtracking` the candidate is chosen if it is at least as good as the
        previous round's model; else the next is tested, and if none is as good, the
        best is chosen (DA, Algorithm 1). `best_of_all` tests all and chooses the best,
        in a tie the first.

    Args:
        model: as for `build_prioritized_fed_avg`.
        client_optimizer_fn: the clients' optimizer.
        server_optimizer_fn: the server's optimizer; by default SGD with rate 1.
        priority: the ordering that the first round tests first. The candidates are all
            orderings of the same criteria, tested in the order of `search.orderings`.
            By default the criteria in their order.
        candidates: scores to search instead of orderings.
        first: the candidate that the first round tests first, instead of `priority`; by
            default the first candidate.
        others: scores that the sums also cover but the search does not test; see
            `counterfactuals`.
        criteria: the criteria that the clients measure, codes or `Criterion`s.
        policy: `backtracking` (the paper's), `best_of_all`, or `fixed`, which judges
            nothing and keeps the first candidate; see `search.POLICIES`.
        judge: `(<W@SERVER, J@CLIENTS> -> int32@SERVER)`, the number of examples that a
            model classifies correctly, for any data J. By default
            `build_federated_evaluation`, which needs a functional model.
        num_clients: the number of clients in the federation, K, to let the default
            judge count per client; by default it returns the total, as a secure sum if
            `sums` has a `scalar_sum_factory`.
        sums: normalization, clipping, secure sums, privacy. Candidates and
            normalization determine whether two stages are needed.
        **training: the clients' training, see `TrainingOptions`.

    Returns:
        An `OnlineAdjustedFedAvg`: `initialize()`, `next(state, clients, judges)`,
        `get_model_weights(state)`, `set_model_weights(state, weights)`.

    Raises:
        ValueError: as `build_prioritized_fed_avg`; the policy is unknown; `first` is
            not among the candidates; there are more than `search.MAX_CRITERIA` criteria
            to order; or options hide what clients send and the judge is the default
            one, which returns exact counts. (Its total count can be a secure sum, for
            `scalar_sum_factory` without `num_clients`.)

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
    parts = build_online_components(
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


def build_online_components(
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
) -> OnlineComponents:
    """Checks the arguments of a search, and builds its components."""
    resolved = criteria_lib.resolve(criteria)
    codes = [criterion.code for criterion in resolved]
    for name, value in {"candidates": candidates, "first": first}.items():
        if priority is not None and value is not None:
            raise ValueError(f"give either priority or {name}, not both")
    if candidates is not None:
        candidates = argument_checks.scores_over("candidates", candidates, codes)
        if not candidates:
            raise ValueError("candidates is empty: pass at least one score to search")
        first_score = candidates[0]
    else:
        first_score = argument_checks.resolve_score(priority, None, codes)
        names = [codes[column] for column in sorted(first_score.columns)]
        candidates = [prioritized(order, codes) for order in search.orderings(names)]
    if first is not None:
        (first_score,) = argument_checks.scores_over("first", [first], codes)
    index = _index_of(first_score, candidates)
    others = argument_checks.scores_over("others", others, codes)
    basis = Basis.of(codes, [*candidates, *others])
    mean = PrioritizedMeanFactory(codes, candidates[index], basis=basis, sums=sums)
    components = build_round_components(
        model,
        resolved,
        mean,
        training,
        client_optimizer=client_optimizer,
        server_optimizer=server_optimizer,
    )
    aggregation = mean.create_sums(components.update_type)
    initialize = _build_initialize(components, aggregation, index)
    state_type = initialize.type_signature.result.member
    train = _build_train(components, aggregation, state_type)
    return OnlineComponents(
        tuple(candidates), index, components, initialize, train, _build_step(components)
    )


def _index_of(score: Score, candidates: Sequence[Score]) -> int:
    """Returns the index of the candidate that equals a score, or has the same terms."""

    def terms(score: Score) -> Any:
        return score.products, score.minima, score.step_powers

    equal = [i for i, candidate in enumerate(candidates) if candidate == score]
    equivalent = [i for i, c in enumerate(candidates) if terms(c) == terms(score)]
    if not equal + equivalent:
        labels = "; ".join(candidate.label for candidate in candidates)
        raise ValueError(
            f"first is the score {score.label!r}, which is not among the candidates "
            f"{labels}"
        )
    return (equal + equivalent)[0]


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
    """Builds the computation that trains one cohort and returns its sums.

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
        message = tff.federated_broadcast(state.global_model_weights)
        work = components.client_work.next(state.client_work, message, clients)
        aggregate = sums.next(
            state.aggregator, work.result.update, work.result.update_weight
        )
        return collections.OrderedDict(
            client_work=work.state,
            aggregator=aggregate.state,
            sums=aggregate.result,
            metrics=federated_struct(
                client_work=work.measurements, aggregator=aggregate.measurements
            ),
        )

    return train


def _build_step(components: RoundComponents) -> Callable[..., collections.OrderedDict]:
    """Builds the server's step to one candidate's model, a `tf.function`.

    Its arguments are the candidate's coefficients `a_S`, float32 [B], the sums, the
    optimizer's state and the weights. Its result contains the `weights` and the
    `optimizer` state after the step, `update_rejected`, `score`, the sum of the
    clients' scores, and the `coefficients` by the names of their sums.
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
    """Builds the default judge, which counts correct examples per client or in total.

    It needs a functional model. Its counts are exact, so options that hide what clients
    send exclude it, unless `secure` makes its total a secure sum.
    """
    secure &= (
        list(sums.hiding_options) == ["scalar_sum_factory"] and num_clients is None
    )
    if sums.hiding_options and not secure:
        name = next(iter(sums.hiding_options))
        raise ValueError(
            f"{name} cannot be combined with the default judge, which returns exact "
            "counts of correct examples: pass another judge"
        )
    if not isinstance(model, tff.learning.models.FunctionalModel):
        raise ValueError(
            "the default judge needs a tff.learning.models.FunctionalModel: with a "
            "model_fn, pass a judge, a computation (<W@SERVER, data@CLIENTS> -> "
            "int32@SERVER) of the number of examples that a model classifies correctly"
        )
    return build_correct_counts(model, num_clients, secure=secure)
