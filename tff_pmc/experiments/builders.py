"""The models and processes that a run's settings describe."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

import numpy as np
import tensorflow_federated as tff

import leaf_data
from tff_pmc import models, processes, scores
from tff_pmc.aggregation.baselines import BASELINES
from tff_pmc.experiments.choices import DROPOUT_MODELS
from tff_pmc.experiments.config import RunConfig
from tff_pmc.processes.baseline_fed_avg import build_baseline_fed_avg
from tff_pmc.server_criteria import server_accuracy


def build_model(config: RunConfig) -> tff.learning.models.FunctionalModel:
    """The model."""
    own: dict[str, Any] = {}
    if config.model == "celeba_reference_cnn":
        own["batch_norm"] = config.batch_norm
    if config.model in DROPOUT_MODELS:
        own["dropout"] = config.dropout
    return models.MODELS[config.model](
        conv_activation=config.conv_activation,
        initializer=config.initializer,
        seed=config.model_seed,
        **own,
    )


def client_optimizer(config: RunConfig) -> tff.learning.optimizers.Optimizer:
    """The clients' optimizer."""
    optimizers = tff.learning.optimizers
    builders = {"sgd": optimizers.build_sgdm, "adam": optimizers.build_adam}
    return builders[config.client_optimizer](config.learning_rate)


def build_fixed(
    config: RunConfig, data: leaf_data.FederatedDataset
) -> tff.learning.templates.LearningProcess:
    """The learning process of a run that tests nothing."""
    if config.aggregator != "criteria":
        return _build_baseline(config, data)
    if config.measures_at_server or config.keep_own_model:
        return _build_adafed(config, data)
    return build_process(config, len(data.client_ids))


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
        criteria=config.resolve_criteria(),
        **_options(config, num_clients),
    )


def build_adjusted(
    config: RunConfig, data: leaf_data.FederatedDataset
) -> tuple[processes.OnlineAdjustedFedAvg, list[RunConfig]]:
    """Online adjustment, and the settings that each of its candidates stands for."""
    model, criteria = build_model(config), list(config.resolve_criteria())
    given: dict[str, Any] = {"priority": config.priority}
    if config.measures_at_server:
        x, y = server_examples(data)
        if "ACC" in config.criteria:
            accuracy = server_accuracy(model, x, y, power=config.accuracy_power)
            criteria[config.criteria.index("ACC")] = accuracy
        if config.judge_on == "server":
            judge = processes.build_server_judge(model, x, y, data.num_classes)
            given["judge"] = judge
    if config.score == "dual":
        given["priority"] = None
        given["candidates"] = scores.dual_grid(
            config.lambda_steps, criteria=config.criteria
        )
    online = processes.build_online_adjusted_fed_avg(
        model,
        policy=config.adjustment,
        criteria=criteria,
        **given,
        **_options(config, len(data.client_ids)),
    )
    return online, [_settings_of(config, score) for score in online.candidates]


def server_examples(data: leaf_data.FederatedDataset) -> tuple[Any, Any]:
    """The server's own inputs and labels."""
    assert data.server_examples is not None  # `loop.check` has refused it.
    return np.asarray(data.server_examples.x), np.asarray(data.server_examples.y)


def _settings_of(config: RunConfig, score: scores.Score) -> RunConfig:
    if config.score == "dual":
        quality = (config.criteria.index("ACC"),)
        return dataclasses.replace(config, dual_lambda=score.terms[quality])
    order = tuple(config.criteria[column] for column in score.columns)
    return dataclasses.replace(config, priority=order)


def _build_adafed(
    config: RunConfig, data: leaf_data.FederatedDataset
) -> tff.learning.templates.LearningProcess:
    adversary = data.client_table.values.get("adversary", ())
    own = np.flatnonzero(adversary) if config.keep_own_model else ()
    return processes.build_adafed(
        build_model(config),
        server_examples=server_examples(data),
        num_classes=data.num_classes,
        power=config.accuracy_power,
        criteria=config.resolve_criteria()[1:],
        score=config.resolve_score(),
        adapt_loss=config.adapt_loss,
        keep_own_model=[int(client) for client in own],
        **_options(config, len(data.client_ids)),
    )


def _build_baseline(
    config: RunConfig, data: leaf_data.FederatedDataset
) -> tff.learning.templates.LearningProcess:
    own: dict[str, dict[str, Any]] = {
        "momentum": {"beta": config.beta, "eta": config.eta},
        "personalized": {"alpha": config.alpha, "form": config.personalized_form},
        "laplace": {"epsilon": config.epsilon, "seed": config.batch_seed},
        "quantized": {"levels": config.quantization_levels},
    }
    options = _options(config, len(data.client_ids))
    for name in ("normalization", "criteria_ranges", "client_attributes"):
        options.pop(name)
    return build_baseline_fed_avg(
        build_model(config),
        BASELINES[config.aggregator](**own.get(config.aggregator, {})),
        criteria=config.resolve_criteria(),
        **options,
    )


def _options(config: RunConfig, num_clients: int) -> dict[str, Any]:
    """What all processes are built with."""
    return dict(
        client_optimizer_fn=client_optimizer(config),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(
            config.server_learning_rate
        ),
        local_epochs=config.local_epochs,
        batch_size=config.batch_size,
        seed=config.batch_seed,
        normalization=config.normalization,
        criteria_ranges=dict(zip(config.criteria, config.criteria_ranges)),
        client_attributes=config.client_attributes,
        clip_norm=config.clip_norm or None,
        report_num_clients=num_clients,
    )
