"""The round loop of one run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Optional

import numpy as np

import leaf_data
from tff_pmc.experiments.running import callbacks
from tff_pmc.experiments.running.evaluator import TestEvaluator
from tff_pmc.record.checkpoints import Checkpoints
from tff_pmc.record.round_record import RoundRecord
from tff_pmc.record.run_folder import RunFolder
from tff_pmc.record.tables import ROUNDS
from tff_pmc.settings import RunSettings
from tff_pmc.systems.setup import Setup


def run(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    folder_path: str,
    *,
    resume: bool = False,
    title: Optional[str] = "",
    tensorboard: bool = False,
    listeners: Sequence[callbacks.Listener] = (),
) -> None:
    """Runs one run's training from the first round, or the next, to the last.

    Must be called with a TFF execution context installed (`runtime.Runtime`). With
    `resume` it goes on with the run that the folder holds, if it holds one, to exactly
    what it would have been without the interruption; that may have fewer rounds than
    are asked for now. `title` is what the progress bar is called, by default the label;
    None for no bar.
    """
    setup = Setup.of(settings, data)  # Refused before a folder is made.
    folder = RunFolder(folder_path, describe(settings, data), resume=resume)
    if folder.finished:
        folder.finish("finished")
        return
    status = "interrupted"
    with ExitStack() as at_the_end:
        at_the_end.callback(lambda: folder.finish(status))
        process = settings.system.build(setup)
        evaluator = TestEvaluator(setup)
        state = process.initialize()
        checkpoints = Checkpoints(folder.path, state)
        last = checkpoints.load_last(folder.lengths())
        folder.resume_after(last.round_num, last.lengths)
        if last.round_num:
            state = last.state
        else:
            # So that a record which has rows has a state to go on from, too. One that
            # is there may be another run's: nothing else tells of which it is.
            checkpoints.save(state, 0, {})
        rounds = settings.training.rounds
        told = [callbacks.predictions(folder.path, evaluator.examples), *listeners]
        before: list[dict[Any, Any]] = []
        if last.round_num:
            before = ROUNDS.read(folder.path).to_dict("records")
        most_lost = settings.training.most_lost_rounds
        lost = callbacks.LostRounds(settings.label, most_lost, before)
        lost.check()
        if tensorboard:
            from tff_pmc.experiments.running import tensorboard_events

            told.append(tensorboard_events.TensorBoardEvents(folder.path).after_round)
        if title is not None:
            bar = callbacks.ProgressBar(
                title or settings.label, evaluator.metric, last.round_num, rounds
            )
            at_the_end.callback(bar.close)
            told.append(bar.after_round)
        for round_num in range(last.round_num + 1, rounds + 1):
            state, done = _round(setup, process, evaluator, state, round_num)
            folder.write(done.record)
            # Each of them is told of the round that one of them ends the run after.
            ends = [after_round(done) for after_round in told]
            # Last: a checkpoint says that the rows up to its round are on disk.
            checkpoints.save(state, round_num, folder.lengths())
            lost.after_round(done)
            if any(ends):
                break
        lost.check_all()
        status = "finished"


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


def _round(
    setup: Setup, process: Any, evaluator: TestEvaluator, state: Any, round_num: int
) -> tuple[Any, callbacks.RoundDone]:
    """Trains and tests one round; returns the new state, and what was done."""
    start = time.perf_counter()
    chosen, num_asked = setup.cohorts.choose(
        round_num, lambda: process.get_model_weights(state)
    )
    outcome = process.next(state, setup.pack(chosen))
    weights = process.get_model_weights(outcome.state)
    train_seconds = outcome.train_seconds or time.perf_counter() - start
    measured = predicted = None
    if setup.settings.record.tests(round_num):
        measured, predicted = evaluator.of(weights, outcome.counts)
    seconds = {
        "train": train_seconds,
        "test": time.perf_counter() - start - train_seconds,
    }
    f1, validation_correct = evaluator.at_server(weights)
    num_tests = len(outcome.tested) * process.num_judges + num_asked
    record = RoundRecord(
        round_num=round_num,
        settings=setup.settings,
        outcome=outcome,
        cohort=[setup.data.client_ids[k] for k in chosen],
        clients=evaluator.examples.client_ids,
        sizes=np.asarray(evaluator.examples.sizes, np.int64),
        metric=evaluator.metric,
        measured=measured,
        f1=f1,
        validation_correct=validation_correct,
        train_bytes=len(chosen) * process.traffic.per_client_training,
        test_bytes=num_tests * process.traffic.per_client_testing,
        seconds=seconds,
    )
    return outcome.state, callbacks.RoundDone(record, weights, predicted)
