"""The round loop of one run."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

import leaf_data
from tff_pmc import criteria, models
from tff_pmc.clients import packing
from tff_pmc.experiments import rows, training
from tff_pmc.experiments.checkpoints import Checkpoints
from tff_pmc.experiments.cohorts import cohort
from tff_pmc.experiments.config import ConfigError, RunConfig
from tff_pmc.experiments.run_folder import RunFolder
from tff_pmc.experiments.test_sets import TestSets


def run(
    config: RunConfig,
    data: leaf_data.FederatedDataset,
    folder_path: str,
    *,
    resume: bool = False,
    until: Callable[[np.ndarray], bool] = lambda correct: False,
) -> None:
    """Runs one ordering's training from the first round, or the next, to the last.

    Must be called with a TFF execution context installed (`runtime.Runtime`).

    Args:
        config: the settings.
        data: the federation.
        folder_path: where the record goes; see `run_folder`.
        resume: go on with the run that the folder holds, if it holds one, to
            exactly what it would have been without the interruption.
        until: ends the run before its last round when it says so of the correct test
            examples of each client, [K].

    Raises:
        ConfigError: the settings do not fit the data, the folder is in use, or
            it holds another run.
    """
    check(config, data)  # Refused before a folder is made.
    folder = RunFolder(folder_path, describe(config, data), resume=resume)
    status = "interrupted"
    try:
        if folder.status != "finished":
            _train(config, data, folder, until)
        status = "finished"
    finally:
        folder.finish(status)


def check(config: RunConfig, data: leaf_data.FederatedDataset) -> None:
    """Refuses settings that do not fit the data.

    Raises:
        ConfigError: the cohort is larger than the federation, a criterion needs
            what the examples do not have, the model takes other images, or no client
            has an example to be tested or judged on.
    """
    choose_cohort(config, data, 1)
    for criterion in config.resolve_criteria():
        for name in criterion.example_attributes:
            if name not in data.train_examples.attributes:
                raise ConfigError(
                    f"--criteria: {criterion.code} needs to know of each example "
                    f"whether it is {name}, which {data.name} does not say"
                )
    if config.measures_at_server and data.server_examples is None:
        raise ConfigError(
            f"--experiment={config.experiment} measures models on examples of the "
            f"server's own, which {data.name} does not have"
        )
    shape = models.ELEMENT_SHAPES[config.model]
    if data.element_shape != shape:
        raise ConfigError(
            f"--model={config.model} takes images of {shape}, and those of {data.name} "
            f"are {data.element_shape}"
        )
    _, judged_on = judged(config, data)
    for what, examples in (("test", data.test_examples), ("validation", judged_on)):
        if not examples.num_examples:
            raise ConfigError(f"no client of {data.name} has {what} examples")


def choose_cohort(
    config: RunConfig, data: leaf_data.FederatedDataset, round_num: int
) -> list[int]:
    """The clients of a round, among those that have training examples.

    Raises:
        ConfigError: more are asked for than there are.
    """
    able = np.flatnonzero(data.train_examples.sizes)
    size = config.cohort_size(len(able))
    chosen = cohort(config.cohort_seed, round_num, len(able), size)
    return [int(able[place]) for place in chosen]


def pack_cohort(
    config: RunConfig, data: leaf_data.FederatedDataset, chosen: Sequence[int]
) -> list[Any]:
    """A cohort's shards of packed clients; see `packing.pack`."""
    table = data.client_table.values
    baseline = config.aggregator != "criteria"  # Which needs each client by itself.
    return packing.pack(
        data.train_examples,
        chosen,
        num_shards=len(chosen) if baseline else config.num_shards,
        attributes={name: table[name] for name in config.client_attributes},
        example_attributes=criteria.example_attributes(config.resolve_criteria()),
    )


def _train(
    config: RunConfig,
    data: leaf_data.FederatedDataset,
    folder: RunFolder,
    until: Callable[[np.ndarray], bool],
) -> None:
    data, judged_on = judged(config, data)
    process = training.start(config, data, judged_on)
    test_sets = TestSets(config, data)
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
        start = time.perf_counter()
        chosen = choose_cohort(config, data, round_num)
        outcome = process.next(state, pack_cohort(config, data, chosen))
        state = outcome.state
        trained = time.perf_counter()
        correct, predicted = test_sets.answer(
            process.get_model_weights(state), outcome.counts
        )
        tested = time.perf_counter()
        test_sets.record(folder.path, round_num, predicted)
        validated = test_sets.validate(process.get_model_weights(state))
        judgements = len(outcome.trials) * process.num_judges
        traffic = {
            "train_bytes": len(chosen) * process.traffic.per_client_training,
            "test_bytes": judgements * process.traffic.per_client_testing,
        }
        row = _record(
            *(folder, data, round_num, chosen, outcome, correct),
            {**traffic, **validated},
        )
        train_seconds = outcome.train_seconds or trained - start
        seconds = {"train": train_seconds, "test": tested - start - train_seconds}
        rounded = {name: round(value, 3) for name, value in seconds.items()}
        folder.append("timing", [{"round": round_num, **rounded}])
        # Last: a checkpoint says that the rows up to its round are on disk.
        checkpoints.save(state, round_num)
        progress.set_postfix_str(_postfix(row, sum(seconds.values())))
        if until(correct):
            break


def _record(
    folder: RunFolder,
    data: leaf_data.FederatedDataset,
    round_num: int,
    chosen: Sequence[int],
    outcome: training.Round,
    correct: np.ndarray,
    more: dict[str, int],
) -> dict[str, Any]:
    """Writes a round's rows; returns that of `rounds.csv`."""
    names, sizes = data.client_ids, np.asarray(data.test_examples.sizes, np.int64)
    train = outcome.metrics["client_work"]["train"]
    raw = np.asarray(train["criteria_by_client"], float)[chosen]
    excluded = np.asarray(train["excluded_by_client"])[chosen] > 0
    in_force = outcome.in_force
    row = {
        **rows.round_row(round_num, correct, sizes, outcome.metrics),
        "ordering": in_force.resolve_score().label,
        "testing_rounds": len(outcome.trials),
        **more,
    }
    folder.release_round(row)
    folder.append("clients", rows.client_rows(round_num, names, correct, sizes))
    if "f1" in outcome.metrics.get("distributor", ()):
        f1 = np.asarray(outcome.metrics["distributor"]["f1"], float)
        folder.append("class_f1", rows.f1_rows(round_num, f1))
    folder.append(
        "cohort", rows.cohort_rows(round_num, in_force, names, chosen, raw, excluded)
    )
    counted = rows.without(raw, excluded)
    folder.append("weights", rows.weight_rows(round_num, in_force, counted))
    folder.append(
        "candidates", rows.candidate_rows(round_num, outcome.trials, outcome.kept)
    )
    folder.append(
        "groups",
        rows.group_rows(round_num, data.client_table.values, correct, sizes),
    )
    return row


def judged(
    config: RunConfig, data: leaf_data.FederatedDataset
) -> tuple[leaf_data.FederatedDataset, leaf_data.Examples]:
    """The federation to train on, and the examples candidates are judged on.

    With a fixed ordering nothing is judged, but what is held out is not trained on
    there either: the runs of one command stay comparable.
    """
    if config.judge_on == "test":
        return data, data.test_examples
    if config.judge_on == "server":
        return data, data.server_examples
    return data.hold_out(config.validation_fraction, config.partition_seed)


def describe(config: RunConfig, data: leaf_data.FederatedDataset) -> dict[str, Any]:
    """What `run.json` says of a run before it starts."""
    return {
        "label": config.label,
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
    text = f"accuracy {row['accuracy']:.3f}, p10/50/90 {percentiles}, {seconds:.1f} s"
    if row["testing_rounds"]:
        text += f", {row['ordering']} of {row['testing_rounds']} tested"
    return text
