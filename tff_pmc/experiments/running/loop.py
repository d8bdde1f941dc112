"""The round loop of one run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import leaf_data
from tff_pmc import criteria as criteria_lib
from tff_pmc.clients import packing
from tff_pmc.experiments.record import rows
from tff_pmc.experiments.record.checkpoints import Checkpoints
from tff_pmc.experiments.record.run_folder import RunFolder
from tff_pmc.experiments.running import round_record
from tff_pmc.experiments.running.answers import Answers
from tff_pmc.experiments.running.cohorts import cohort
from tff_pmc.experiments.running.tensorboard_events import TensorBoardEvents
from tff_pmc.reports import escape
from tff_pmc.settings import RunSettings, SettingError
from tff_pmc.systems.setup import Setup, check_data


class Shown(NamedTuple):
    """What is shown of a run while it runs.

    Attributes:
        title: what its progress bar is called; by default the label of the run.
        bar: whether there is a bar.
        tensorboard: whether its rounds are released to TensorBoard.
    """

    title: str = ""
    bar: bool = True
    tensorboard: bool = False


ALONE = Shown()
"""Of a run that is not one of several: a bar of its label."""


def run(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    folder_path: str,
    *,
    resume: bool = False,
    until: Callable[[np.ndarray], bool] = lambda measured: False,
    shown: Shown = ALONE,
) -> None:
    """Runs one run's training from the first round, or the next, to the last.

    Must be called with a TFF execution context installed (`runtime.Runtime`).

    Args:
        settings: of the run.
        data: the federation.
        folder_path: where the record goes; see `record.run_folder`.
        resume: go on with the run that the folder holds, if it holds one, to
            exactly what it would have been without the interruption. It may have
            fewer rounds than are asked for now.
        until: ends the run before its last round when it says so of the correct test
            examples of each client, [K], or the sums of their losses.
        shown: what is shown of it while it runs.

    Raises:
        SettingError: the settings do not fit the data.
        RecordError: the folder is in use, or it holds another run.
    """
    setup = prepare(settings, data)  # Refused before a folder is made.
    folder = RunFolder(folder_path, describe(settings, data), resume=resume)
    status = "interrupted"
    try:
        if not folder.finished:
            _train(setup, folder, until, shown)
        status = "finished"
    finally:
        folder.finish(status)


def prepare(settings: RunSettings, data: leaf_data.FederatedDataset) -> Setup:
    """Checks that the settings fit the data; returns what processes are made of.

    Raises:
        SettingError: the cohort is larger than the federation, a criterion needs
            what the examples do not have, the model takes other inputs, or no client
            has an example to be tested or judged on.
    """
    choose_cohort(settings, data, 1)
    check_data(settings, data)
    setup = Setup.of(settings, data)
    for what, examples in (("test", data.test_examples), ("validation", setup.judged)):
        if not examples.num_examples:
            raise SettingError(f"no client of {data.name} has {what} examples")
    return setup


def choose_cohort(
    settings: RunSettings, data: leaf_data.FederatedDataset, round_num: int
) -> list[int]:
    """The clients of a round, among those that have training examples.

    Raises:
        SettingError: more are asked for than there are.
    """
    able = np.flatnonzero(data.train_examples.sizes)
    size = settings.training.cohort_size(len(able), settings.dataset)
    chosen = cohort(settings.training.cohort_seed, round_num, len(able), size)
    return [int(able[place]) for place in chosen]


def pack_cohort(setup: Setup, chosen: Sequence[int]) -> list[Any]:
    """A cohort's packs; see `packing.pack`."""
    settings, data = setup.settings, setup.data
    table = data.client_table.values
    alone = settings.system.one_client_per_pack
    return packing.pack(
        data.train_examples,
        chosen,
        num_packs=len(chosen) if alone else settings.training.num_packs,
        attributes={
            name: table[name] for name in settings.aggregation.client_attributes
        },
        example_attributes=criteria_lib.example_attributes(setup.criteria),
    )


def describe(settings: RunSettings, data: leaf_data.FederatedDataset) -> dict[str, Any]:
    """`run.json` as it is before the run starts."""
    return {
        "label": settings.label,
        "system": settings.system.name,
        "note": settings.data.note,
        "settings": settings.as_record(),
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


def _train(
    setup: Setup, folder: RunFolder, until: Callable[[np.ndarray], bool], shown: Shown
) -> None:
    settings, data = setup.settings, setup.data
    process = settings.system.build(setup)
    answers = Answers(setup)
    state = process.initialize()
    checkpoints = Checkpoints(os.path.join(folder.path, "checkpoints"), state)
    last_state, done = checkpoints.load_last(
        folder.complete_rounds(), folder.recorded_rounds()
    )
    folder.go_on_after(done)
    if last_state is None:
        # So that a record which has rows has a state to go on from, too.
        checkpoints.save(state, 0)
    else:
        state = last_state
    rounds = settings.training.rounds
    events = TensorBoardEvents(folder.path) if shown.tensorboard else None
    progress = tqdm(
        range(done + 1, rounds + 1),
        desc=escape.printable(shown.title or settings.label),
        unit="round",
        initial=done,
        total=rounds,
        mininterval=1,
        disable=not shown.bar,
    )
    for round_num in progress:
        start = time.perf_counter()
        chosen = choose_cohort(settings, data, round_num)
        outcome = process.next(state, pack_cohort(setup, chosen))
        state = outcome.state
        trained = time.perf_counter()
        measured, predicted = answers.of(
            process.get_model_weights(state), outcome.counts
        )
        tested = time.perf_counter()
        answers.record(folder.path, round_num, predicted)
        at_server = answers.at_server(process.get_model_weights(state))
        traffic = {
            "train_bytes": len(chosen) * process.traffic.per_client_training,
            "test_bytes": len(outcome.tested)
            * process.num_judges
            * process.traffic.per_client_testing,
        }
        tables = round_record.tables_of(
            setup,
            round_num,
            chosen,
            outcome,
            measured,
            {**traffic, **at_server.columns},
        )
        tables["class_f1"] = rows.f1_rows(round_num, at_server.f1)
        row = folder.release(tables)
        train_seconds = outcome.train_seconds or trained - start
        seconds = {"train": train_seconds, "test": tested - start - train_seconds}
        rounded = {name: round(value, 3) for name, value in seconds.items()}
        folder.append("timing", [{"round": round_num, **rounded}])
        if events is not None:
            events.release(round_num, tables, process.get_model_weights(state))
        # Last: a checkpoint says that the rows up to its round are on disk.
        checkpoints.save(state, round_num)
        words = round_record.words_of(row, sum(seconds.values()), answers.measure)
        progress.set_postfix_str(escape.printable(words))
        if until(measured):
            break
