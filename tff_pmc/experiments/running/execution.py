"""What a call of `run_experiments.py` asks for: an inspection, a search, or runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import leaf_data
from tff_pmc.experiments.flags.command import LR_SEARCH, Command
from tff_pmc.experiments.running import (
    inspection,
    rate_search,
    suite,
    tensorboard_events,
)
from tff_pmc.experiments.running.jobs import Federations, Runner
from tff_pmc.reports.escape import printable
from tff_pmc.runtime import Runtime
from tff_pmc.settings import RunSettings, SettingError
from tff_pmc.settings.cluster_options import ClusterOptions


def execute(
    command: Command,
    runs: Sequence[RunSettings],
    table: leaf_data.ClientTable,
    cluster: Optional[ClusterOptions],
    output_dir: str,
) -> str:
    """Loads the data and does what is asked for; returns the text for the terminal."""
    if command.resume and not command.output_dir:
        raise SettingError("--resume needs the --output_dir of the run")
    load = Federations(command.data_dir, command.cache_dir, table)
    data = load(runs[0])
    engine: dict[str, Any] = {
        "engine": command.engine if cluster is None else "cluster",
        "private": command.private_worker,
        "cluster": cluster,
    }
    if command.inspect:
        others = [settings.system.score(settings) for settings in runs]
        return inspection.inspect(runs[0], others, data, engine)
    print(printable(data.describe()), flush=True)
    if any(settings.two_stage for settings in runs):
        print(
            f"The system {runs[0].names['system']} needs the totals first: two "
            "aggregations a round, and every client's update is kept until the "
            "second"
        )
    if command.tensorboard:
        print(printable(tensorboard_events.how_to_open(output_dir)), flush=True)
    how: dict[str, Any] = {
        "resume": command.resume,
        "tensorboard": command.tensorboard,
    }
    with Runtime(**engine) as running:
        if command.experiment == LR_SEARCH:
            held_out = command.held_out
            text = rate_search.search(runs, data, output_dir, held_out=held_out, **how)
        else:
            how["runner"] = _runner(
                command, cluster, running, len(runs), load, output_dir
            )
            text = suite.run_all(runs, load, output_dir, seeds=command.seeds, **how)
    return f"\n{text}\n\nResults, records and plots: {output_dir}"


def _runner(
    command: Command,
    cluster: Optional[ClusterOptions],
    running: Runtime,
    num_runs: int,
    load: Federations,
    output_dir: str,
) -> Optional[Runner]:
    """What makes the runs; None for this process, one after another."""
    if cluster is None:
        return None
    connection = running.engine.connection
    num_runs *= len(command.seeds) or 1
    if not cluster.spreads_runs(num_runs, len(connection.workers())):
        return None
    from tff_pmc.experiments.running.spread_runs import SpreadRuns

    running.engine.record("runs")
    return SpreadRuns(connection, load, output_dir, list(command.plugin))
