"""Several orderings or systems under the same seeds, their tables and plots."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import leaf_data
from tff_pmc.experiments import files, loop, run_folder, systems
from tff_pmc.experiments.choices import SEEDS
from tff_pmc.experiments.config import RunConfig
from tff_pmc.reports import (
    adafed,
    da_table1,
    dual_seeds,
    dual_table4,
    effect,
    plots,
    pmc_figures,
    pmc_paper,
    pmc_tables,
    read,
    system_effect,
    tables,
)
from tff_pmc.reports.adjustment_plot import adjustment_plot


def load_data(
    config: RunConfig, data_dir: str | None, cache_dir: str | None = None
) -> leaf_data.FederatedDataset:
    """The federation a run's settings describe.

    Args:
        config: the settings.
        data_dir: see `leaf_data.load`.
        cache_dir: where a data set that is converted once keeps the result; None
            leaves the choice to the data set.

    Raises:
        leaf_data.DataError: the data is missing or broken.
    """
    place = {} if cache_dir is None else {"cache_dir": cache_dir}
    return leaf_data.load(config.dataset, data_dir, **config.data_options, **place)


def run_all(
    configs: Sequence[RunConfig],
    load: Callable[[RunConfig], leaf_data.FederatedDataset],
    output_dir: str,
    *,
    resume: bool = False,
) -> str:
    """Makes runs one after another and reports on all of them.

    Partition, initial weights, cohorts and batches are the same in every run:
    the orderings are compared on paired seeds.

    Args:
        configs: the settings of each run, which differ in the ordering and its
            adjustment alone, or in what `systems.SYSTEMS` says.
        load: gives the federation of settings.
        output_dir: gets one folder a run, `results.csv` and `accuracy.png`.
        resume: go on with what the folder holds; finished runs are kept.

    Returns:
        The tables, as text for the terminal.

    Raises:
        ConfigError: the settings do not fit the data, or the folder is in use or
            holds something else.
    """
    data = load(configs[0])
    for config in configs:
        loop.check(config, data)  # Refused before a folder is made.
    with folder_of_runs(output_dir, _plan(configs, data), resume=resume):
        for config in configs:
            folder = os.path.join(output_dir, config.folder)
            loop.run(config, load(config), folder, resume=resume)
        return report(output_dir, configs)


def _plan(
    configs: Sequence[RunConfig], data: leaf_data.FederatedDataset
) -> dict[str, Any]:
    """What all runs share, and which there are."""
    plan = loop.describe(configs[0], data)
    del plan["label"]
    plan["settings"] = {
        name: value
        for name, value in plan["settings"].items()
        if all(getattr(config, name) == value for config in configs)
    }
    for name in ("priority", "adjustment"):
        plan["settings"].pop(name, None)
    plan["settings"]["orderings"] = [config.label for config in configs]
    if configs[0].system:
        for name in ("clients", "options"):  # They differ, too.
            plan["data"].pop(name)
    return plan


def run_seeds(
    configs: Sequence[RunConfig],
    seeds: Sequence[int],
    load: Callable[[RunConfig], leaf_data.FederatedDataset],
    output_dir: str,
    *,
    resume: bool = False,
) -> str:
    """Makes all runs under each of several seeds.

    See `reports.effect`, or `reports.system_effect` where systems are compared.

    Args:
        configs: as of `run_all`; each seed replaces all of their seeds.
        seeds: at least two.
        load: gives the federation of settings, whose partition the seed decides.
        output_dir: gets a folder `seed_N` for each, `effect.csv` and `effect.md`, and
            of Dual's experiments the table over all seeds.
        resume: go on with what the folder holds.

    Returns:
        The page of effects, as text, and the table after it.

    Raises:
        ConfigError: the settings do not fit the data, or the folder is in use or
            holds something else.
    """
    data = load(configs[0])
    loop.check(configs[0], data)  # Refused before a folder is made.
    plan = _plan(configs, data)
    for name in SEEDS:
        plan["settings"].pop(name)
    plan["data"].pop("options", None)  # The seed is among them.
    plan["settings"]["seeds"] = list(seeds)
    by_seed = {}
    with folder_of_runs(output_dir, plan, resume=resume):
        for seed in seeds:
            own = [
                dataclasses.replace(config, **dict.fromkeys(SEEDS, seed))
                for config in configs
            ]
            folder = os.path.join(output_dir, f"seed_{seed}")
            begun = resume and files.read_json(folder) is not None
            run_all(own, load, folder, resume=begun)
            by_seed[seed] = [
                read.read_run(os.path.join(folder, config.folder)) for config in own
            ]
        if configs[0].system:
            texts = [system_effect.write(by_seed, systems.BASELINES, output_dir)]
            table = systems.DUAL_TABLES.get(configs[0].experiment)
            if table:
                folders = {s: os.path.join(output_dir, f"seed_{s}") for s in seeds}
                infos = [run.info for run in by_seed[seeds[0]]]
                texts.append(dual_seeds.write(folders, infos, output_dir, table=table))
            return "\n\n".join(texts)
        above = configs[0].reach == "above"
        return effect.write(
            by_seed, configs[0].targets, output_dir, strictly_above=above
        )


@contextlib.contextmanager
def folder_of_runs(
    output_dir: str, plan: Mapping[str, Any], *, resume: bool
) -> Iterator[None]:
    """A folder for several runs, held by this process alone.

    Args:
        output_dir: a folder that is empty or not there yet, or, to resume, one of
            the same plan.
        plan: what all runs share and which there are, for `run.json`.
        resume: whether the folder holds runs to go on with.

    Raises:
        ConfigError: the folder holds something else, or is in use.
    """
    if resume:
        run_folder.check_same(output_dir, files.read_json(output_dir), plan)
    else:
        files.make_empty_folder(output_dir)
    lock = files.take_lock(output_dir)
    try:
        files.write_json(output_dir, plan)
        yield
    finally:
        os.close(lock)


def report(output_dir: str, configs: Sequence[RunConfig]) -> str:
    """Writes the tables and plots of a folder of runs; returns the tables as text."""
    runs = [read.read_run(os.path.join(output_dir, c.folder)) for c in configs]
    above = configs[0].reach == "above"
    tidy = tables.tidy_rows(runs, configs[0].targets, strictly_above=above)
    marked = read.with_caveat(tidy, runs)
    marked.to_csv(os.path.join(output_dir, "results.csv"), index=False)
    title = _title(configs[0], runs)
    systematic = bool(configs[0].system)
    plots.accuracy_plot(
        *(runs, os.path.join(output_dir, "accuracy.png"), title),
        what="system" if systematic else "priority",
    )
    # AdaFed and Dual speak of one test set, not of shares of the devices.
    texts = [] if systematic else [tables.text_tables(tidy)]
    baseline = next((run for run in runs if run.label == read.BASELINE), None)
    for config, run in zip(configs, runs):
        if run.candidates is not None:
            path = os.path.join(output_dir, f"adjustment_{config.folder}.png")
            own = f"{run.label}. {_title(config, [run])}"
            adjustment_plot(run, path, own, baseline)
    experiment = configs[0].experiment
    if experiment == "femnist":
        texts.append(da_table1.write(runs, output_dir))
    if experiment in pmc_paper.PAPER:
        by_folder = {
            os.path.join(output_dir, config.folder): run
            for config, run in zip(configs, runs)
        }
        texts += [
            report.write(by_folder, output_dir, experiment, strictly_above=above)
            for report in (pmc_tables, pmc_figures)
        ]
    if experiment in adafed.CLAIMS:
        texts.append(adafed.write(runs, output_dir, experiment))
    if experiment in systems.DUAL_TABLES:
        folders = {
            systems.dual_row(config): os.path.join(output_dir, config.folder)
            for config in configs
        }
        table = systems.DUAL_TABLES[experiment]
        texts.append(dual_table4.write(folders, output_dir, table=table))
    return "\n\n".join(filter(None, texts))


def _title(config: RunConfig, runs: Sequence[read.Run]) -> str:
    data = runs[0].info["data"]
    clients = dict.fromkeys(run.info["data"]["clients"] for run in runs)
    partition = f"{config.partition}, " if "partition" in config.data_options else ""
    name = "" if data["name"] == config.experiment else f"{data['name']}, "
    caveat = read.data_caveat(runs)
    caveat = f"\n({caveat})" if caveat else ""
    return (
        f"{config.experiment}: {name}{' or '.join(map(str, clients))} clients, "
        f"{partition}E = {config.local_epochs}, "
        f"B = {config.batch_size or 'all'}, rate {config.learning_rate:g}{caveat}"
    )
