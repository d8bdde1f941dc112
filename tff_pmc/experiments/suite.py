"""Several orderings under the same seeds, and the tables and plot of them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import leaf_data
from tff_pmc.experiments import files, loop, run_folder
from tff_pmc.experiments.config import TARGETS, RunConfig
from tff_pmc.reports import plots, read, tables


def load_data(config: RunConfig, data_dir: str | None) -> leaf_data.FederatedDataset:
    """The federation a run's settings describe.

    Raises:
        leaf_data.DataError: the data is missing or broken.
    """
    return leaf_data.load(
        config.dataset,
        data_dir,
        partition=config.partition,
        seed=config.partition_seed,
    )


def run_all(
    config: RunConfig,
    orders: Sequence[tuple[str, ...]],
    data: leaf_data.FederatedDataset,
    output_dir: str,
    *,
    resume: bool = False,
) -> str:
    """Runs the orderings one after another and reports on all of them.

    Partition, initial weights, cohorts and batches are the same in every run:
    the orderings are compared on paired seeds.

    Args:
        config: the settings; the ordering is replaced by each of `orders`.
        orders: the orderings.
        data: the federation.
        output_dir: gets one folder a run, `results.csv` and `accuracy.png`.
        resume: go on with what the folder holds; finished runs are kept.

    Returns:
        The tables, as text for the terminal.
    """
    config.cohort_size(len(data.client_ids))  # Refused before a folder is made.
    plan = loop.describe(config, data)
    plan["settings"].pop("priority")
    plan["settings"]["orderings"] = [",".join(order) for order in orders]
    if resume:
        run_folder.check_same(output_dir, files.read_json(output_dir), plan)
    else:
        files.make_empty_folder(output_dir)
    lock = files.take_lock(output_dir)
    try:
        files.write_json(output_dir, plan)
        for order in orders:
            loop.run(
                dataclasses.replace(config, priority=order),
                data,
                os.path.join(output_dir, folder_name(order)),
                resume=resume,
            )
        return report(output_dir, orders, config)
    finally:
        os.close(lock)


def report(
    output_dir: str, orders: Sequence[tuple[str, ...]], config: RunConfig
) -> str:
    """Writes `results.csv` and `accuracy.png`; returns the tables as text."""
    runs = [read.read_run(os.path.join(output_dir, folder_name(o))) for o in orders]
    tidy = tables.tidy_rows(runs, TARGETS)
    tidy.to_csv(os.path.join(output_dir, "results.csv"), index=False)
    plots.accuracy_plot(
        runs, os.path.join(output_dir, "accuracy.png"), _title(config, runs[0])
    )
    return tables.text_tables(tidy)


def folder_name(order: Sequence[str]) -> str:
    """The folder of an ordering's run, for example `LD-DS-MD`."""
    return "-".join(order)


def _title(config: RunConfig, run: read.Run) -> str:
    data = run.info["data"]
    return (
        f"{config.experiment}: {data['name']}, {data['clients']} clients, "
        f"{config.partition}, E = {config.local_epochs}, "
        f"B = {config.batch_size or 'all'}, rate {config.learning_rate:g}"
    )
