"""The callback `tensorboard`, which writes the record of each round for TensorBoard."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tff_pmc._lazy import tf, tff
from tff_pmc.experiments.callbacks.callback import (
    CALLBACKS,
    Callback,
    FinishedRound,
    Run,
)

if TYPE_CHECKING:
    from tff_pmc.record.round_record import RoundRecord

FOLDER = "tensorboard"
"""The subfolder of a run's folder with its event files."""


class TensorBoard(Callback):
    """Writes each round's record for TensorBoard, by TFF's release manager.

    Every value is one of the record; see `scalars_and_arrays`. A resumed run adds a
    file of events. Rounds that it repeats, because they were after the last checkpoint,
    occur twice, with the same values.
    """

    def on_start(self, run: Run) -> None:
        """Makes the folder."""
        self._path = os.path.join(run.folder, FOLDER)
        try:
            self._manager = tff.program.TensorBoardReleaseManager(self._path)
        except tf.errors.OpError as error:
            raise OSError(f"{self._path}: {error.message}") from error

    def after_round(self, round: FinishedRound) -> None:
        """Releases the round, whose events are on disk when this returns."""
        values = scalars_and_arrays(round)
        released = self._manager.release(values, round.round_num)
        # A new thread, because that of a notebook runs an event loop already.
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(asyncio.run, released).result()
            except tf.errors.OpError as error:
                raise OSError(f"{self._path}: {error.message}") from error


CALLBACKS.register("tensorboard", TensorBoard)


def scalars_and_arrays(round: FinishedRound) -> dict[str, Any]:
    """Returns the values of a round, in the structure of TensorBoard's tags.

    Numbers are scalars there, and arrays distributions and histograms:

        rounds/COLUMN         each number of `rounds.csv`, and the largest and smallest
                              weight in the cohort: weight_largest, weight_smallest
        fairness/NAME         statistics of the accuracies over the clients
        clients/accuracy      the accuracy on each client's test set: an array;
                              clients/loss for a regression
        cohort/COLUMN         the weights and the raw criteria of the round's clients
        weights_FIGURE/ORDERING   how unequal each ordering's weights are, and how far
                              from the current ones
        model/NUMBER          each tensor of trainable weights: an array
    """
    from tff_pmc.reports.statistics.weight_statistics import (
        WEIGHT_STATISTICS,
        round_weight_statistics,
    )

    record = round.record
    aggregation = record.settings.aggregation
    figures = round_weight_statistics(
        record.counted,
        aggregation.criteria,
        aggregation.scores_normalization,
        in_force=record.outcome.in_force.label,
        shares=record.shares,
    )
    columns = {**dict(zip(record.codes, record.raw.T)), "weight": record.weights}
    model = [np.asarray(tensor) for tensor in round.weights.trainable]
    return {
        "rounds": round.numbers,
        **_client_values(record),
        "cohort": {
            name: column[np.isfinite(column)]  # Excluded clients have NaN.
            for name, column in columns.items()
        },
        **{
            f"weights_{figure}": {row["ordering"]: row[figure] for row in figures}
            for figure in WEIGHT_STATISTICS
        },
        "model": {f"{number:02d}": tensor for number, tensor in enumerate(model)},
    }


def _client_values(record: RoundRecord) -> dict[str, Any]:
    from tff_pmc.record.client_statistics import client_means
    from tff_pmc.reports.statistics.run_summary import SPREAD

    if not record.client_totals:  # Not tested, or not recorded.
        return {}
    local = client_means(np.array(record.client_totals), record.sizes)
    if not record.metric.is_count:
        return {"clients": {"loss": local}}
    return {
        "fairness": {
            name: float(statistic.compute(local)) for name, statistic in SPREAD.items()
        },
        "clients": {"accuracy": local},
    }


def tensorboard_command(output_dir: str) -> str:
    """Returns the command that shows the runs of a folder in TensorBoard."""
    paths = sys.executable, os.path.relpath(sys.executable)
    words = [min(paths, key=len), "-m", "tensorboard.main", f"--logdir={output_dir}"]
    return f"TensorBoard: {shlex.join(words)}"
