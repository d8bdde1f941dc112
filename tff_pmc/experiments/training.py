"""One round of a run: with a fixed ordering, or with one adjusted online."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow_federated as tff

import leaf_data
from tff_pmc import models, processes, scores
from tff_pmc.experiments.config import RunConfig
from tff_pmc.processes.communication import Traffic, traffic


class Round(NamedTuple):
    """What a round gave.

    Attributes:
        state: of the process, for the next round and for the checkpoint.
        metrics: `<client_work, aggregator, finalizer>`.
        ordering: the one whose model was kept.
        trials: (ordering, correct, judged examples) of each candidate tested, in
            order; empty with a fixed ordering, which needs no testing.
        kept: the place in `trials` of the one kept.
        train_seconds: of the training alone; None where nothing else was done.
        counts: correct examples of each client, where the judge counted them on the
            clients' test sets.
    """

    state: Any
    metrics: Any
    ordering: tuple[str, ...]
    trials: list[tuple[tuple[str, ...], int, int]]
    kept: int
    counts: Optional[np.ndarray] = None
    train_seconds: Optional[float] = None


class FixedOrdering:
    """Rounds of `build_process`: one ordering, or another score."""

    def __init__(self, config: RunConfig, num_clients: int) -> None:
        """Builds the process."""
        self._ordering = config.priority
        self.process = build_process(config, num_clients)
        self.initialize = self.process.initialize
        self.get_model_weights = self.process.get_model_weights
        signature = self.process.next.type_signature
        state, metrics = signature.parameter[0], signature.result.metrics
        self.traffic = _traffic(config, state.member, metrics.member)
        self.num_judges = 0

    def next(self, state: Any, shards: Any) -> Round:
        """Runs one round."""
        output = self.process.next(state, shards)
        return Round(output.state, output.metrics, self._ordering, [], 0)


class AdjustedOrdering:
    """Rounds of `build_online_adjusted_fed_avg`."""

    def __init__(
        self,
        config: RunConfig,
        num_clients: int,
        judged: leaf_data.Examples,
    ) -> None:
        """Builds the process.

        Args:
            config: the settings.
            num_clients: clients in the federation.
            judged: the examples of all clients on which candidates are judged.
        """
        self._config = config
        self._online = processes.build_online_adjusted_fed_avg(
            build_model(config),
            priority=config.priority,
            policy=config.adjustment,
            **_options(config, num_clients),
        )
        self._shards = processes.evaluation_shards(judged, num_shards=config.num_shards)
        self._num_examples = judged.num_examples
        self.initialize = self._online.initialize
        self.get_model_weights = self._online.get_model_weights
        signature = self._online.parts.train.type_signature
        state, metrics = signature.parameter[0], signature.result.metrics
        self.traffic = _traffic(config, state.member, metrics.member)
        self.num_judges = int((judged.sizes > 0).sum())

    def next(self, state: Any, shards: Any) -> Round:
        """Runs one round."""
        output = self._online.next(state, shards, self._shards)
        tried = [trial.candidate for trial in output.trials]
        kept = int(output.state.candidate)
        return Round(
            output.state,
            output.metrics,
            self._ordering(kept),
            [
                (self._ordering(trial.candidate), trial.correct, self._num_examples)
                for trial in output.trials
            ],
            tried.index(kept),
            output.counts if self._config.judge_on == "test" else None,
            output.train_seconds,
        )

    def _ordering(self, candidate: int) -> tuple[str, ...]:
        columns = self._online.candidates[candidate].columns
        return tuple(self._config.criteria[column] for column in columns)


def build_process(
    config: RunConfig, num_clients: int, basis: Optional[scores.Basis] = None
) -> tff.learning.templates.LearningProcess:
    """The learning process of a run whose score is fixed.

    Where a client cannot score itself before the totals, it has two stages.

    Args:
        config: the settings.
        num_clients: clients in the federation, for the per-client criteria.
        basis: the sums to make; by default those the score needs.
    """
    build = processes.build_prioritized_fed_avg
    if config.two_stage:
        build = processes.build_two_stage_fed_avg
    return build(
        build_model(config),
        score=config.resolve_score(),
        basis=basis,
        **_options(config, num_clients),
    )


def build_model(config: RunConfig) -> tff.learning.models.FunctionalModel:
    """The model a run's settings describe."""
    own = {}
    if config.model == "celeba_reference_cnn":
        own = {"batch_norm": config.batch_norm, "dropout": config.dropout}
    return models.MODELS[config.model](
        conv_activation=config.conv_activation,
        initializer=config.initializer,
        seed=config.model_seed,
        **own,
    )


def _options(config: RunConfig, num_clients: int) -> dict[str, Any]:
    """What both processes are built with."""
    sgd = tff.learning.optimizers.build_sgdm
    return dict(
        criteria=config.resolve_criteria(),
        client_optimizer_fn=sgd(config.learning_rate),
        server_optimizer_fn=sgd(config.server_learning_rate),
        local_epochs=config.local_epochs,
        batch_size=config.batch_size,
        seed=config.batch_seed,
        normalization=config.normalization,
        criteria_ranges=dict(zip(config.criteria, config.criteria_ranges)),
        client_attributes=config.client_attributes,
        clip_norm=config.clip_norm or None,
        report_num_clients=num_clients,
    )


def _traffic(
    config: RunConfig, state_type: tff.Type, metrics_type: tff.Type
) -> Traffic:
    return traffic(
        state_type.global_model_weights,
        state_type.client_work,
        metrics_type,
        normalization=config.normalization,
        two_stage=config.two_stage,
    )
