"""The round loop of one run."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Optional

from absl import logging

import leaf_data
from leaf_data.pixels import NO_PIXELS
from tff_pmc.algorithms.algorithm import algorithm_of
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.trainer import Trainer
from tff_pmc.escape import printable
from tff_pmc.experiments.callbacks import Callback, FinishedRound, Run
from tff_pmc.experiments.callbacks.early_stopping import StopOnLostRounds
from tff_pmc.experiments.callbacks.progress import Progress
from tff_pmc.experiments.callbacks.recorders import (
    CheckpointRecorder,
    ModelSaver,
    PredictionRecorder,
    TableRecorder,
)
from tff_pmc.experiments.running.evaluator import TestEvaluator
from tff_pmc.record.files import FINISHED, INTERRUPTED
from tff_pmc.record.resume_check import EXAMPLES
from tff_pmc.record.round_record import RoundRecord
from tff_pmc.record.run_folder import RunFolder
from tff_pmc.settings import RunSettings


def run(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    folder_path: str,
    *,
    resume: bool = False,
    title: Optional[str] = "",
    callbacks: Sequence[Callback] = (),
) -> None:
    """Trains one run from its first or next round to the last.

    A TFF execution context must be installed (`runtime.Runtime`).

    Args:
        settings: the settings of the run.
        data: the federation.
        folder_path: the run's folder; it is created if it does not exist.
        resume: whether to continue the run in the folder, if there is one. Its results
            are exactly those without the interruption. The recorded run may have been
            planned with fewer rounds.
        title: the name of the progress bar, by default the label; None for no bar.
        callbacks: further callbacks.
    """
    # Check, before the folder is made.
    context = RunContext.from_settings(settings, data)
    for callback in callbacks:
        callback.check(settings, data)
    description = describe(settings, data, callbacks)
    with RunFolder(folder_path, description, resume=resume) as folder:
        if folder.is_complete:
            _warn_of_new_callbacks(folder, callbacks, "is finished")
            return
        # Load the state after the last round on disk, or the initial one.
        trainer = algorithm_of(settings).build_trainer(context)
        evaluator = TestEvaluator(context)
        state, rounds_before = folder.load(trainer.initialize())
        last_round = (
            rounds_before if folder.was_ended_early else settings.training.rounds
        )
        if rounds_before:
            words = f"is resumed after round {rounds_before}"
            _warn_of_new_callbacks(folder, callbacks, words)
        # Start what records the run, then the callbacks; the checkpoint comes last.
        before_checkpoint = [
            TableRecorder(folder),
            StopOnLostRounds(),
            PredictionRecorder(),
            *callbacks,
            ModelSaver(),  # The last ends first: `callbacks` find the model on disk.
            *([] if title is None else [Progress(title)]),
        ]
        checkpoint = CheckpointRecorder(folder)
        started = Run(
            settings=settings,
            context=context,
            trainer=trainer,
            state=state,
            folder=folder.path,
            rounds_before=rounds_before,
            test_examples=evaluator.examples,
        )
        with contextlib.ExitStack() as ends_of_callbacks:
            for callback in (*before_checkpoint, checkpoint):
                callback.on_start(started)
                ends_of_callbacks.push(functools.partial(_notify_end, callback))
            for round_num in range(rounds_before + 1, last_round + 1):
                # Run the round, and evaluate its model.
                trained = train_round(context, trainer, evaluator, state, round_num)
                state = trained.state
                # Record it. All are called, also those after the one that ends the run.
                answers = [(c.after_round(trained), c) for c in before_checkpoint]
                # The reason and callback of each that ends the run.
                reasons = [(why, callback) for why, callback in answers if why]
                if reasons and round_num < last_round:
                    _end_early(folder, settings.label, round_num, *reasons[0])
                checkpoint.after_round(trained)  # A resume then finds the end.
                if reasons:
                    break


def describe(
    settings: RunSettings,
    data: leaf_data.FederatedDataset,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any]:
    """Returns the content of `run.json` before the run starts.

    The names of inputs and classes are not part of `data`, so that runs from before
    they were recorded can be resumed.
    """
    pixels = data.pixel_convention
    names = {
        "inputs": list(data.input_names),
        "classes": list(data.class_names),
        "scaling": settings.model.scaling,
        "pixels": "" if pixels == NO_PIXELS else str(pixels),
        "vocabulary": data.vocabulary.to_dict() if data.vocabulary else {},
    }
    row_notes, by_default = settings.row_notes, settings.is_default_experiment
    called = {type(callback).__name__: callback.by_flag() for callback in callbacks}
    return {
        "label": settings.label,
        "algorithm": settings.algorithm.name,
        "note": settings.data.note,
        **({} if row_notes is None else {"row_notes": [*row_notes]}),
        **({"is_default_experiment": True} if by_default else {}),
        "settings": settings.to_record(),
        "data": {
            "name": data.name,
            "clients": len(data.client_ids),
            "origin": {
                "source": data.origin.source,
                "sha256": dict(data.origin.files),
            },
            "options": dict(data.options),
            "client_table": data.client_table.origin,
            EXAMPLES: data.examples_sha256,
        },
        **{name: value for name, value in names.items() if value},
        **({"callbacks": called} if called else {}),
    }


def train_round(
    context: RunContext,
    trainer: Trainer,
    evaluator: TestEvaluator,
    state: Any,
    round_num: int,
) -> FinishedRound:
    """Trains and tests one round."""
    # Select the cohort.
    start = time.perf_counter()
    chosen, num_loss_reports = context.cohort_sampler.draw(
        round_num, context.cohort_size, lambda: trainer.get_model_weights(state)
    )
    packs = context.pack(chosen, round_num)
    prepared = time.perf_counter() - start
    # Run the round.
    outcome = trainer.next(state, packs)
    weights = trainer.get_model_weights(outcome.state)
    train_seconds = time.perf_counter() - start
    if outcome.train_seconds:  # In a search the rest is testing.
        train_seconds = prepared + outcome.train_seconds
    # Evaluate its model.
    measured = predicted = central = train_loss = None
    tested = context.settings.record.is_test_round(round_num)
    model_metrics = evaluator.model_metrics(weights, tested)
    if tested:
        measured, predicted = evaluator.evaluate(weights, outcome.correct_by_client)
        central = evaluator.evaluate_central_test(weights)
        train_loss = evaluator.evaluate_train_loss(weights)
    seconds = {
        "train": train_seconds,
        "test": time.perf_counter() - start - train_seconds,
    }
    f1, validation_correct = evaluator.evaluate_on_server(weights)
    # Record it.
    num_tests = len(outcome.trials) * trainer.num_judges + num_loss_reports
    record = RoundRecord(
        round_num=round_num,
        settings=context.settings,
        outcome=outcome,
        cohort=[context.data.client_ids[k] for k in chosen],
        clients=evaluator.examples.client_ids,
        sizes=evaluator.examples.label_counts,
        metric=evaluator.metric,
        measured=measured,
        model_metrics=model_metrics,
        central=central,
        central_examples=evaluator.central_examples,
        global_train_loss=train_loss,
        f1=f1,
        validation_correct=validation_correct,
        train_bytes=len(chosen) * trainer.traffic.per_client_training,
        test_bytes=num_tests * trainer.traffic.per_client_testing,
        seconds=seconds,
    )
    return FinishedRound(record, outcome.state, weights, predicted)


def _warn_of_new_callbacks(
    folder: RunFolder, callbacks: Sequence[Callback], how: str
) -> None:
    """Warns of callbacks that a resume adds, as to `--tensorboard`, and how it is."""
    new = {type(callback).__name__: callback for callback in callbacks}
    names = [n for n in new if n in folder.new_callbacks and not new[n].reads_past]
    if names:
        logging.warning(
            "%s %s, and was started without %s, which misses the rounds so far.",
            *(folder.path, how, ", ".join(names)),
        )


def _end_early(
    folder: RunFolder, label: str, round_num: int, why: Any, callback: Callback
) -> None:
    """Records and prints why a callback ends a run early."""
    words = f"ended after round {round_num}"
    if isinstance(why, str):
        words = f"{words}: {why}"
    folder.end_early(words, round_num, type(callback).__name__)
    print(printable(f"{label} {words}"), flush=True)


def _notify_end(
    callback: Callback,
    kind: Optional[type[BaseException]],
    error: Optional[BaseException],
    trace: Optional[TracebackType],
) -> None:
    """Reports to a callback how the run ended; one that raises ends it by an error."""
    callback.on_end(INTERRUPTED if kind else FINISHED)
