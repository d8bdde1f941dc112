"""The flags of one call of `run_experiments.py` beside a run's settings."""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Mapping
from typing import Any, ClassVar

from leaf_data.dataset import DATASETS
from leaf_data.declare import (
    A_SEED,
    SettingError,
    Settings,
    setting,
    unknown,
)
from tff_pmc import project_files
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.models import MODELS
from tff_pmc.reports import output
from tff_pmc.runtime import ENGINES
from tff_pmc.selections import SELECTIONS
from tff_pmc.settings import flag_values
from tff_pmc.settings.run_settings import in_small_letters
from tff_pmc.systems import SYSTEMS

LR_SEARCH = "lr_search"
"""The name by which `--experiment` asks for the search of a learning rate."""


def _known(registry: Mapping[str, Any], name: str) -> str:
    """Returns a name that is registered when the flag is parsed."""
    registry[name]
    return name


def _experiment(name: str) -> str:
    if name == LR_SEARCH or name in EXPERIMENTS:
        return name
    folder, file = project_files.FLAG_FILES, f"{name}.flags"
    if (project_files.folder(folder) / file).is_file():
        raise SettingError(
            f"--experiment={name} is a flag file: --flagfile={folder}/{file}"
        )
    known = [*EXPERIMENTS, LR_SEARCH]
    raise SettingError(f"--experiment={name}: {unknown('experiment', name, known)}")


def _systems(text: str) -> tuple[str, ...]:
    """Names of systems, from their names or from what tables call them."""
    by_letters = {in_small_letters(kind.name): name for name, kind in SYSTEMS.items()}
    words = map(in_small_letters, flag_values.words(text))
    return tuple(_known(SYSTEMS, by_letters.get(word, word)) for word in words)


@dataclasses.dataclass(frozen=True)
class WhatToRun(Settings):
    """The experiment, and what of it is run."""

    title: ClassVar[str] = "What to run"

    experiment: str = setting(
        "quickstart",
        "The named experiment that settings start from; or lr_search, which finds the "
        "learning rate of --search_for.",
        parse=_experiment,
    )
    protocol: str = setting(
        "paper",
        "Start from the papers' settings, or with reference_code from those of the "
        "authors' published code: every difference of the two at once "
        "(docs/pmc.md).",
        choices=("paper", "reference_code"),
    )
    systems: tuple[str, ...] = setting(
        (),
        "The systems to run, as fedavg,adafed; by default those that the experiment "
        "compares, or prioritized alone.",
        parse=_systems,
    )
    dataset: str = setting(
        "",
        "The data set, in the place of the experiment's own; --help lists the names.",
        parse=lambda name: _known(DATASETS, name),
    )
    model: str = setting(
        "",
        "The model, in the place of the experiment's own; --help lists the names.",
        parse=lambda name: _known(MODELS, name),
    )
    selection: str = setting(
        "",
        "How the clients of a round are chosen: uniform, unless the experiment says "
        "otherwise; --help lists the names.",
        parse=lambda name: _known(SELECTIONS, name),
    )
    seed: int = setting(
        None,
        "Sets the seeds of partition, model, cohorts and batches at once.",
        within=A_SEED,
    )
    seeds: tuple[int, ...] = setting(
        (),
        "Several seeds, as 0,1,2,3,4: all runs are made under each, in folders seed_N, "
        "and effect.md holds each of them against the baseline seed by seed, beside "
        "the noise floor.",
        parse=flag_values.seeds,
    )
    baseline: str = setting(
        "",
        "With --seeds, the run that the others are held against, as tables call it. By "
        "default it is DS, FedAvg, or Dual's weighted mean, and the first run where "
        "that is not among them.",
    )
    inspect: bool = setting(
        False,
        "Describe the federation and each ordering's weights on the first cohorts; "
        "train nothing beyond what the criteria need.",
    )
    search_for: str = setting(
        "mnist_noniid",
        "With --experiment=lr_search, the experiment whose rate is searched: the rate "
        "with which DS first brings half of the devices to its highest target, on a "
        "validation part of the training examples (PMC's rule).",
        parse=lambda name: _known(EXPERIMENTS, name),
    )
    held_out: str = setting(
        "pooled",
        "With --experiment=lr_search, what a device is judged on: its share of the "
        "held-out training examples of all devices, mixed, as in PMC's published "
        "scripts, or its own.",
        choices=("pooled", "own"),
    )
    learning_rates: tuple[float, ...] = setting(
        (0.5, 0.215, 0.1),
        "With --experiment=lr_search, the rates.",
        parse=flag_values.rates,
    )
    plugin: tuple[str, ...] = setting(
        (),
        "A module of your own, or several as a,b, imported first, from the folder you "
        "are in: its data sets, models, criteria, systems, experiments and reports "
        "register themselves (docs/own_data.md, docs/extend.md).",
        parse=flag_values.words,
    )


@dataclasses.dataclass(frozen=True)
class Places(Settings):
    """The folders that are read and written."""

    title: ClassVar[str] = "Data and results"

    data_dir: str = setting(
        "",
        "Where the data is: MNIST's idx .gz files or mnist.npz, what LEAF's "
        "preprocess.sh made of FEMNIST, CelebA's raw folder, CIFAR-10's python batches "
        "or an image folder, Dual's places, or a folder with subfolders of these "
        "names. By default the folder that TFF_PMC_DATA_DIR names, if it is set.",
        parse=flag_values.place,
    )
    cache_dir: str = setting(
        "",
        "Where data that is converted once is kept; by default beside the data.",
        parse=flag_values.place,
    )
    client_table: str = setting(
        "",
        "A CSV of client attributes, a column client and one for each attribute "
        "(boolean or in [0, 1]): they can be named in --criteria and --priority, and "
        "accuracy is recorded by group.",
        parse=flag_values.place,
    )
    output_dir: str = setting(
        "",
        "A new folder for the results; by default runs/EXPERIMENT-TIME.",
        parse=flag_values.place,
    )
    resume: bool = setting(
        False,
        "Go on with the run that --output_dir holds, given the same flags: to exactly "
        "what it would have been without the interruption. There may be more --rounds, "
        "orderings and --seeds than before.",
    )
    tensorboard: bool = setting(
        False,
        "Write what the record says of each round for TensorBoard, too: accuracies and "
        "their spread, the distributions over the clients, and the weights.",
    )


@dataclasses.dataclass(frozen=True)
class OfflineOptions(Settings):
    """What is made of runs in the place of runs."""

    title: ClassVar[str] = "Tables of runs that are on disk already"

    tables: str = setting(
        "",
        "A folder of runs, ours or as the authors' published code writes them, of "
        "which the tables and figures of their experiment, or of --experiment, are "
        "made again, into --output_dir.",
        parse=flag_values.place,
    )
    compare: tuple[str, ...] = setting(
        (),
        "Two folders, as A,B: a run or several, ours or as the authors' published code "
        "writes them. Compares them row by row and runs nothing; with --output_dir as "
        "comparison.csv and comparison.png, too.",
        parse=flag_values.places,
    )
    format: str = setting(
        "markdown",
        "With --tables, how the tables are written beside their numbers, which are "
        "always CSV: markdown, latex (booktabs, for a paper), or csv for the numbers "
        "alone.",
        choices=output.TABLES,
    )
    figures: str = setting(
        "png",
        "How figures are written: png, or pdf for a vector PDF beside each PNG.",
        choices=output.FIGURES,
    )
    export: str = setting(
        "",
        "A run's folder, recorded with --predictions, to be written into --output_dir "
        "in the form of the authors' published code, whose evaluation script then "
        "reads it.",
        parse=flag_values.place,
    )


@dataclasses.dataclass(frozen=True)
class EngineOptions(Settings):
    """What runs TFF's computations."""

    title: ClassVar[str] = "Engines (docs/scaling.md)"

    engine: str = setting(
        "local",
        "What runs TFF's computations. local: this process, the fastest for one run on "
        "one machine. worker: TFF's own worker, a process of its own, to hold the "
        "others against it. cluster: the workers of Dask on this or on many machines, "
        "for many runs or large cohorts (docs/scaling.md).",
        choices=tuple(ENGINES),
    )
    private_worker: bool = setting(
        True,
        "Run TFF's worker, where one is needed, in a network namespace of its own: "
        "nothing listens.",
    )


@dataclasses.dataclass(frozen=True)
class Command(WhatToRun, Places, OfflineOptions, EngineOptions):
    """The experiment, the folders and the actions that one call names."""

    def __post_init__(self) -> None:
        """Refuses values out of range, and what does not go together."""
        super().__post_init__()
        flags = ("inspect", "compare", "tables", "export", "tensorboard", "resume")
        given = [flag for flag in flags if getattr(self, flag)]
        if len(given) > 1 and given[0] in flags[:4]:
            raise SettingError(
                f"--{given[1]} does not go with --{given[0]}, which makes no run"
            )
        if self.seeds and self.inspect:
            raise SettingError("--inspect is of one seed: take --seed, not --seeds")
        if self.output_dir and self.inspect:
            raise SettingError("--inspect writes nothing, so it takes no --output_dir")


ENGINE_OPTIONS: dict[str, str] = {
    "cluster": "tff_pmc.cluster.options.ClusterOptions",
}
"""Where the flags are that go with one engine alone."""

PARTS: tuple[type[Settings], ...] = (
    *(WhatToRun, Places, OfflineOptions, EngineOptions),
    *map(pkgutil.resolve_name, ENGINE_OPTIONS.values()),
)
"""The parts of the command, in the order of the help."""

COMMAND_FLAGS = frozenset(flag for part in PARTS for flag in part.flags())
"""The flags of a call, which are no settings of its runs."""
