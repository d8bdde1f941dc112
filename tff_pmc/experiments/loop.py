"""The round loop of one run."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow_federated as tff
from tqdm import tqdm

import leaf_data
from tff_pmc import models, processes, scores
from tff_pmc.clients import packing
from tff_pmc.experiments import rows
from tff_pmc.experiments.checkpoints import Checkpoints
from tff_pmc.experiments.cohorts import cohort
from tff_pmc.experiments.config import RunConfig
from tff_pmc.experiments.run_folder import RunFolder
from tff_pmc.processes.evaluation import evaluation_shards


def build_process(
    config: RunConfig, num_clients: int, basis: scores.Basis | None = None
) -> tff.learning.templates.LearningProcess:
    """The learning process a run's settings describe.

    Args:
        config: the settings.
        num_clients: clients in the federation, for the per-client criteria.
        basis: the sums to make; by default those the ordering needs.
    """
    return processes.build_prioritized_fed_avg(
        build_model(config),
        priority=config.priority,
        criteria=config.resolve_criteria(),
        basis=basis,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(config.learning_rate),
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


def build_model(config: RunConfig) -> tff.learning.models.FunctionalModel:
    """The model a run's settings describe."""
    return models.mnist_cnn(
        conv_activation=config.conv_activation,
        initializer=config.initializer,
        seed=config.model_seed,
    )


def pack_cohort(
    config: RunConfig, data: leaf_data.FederatedDataset, chosen: Sequence[int]
) -> list[Any]:
    """A cohort's shards of packed clients; see `packing.pack`."""
    return packing.pack(
        data.train_examples,
        chosen,
        num_shards=config.num_shards,
        attributes=data.client_table.values,
    )


def run(
    config: RunConfig,
    data: leaf_data.FederatedDataset,
    folder_path: str,
    *,
    resume: bool = False,
) -> None:
    """Runs one ordering's training from the first round, or the next, to the last.

    Must be called with a TFF execution context installed (`runtime.Runtime`).

    Args:
        config: the settings.
        data: the federation.
        folder_path: where the record goes; see `run_folder`.
        resume: go on with the run that the folder holds, if it holds one, to
            exactly what it would have been without the interruption.

    Raises:
        ConfigError: the settings do not fit the data, the folder is in use, or
            it holds another run.
    """
    cohort_size = config.cohort_size(len(data.client_ids))
    folder = RunFolder(folder_path, describe(config, data), resume=resume)
    status = "interrupted"
    try:
        if folder.status != "finished":
            _train(config, data, folder, cohort_size)
        status = "finished"
    finally:
        folder.finish(status)


def _train(
    config: RunConfig,
    data: leaf_data.FederatedDataset,
    folder: RunFolder,
    cohort_size: int,
) -> None:
    num_clients = len(data.client_ids)
    process = build_process(config, num_clients)
    evaluate = processes.build_federated_evaluation(build_model(config), num_clients)
    test = evaluation_shards(data.test_examples, num_shards=config.num_shards)
    sizes = np.asarray(data.test_examples.sizes, np.int64)
    checkpoints = Checkpoints(os.path.join(folder.path, "checkpoints"))
    state = process.initialize()
    last_state, done = checkpoints.load_last(state, folder.complete_rounds())
    state = state if last_state is None else last_state
    folder.cut_after(done)
    progress = tqdm(
        range(done + 1, config.rounds + 1),
        desc=config.label,
        unit="round",
        initial=done,
        total=config.rounds,
        mininterval=1,
    )
    for round_num in progress:
        chosen = cohort(config.cohort_seed, round_num, num_clients, cohort_size)
        start = time.perf_counter()
        shards = pack_cohort(config, data, chosen)
        state, metrics = process.next(state, shards)
        trained = time.perf_counter()
        correct = evaluate(process.get_model_weights(state), test)
        tested = time.perf_counter()
        train = metrics["client_work"]["train"]
        raw = np.asarray(train["criteria_by_client"], float)[chosen]
        excluded = np.asarray(train["excluded_by_client"])[chosen] > 0
        correct = np.asarray(correct, np.int64)
        row = rows.round_row(round_num, correct, sizes, metrics)
        names = data.client_ids
        folder.release_round(row)
        folder.append("clients", rows.client_rows(round_num, names, correct, sizes))
        folder.append(
            "cohort",
            rows.cohort_rows(round_num, config, names, chosen, raw, excluded),
        )
        counted = rows.without(raw, excluded)
        folder.append("weights", rows.weight_rows(round_num, config, counted))
        folder.append(
            "groups",
            rows.group_rows(round_num, data.client_table.values, correct, sizes),
        )
        seconds = {"train": trained - start, "test": tested - trained}
        rounded = {name: round(value, 3) for name, value in seconds.items()}
        folder.append("timing", [{"round": round_num, **rounded}])
        # Last: a checkpoint says that the rows up to its round are on disk.
        checkpoints.save(state, round_num)
        progress.set_postfix_str(_postfix(row, sum(seconds.values())))


def describe(config: RunConfig, data: leaf_data.FederatedDataset) -> dict[str, Any]:
    """What `run.json` says of a run before it starts."""
    return {
        "settings": dataclasses.asdict(config),
        "data": {
            "name": data.name,
            "clients": len(data.client_ids),
            "origin": {
                "source": data.origin.source,
                "sha256": dict(data.origin.files),
            },
            "options": dict(data.options),
            "client_table": data.client_table.origin,
        },
    }


def _postfix(row: dict[str, Any], seconds: float) -> str:
    percentiles = "/".join(f"{row[f'p{p}']:.2f}" for p in rows.PERCENTILES)
    return f"accuracy {row['accuracy']:.3f}, p10/50/90 {percentiles}, {seconds:.1f} s"
