"""One round of a run: with a fixed score, or with one adjusted online."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow_federated as tff

import leaf_data
from tff_pmc import processes
from tff_pmc.experiments import builders
from tff_pmc.experiments.config import RunConfig
from tff_pmc.processes.communication import Traffic, traffic


class Round(NamedTuple):
    """What a round gave.

    Attributes:
        state: of the process, for the next round and for the checkpoint.
        metrics: `<client_work, aggregator, finalizer>`.
        in_force: the settings with the ordering, or lambda, whose model was kept.
        trials: (name, correct, judged examples) of each candidate tested, in order;
            empty where nothing is tested.
        kept: the place in `trials` of the one kept.
        train_seconds: of the training alone; None where nothing else was done.
        counts: correct examples of each client, where the judge counted them on the
            clients' test sets.
    """

    state: Any
    metrics: Any
    in_force: RunConfig
    trials: list[tuple[str, int, int]]
    kept: int
    counts: Optional[np.ndarray] = None
    train_seconds: Optional[float] = None


class FixedScore:
    """Rounds of a process that tests nothing."""

    num_judges = 0

    def __init__(
        self, config: RunConfig, process: tff.learning.templates.LearningProcess
    ) -> None:
        """Takes the process that the settings describe."""
        self._config = config
        self.process = process
        self.initialize = process.initialize
        self.get_model_weights = process.get_model_weights
        signature = process.next.type_signature
        state, metrics = signature.parameter[0], signature.result.metrics
        self.traffic = _traffic(config, state.member, metrics.member)

    def next(self, state: Any, shards: Any) -> Round:
        """Runs one round."""
        output = self.process.next(state, shards)
        return Round(output.state, output.metrics, self._config, [], 0)


class AdjustedScore:
    """Rounds of `build_online_adjusted_fed_avg`."""

    def __init__(
        self,
        settings: Sequence[RunConfig],
        online: processes.OnlineAdjustedFedAvg,
        judged: leaf_data.Examples,
    ) -> None:
        """Takes the process.

        Args:
            settings: those of each candidate, in the order of `online.candidates`.
            online: the process.
            judged: the examples on which candidates are judged.
        """
        self._settings, self._online = settings, online
        config = settings[0]
        self._at_server = config.judge_on == "server"
        self._counts = config.judge_on == "test"
        self._shards = []
        if not self._at_server:
            shards = config.num_shards
            self._shards = processes.evaluation_shards(judged, num_shards=shards)
        self._num_examples = judged.num_examples
        self.initialize = online.initialize
        self.get_model_weights = online.get_model_weights
        signature = online.parts.train.type_signature
        state, metrics = signature.parameter[0], signature.result.metrics
        self.traffic = _traffic(config, state.member, metrics.member)
        self.num_judges = 0 if self._at_server else int((judged.sizes > 0).sum())

    def next(self, state: Any, shards: Any) -> Round:
        """Runs one round."""
        output = self._online.next(state, shards, self._shards)
        tried = [trial.candidate for trial in output.trials]
        names = [self._settings[c].resolve_score().label for c in tried]
        kept = int(output.state.candidate)
        return Round(
            output.state,
            output.metrics,
            self._settings[kept],
            [
                (name, trial.correct, self._num_examples)
                for name, trial in zip(names, output.trials)
            ],
            tried.index(kept),
            output.counts if self._counts else None,
            output.train_seconds,
        )


def start(
    config: RunConfig, data: leaf_data.FederatedDataset, judged: leaf_data.Examples
) -> Union[FixedScore, AdjustedScore]:
    """Builds the rounds that the settings describe.

    Args:
        config: the settings.
        data: the federation.
        judged: the examples on which candidates are judged, where any are.
    """
    if config.adjustment == "fixed":
        return FixedScore(config, builders.build_fixed(config, data))
    online, settings = builders.build_adjusted(config, data)
    return AdjustedScore(settings, online, judged)


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
