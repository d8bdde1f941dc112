"""The round loop of one run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple, Optional

import numpy as np

import leaf_data
from tff_pmc.experiments.running import callbacks
from tff_pmc.experiments.running.cohorts import choose_cohort, pack_cohort
from tff_pmc.experiments.running.evaluator import TestEvaluator
from tff_pmc.record import rows
from tff_pmc.record.checkpoints import Checkpoints
from tff_pmc.record.run_folder import RunFolder
from tff_pmc.settings import RunSettings, SettingError
from tff_pmc.systems.setup import Setup, check_data


class Progress(NamedTuple):
    """How the progress of a run is shown.

    Attributes:
        title: what its progress bar is called; by default the label of the run.
        bar: whether there is a bar.
        tensorboard: whether its rounds are released to TensorBoard.
    """

    title: str = ""
    bar: bool = True
    tensorboard: bool = False


ALONE = Progress()
"""Of a run that is not one of several: a bar of its label."""


def run(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    folder_path: str,
    *,
    resume: bool = False,
    until: Optional[Callable[[np.ndarray], bool]] = None,
    progress: Progress = ALONE,
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
        progress: how its progress is shown.

    Raises:
        SettingError: the settings do not fit the data.
        RecordError: the folder is in use, or it holds another run.
    """
    setup = prepare(settings, data)  # Refused before a folder is made.
    folder = RunFolder(folder_path, describe(settings, data), resume=resume)
    status = "interrupted"
    try:
        if not folder.finished:
            _train(setup, folder, until, progress)
        status = "finished"
    finally:
        folder.finish(status)


def prepare(settings: RunSettings, data: leaf_data.FederatedDataset) -> Setup:
    """Checks that the settings fit the data; returns what processes are made of."""
    choose_cohort(settings, data, 1)
    check_data(settings, data)
    setup = Setup.of(settings, data)
    for what, examples in (("test", data.test_examples), ("validation", setup.judged)):
        if not examples.num_examples:
            raise SettingError(f"no client of {data.name} has {what} examples")
    return setup


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
    setup: Setup,
    folder: RunFolder,
    until: Optional[Callable[[np.ndarray], bool]],
    progress: Progress,
) -> None:
    settings, data = setup.settings, setup.data
    process = settings.system.build(setup)
    evaluator = TestEvaluator(setup)
    state = process.initialize()
    checkpoints = Checkpoints(os.path.join(folder.path, "checkpoints"), state)
    last = checkpoints.load_last(folder.check, folder.has_rows)
    folder.go_on_after(last.round_num, last.lengths)
    if last.state is None:
        # So that a record which has rows has a state to go on from, too.
        checkpoints.save(state, 0, {})
    else:
        state = last.state
    rounds = settings.training.rounds
    listeners: list[callbacks.Callback] = [
        callbacks.Predictions(folder.path, data.test_examples),
        callbacks.Timing(folder),
    ]
    if until is not None:
        listeners.append(callbacks.Until(until))
    if progress.tensorboard:
        from tff_pmc.experiments.running.tensorboard_events import TensorBoardEvents

        listeners.append(TensorBoardEvents(folder.path))
    with ExitStack() as shown:
        if progress.bar:
            title = progress.title or settings.label
            measure = evaluator.measure
            bar = callbacks.ProgressBar(title, measure, last.round_num, rounds)
            shown.callback(bar.close)
            listeners.append(bar)
        for round_num in range(last.round_num + 1, rounds + 1):
            state, done = _round(setup, process, evaluator, state, round_num)
            folder.release(done.tables)
            # Each of them is told of the round that one of them ends the run after.
            ends = [listener.after_round(done) for listener in listeners]
            # Last: a checkpoint says that the rows up to its round are on disk.
            checkpoints.save(state, round_num, folder.lengths())
            if any(ends):
                break


def _round(
    setup: Setup, process: Any, evaluator: TestEvaluator, state: Any, round_num: int
) -> tuple[Any, callbacks.RoundDone]:
    """Trains and tests one round; returns the new state, and what was done."""
    start = time.perf_counter()
    chosen = choose_cohort(setup.settings, setup.data, round_num)
    outcome = process.next(state, pack_cohort(setup, chosen))
    weights = process.get_model_weights(outcome.state)
    train_seconds = outcome.train_seconds or time.perf_counter() - start
    measured, predicted = evaluator.of(weights, outcome.counts)
    tested = time.perf_counter()
    at_server = evaluator.at_server(weights)
    columns = {
        "train_bytes": len(chosen) * process.traffic.per_client_training,
        "test_bytes": len(outcome.tested)
        * process.num_judges
        * process.traffic.per_client_testing,
        **at_server.columns,
    }
    tables = rows.tables_of(setup, round_num, chosen, outcome, measured, columns)
    tables["class_f1"] = rows.f1_rows(round_num, at_server.f1)
    seconds = {"train": train_seconds, "test": tested - start - train_seconds}
    return outcome.state, callbacks.RoundDone(
        round_num, tables, weights, measured, predicted, seconds
    )
