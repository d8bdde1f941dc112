"""Executes a command of `run_experiments.py`: an inspection, a search, or runs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any, Optional

import leaf_data
from tff_pmc.escape import printable
from tff_pmc.experiments.callbacks import Callback
from tff_pmc.experiments.callbacks.tensorboard_events import (
    TensorBoard,
    tensorboard_command,
)
from tff_pmc.experiments.flags.command import LR_SEARCH, Command
from tff_pmc.experiments.running import inspection, rate_search, sweep
from tff_pmc.runtime import Runtime, unused_gpu, unused_onednn
from tff_pmc.settings import RunSettings

MANY_CLIENTS = 10_000
"""With more clients than these, a warning reports that testing each round is slow."""


@dataclasses.dataclass
class DatasetLoader:
    """Loads the federation of a run; only the last one is cached, as memory is limited.

    Pickling keeps its paths and drops the loaded data.
    """

    data_dir: str  # Empty for the default, as is `cache_dir`.
    cache_dir: str
    table: leaf_data.ClientTable  # The clients' attributes.
    _last: Optional[tuple[str, leaf_data.FederatedDataset]] = None

    def __call__(self, settings: RunSettings) -> leaf_data.FederatedDataset:
        """Loads the federation of a run's settings."""
        key = repr(settings.data)
        if self._last is None or self._last[0] != key:
            self._last = None  # Before the next one is loaded.
            data = settings.data.load_limited(
                self.data_dir or None, self.cache_dir or None
            )
            if self.table.values:
                data = data.with_client_table(self.table)
            self._last = key, data
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        places = {"data_dir": self.data_dir, "cache_dir": self.cache_dir}
        absolute = {name: p and os.path.abspath(p) for name, p in places.items()}
        return {**vars(self), **absolute, "_last": None}


def execute(
    command: Command,
    runs: Sequence[RunSettings],
    table: leaf_data.ClientTable,
    cluster: Any,
    callbacks: Sequence[Callback],
    output_dir: str,
) -> str:
    """Executes a command; returns the text for the terminal."""
    load = DatasetLoader(command.data_dir, command.cache_dir, table)
    data = load(runs[0])
    engine: dict[str, Any] = {
        "engine": command.engine if cluster is None else "cluster",
        "private": command.private_worker,
        "cluster": cluster,
    }
    if command.inspect:
        return inspection.inspect(runs, data, engine)
    print(printable(data.describe()), flush=True)
    if engine["engine"] != "worker" and (line := unused_gpu()):
        print(line, flush=True)
    if line := unused_onednn():
        print(line, flush=True)
    staged = [settings.algorithm_name for settings in runs if settings.two_stage]
    for name in dict.fromkeys(staged):
        print(
            f"The algorithm {name} aggregates twice per round, because it needs the "
            "criteria's totals first; all updates stay in memory until then"
        )
    tested = data.test_examples.num_clients
    if tested > MANY_CLIENTS and not runs[0].record.evaluate_clients:
        row = len(data.client_ids[0]) + 8  # Bytes, about.
        print(
            f"All {tested:,} clients test every round, and each test writes "
            f"{tested * row / 1e6:.1f} MB: --evaluate_clients=1000 tests on a sample, "
            "--evaluate_every=10 tests fewer rounds, and --record_clients=none omits "
            "the rows of clients"
        )
    if any(isinstance(callback, TensorBoard) for callback in callbacks):
        print(printable(tensorboard_command(output_dir)), flush=True)
    with Runtime(**engine) as running:
        if command.experiment == LR_SEARCH:
            text = rate_search.search(
                runs,
                data,
                output_dir,
                held_out=command.held_out,
                resume=command.resume,
                callbacks=callbacks,
            )
        else:
            remote_runner, num_runs = None, len(runs) * (len(command.seeds) or 1)
            if cluster is not None and running.engine.spreads_runs(num_runs):
                stored = data.train_examples.store_part
                running.engine.check_folders(output_dir, load.data_dir, stored)
                remote_runner = running.engine.remote_runner(sweep.run_job)
            text = sweep.run_all(
                runs,
                load,
                output_dir,
                seeds=command.seeds,
                baseline=command.baseline,
                resume=command.resume,
                remote_runner=remote_runner,
                callbacks=callbacks,
                command=command.invocation,
            )
    return f"\n{text}\n\nResults, records and plots: {output_dir}"
