"""`--tensorboard`: what the record says of a round, as TensorBoard shows it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.experiments.running.callbacks import RoundDone
from tff_pmc.record.measures import client_means
from tff_pmc.reports import summary

FOLDER = "tensorboard"
"""The subfolder of a run's folder with its event files."""

Row = Mapping[str, Any]
_OF_WEIGHTS = ("coefficient_of_variation", "effective_clients", "total_variation")
_NO_VALUES = ("round", "client", "excluded")


class TensorBoardEvents:
    """Releases each round to TensorBoard, by TFF's release manager.

    Every value is one that the record has; see `values`. A resumed run adds a file of
    events to those that are there. Rounds that it makes again, because they were after
    the last checkpoint, are there twice, with the same values.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, FOLDER)
        try:
            self._manager = tff.program.TensorBoardReleaseManager(self._path)
        except tf.errors.OpError as error:
            raise OSError(f"{self._path}: {error.message}") from error

    def after_round(self, done: RoundDone) -> None:
        """Releases a round, whose events are on disk when this returns."""
        found = values(done.tables, done.weights)
        released = self._manager.release(found, done.round_num)
        # A thread of its own, because that of a notebook runs an event loop already.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(asyncio.run, released).result()
            except tf.errors.OpError as error:
                raise OSError(f"{self._path}: {error.message}") from error


def values(tables: Mapping[str, Sequence[Row]], weights: Any) -> dict[str, Any]:
    """The values of a round, in the structure whose paths are TensorBoard's tags.

    Numbers are its scalars, arrays its distributions and histograms:

        rounds/COLUMN         each number of `rounds.csv`
        fairness/NAME         the figures of `summary.SPREAD`, of accuracies
        clients/accuracy      of every client's test set: an array; clients/loss where
                              the record has losses
        cohort/COLUMN         the weights and the raw criteria of the round's clients
        weights_FIGURE/ORDERING   how unequal each ordering's weights are, and how far
                              from those in force
        model/NUMBER          each tensor of trainable weights: an array
    """
    (of_round,) = tables["rounds"]
    model = [np.asarray(tensor) for tensor in weights.trainable]
    return {
        "rounds": {
            name: value
            for name, value in of_round.items()
            if name != "round" and not isinstance(value, str)
        },
        **_of_clients(tables["clients"]),
        "cohort": {
            name: column[np.isfinite(column)]  # Who was left out has no weight.
            for name in tables["cohort"][0]
            if name not in _NO_VALUES
            for column in [np.array([row[name] for row in tables["cohort"]], float)]
        },
        **{
            f"weights_{figure}": {
                row["ordering"]: row[figure] for row in tables["weights"]
            }
            for figure in _OF_WEIGHTS
        },
        "model": {f"{number:02d}": tensor for number, tensor in enumerate(model)},
    }


def _of_clients(rows: Sequence[Row]) -> dict[str, Any]:
    if not rows:  # Not tested, or not recorded.
        return {}
    examples = np.array([row["examples"] for row in rows], np.int64)
    if "correct" not in rows[0]:
        losses = np.array([row["loss_sum"] for row in rows], float)
        return {"clients": {"loss": client_means(losses, examples)}}
    correct = np.array([row["correct"] for row in rows], np.int64)
    spread = summary.measured(correct, examples)
    return {
        "fairness": {name: float(value) for name, value in spread.items()},
        "clients": {"accuracy": client_means(correct, examples)},
    }


def how_to_open(output_dir: str) -> str:
    """The line that says how the runs in a folder are looked at."""
    paths = sys.executable, os.path.relpath(sys.executable)
    words = [min(paths, key=len), "-m", "tensorboard.main", f"--logdir={output_dir}"]
    return f"TensorBoard: {shlex.join(words)}"
