"""Flags of `run_experiments.py` that are not settings of a run."""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from declared_settings import (
    SEED,
    SettingError,
    Settings,
    setting,
    unknown_name_message,
)
from leaf_data.dataset import DATASETS
from tff_pmc import project_files
from tff_pmc.algorithms import ALGORITHMS
from tff_pmc.experiments.callbacks import CALLBACKS
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.models import MODELS
from tff_pmc.reports import output
from tff_pmc.runtime import ENGINES
from tff_pmc.selections import SELECTIONS
from tff_pmc.settings import flag_values
from tff_pmc.settings.run_settings import slug

LR_SEARCH = "lr_search"
"""The name by which `--experiment` selects the search of a learning rate."""


def _names(registry: Mapping[str, Any]) -> Callable[[str], str]:
    """Builds a parser of a name that is registered when the flag is parsed."""

    def parse(name: str) -> str:
        registry[name]
        return name

    return parse


def _experiment(name: str) -> str:
    file = f"{project_files.FLAG_FILES}/{name}.flags"
    if name == LR_SEARCH or name in EXPERIMENTS:
        return name
    if project_files.folder(file).is_file():
        raise SettingError(
            f"--experiment={name} is a flag file, not an experiment: use "
            f"--flagfile={file}"
        )
    names = [*EXPERIMENTS, LR_SEARCH]
    raise SettingError(
        f"--experiment={name}: {unknown_name_message('experiment', name, names)}"
    )


def parse_algorithm(word: str) -> str:
    """Returns the name of an algorithm, from its name or from what tables call it."""
    by_letters = {slug(kind.name): name for name, kind in ALGORITHMS.items()}
    name = by_letters.get(slug(word), slug(word))
    return _names(ALGORITHMS)(name)


def _algorithms(text: str) -> tuple[str, ...]:
    return tuple(map(parse_algorithm, flag_values.parse_words(text)))


def _callbacks(text: str) -> tuple[str, ...]:
    return tuple(map(_names(CALLBACKS), flag_values.parse_words(text)))


@dataclasses.dataclass(frozen=True)
class RunOptions(Settings):
    """The experiment, and which of its runs to make."""

    title: ClassVar[str] = "What to run"

    experiment: str = setting(
        "quickstart",
        "The named experiment that settings start from. lr_search finds the learning "
        "rate of --search_for.",
        parse=_experiment,
    )
    protocol: str = setting(
        "paper",
        "The papers' settings, or with reference_code those of the authors' published "
        "code: every difference of the two at once (docs/pmc.md).",
        choices=("paper", "reference_code"),
    )
    algorithms: tuple[str, ...] = setting(
        (),
        "The algorithms, as fedavg,adafed. By default those that the experiment "
        "compares, or prioritized alone.",
        parse=_algorithms,
    )
    rows: Sequence[str] = setting(
        (),
        "The rows of a comparison, instead of --algorithms and --priority: each is an "
        "algorithm, and settings that hold for this row, as 'fedavg; fedprox "
        "fedprox_mu=0.1; prioritized priority=LD,DS,MD normalization=max'. The other "
        "flags hold for all rows (docs/compare.md).",
        parse=flag_values.parse_row,
        repeated=True,
    )
    dataset: str = setting(
        "",
        "The data set, instead of the experiment's. --helpfull lists the names.",
        parse=_names(DATASETS),
    )
    model: str = setting(
        "",
        "The model, instead of the experiment's. --helpfull lists the names.",
        parse=_names(MODELS),
    )
    selection: str = setting(
        "",
        "How the clients of a round are chosen; by default uniform, unless the "
        "experiment has another. --helpfull lists the names.",
        parse=_names(SELECTIONS),
    )
    seed: int = setting(
        None,
        "Sets the seeds of partition, model, cohorts and batches at once.",
        within=SEED,
    )
    seeds: tuple[int, ...] = setting(
        (),
        "Several seeds, as 0,1,2,3,4: each run is repeated under each seed, in the "
        "folders seed_N; effect.md compares the runs with the baseline seed by seed, "
        "with the noise floor.",
        parse=flag_values.parse_seeds,
    )
    baseline: str = setting(
        "",
        "The row that the others are compared with, as tables or flags call it. By "
        "default FedAvg (DS alone is FedAvg), or Dual's weighted mean, else the first "
        "row.",
    )
    inspect: bool = setting(
        False,
        "Describe the federation and each ordering's first weights, without training.",
    )
    search_for: str = setting(
        "mnist_noniid",
        "With --experiment=lr_search, the experiment whose rate is searched: the rate "
        "with which DS first brings half of the devices to its highest target, on a "
        "validation part of the training examples (PMC's rule).",
        parse=_names(EXPERIMENTS),
    )
    held_out: str = setting(
        "pooled",
        "With --experiment=lr_search, what a device is judged on: its share of all "
        "devices' held-out training examples, mixed, as in PMC's published scripts, or "
        "its own.",
        choices=("pooled", "own"),
    )
    learning_rates: tuple[float, ...] = setting(
        (0.5, 0.215, 0.1),
        "With --experiment=lr_search, the rates.",
        parse=flag_values.parse_rates,
    )
    plugin: tuple[str, ...] = setting(
        (),
        "Your modules in this folder, as a or a,b; they are imported first and "
        "register their own data sets, models, criteria, algorithms, callbacks, "
        "experiments and reports (docs/own_data.md, docs/extend.md).",
        parse=flag_values.parse_words,
    )


@dataclasses.dataclass(frozen=True)
class PathOptions(Settings):
    """The folders that are read and written."""

    title: ClassVar[str] = "Data and results"

    data_dir: str = setting(
        "",
        "The data's folder, or one with a subfolder per data set; by default the "
        "environment variable TFF_PMC_DATA_DIR. It contains, for MNIST, the idx .gz "
        "files or mnist.npz; for FEMNIST, the output of LEAF's preprocess.sh; for "
        "CelebA, the raw folder; for CIFAR-10, the python batches or an image folder; "
        "for Dual's obstacles, the folders of the places.",
        parse=flag_values.parse_path,
    )
    cache_dir: str = setting(
        "",
        "The folder for converted data, which is reused; by default that of the data.",
        parse=flag_values.parse_path,
    )
    client_table: str = setting(
        "",
        "A CSV of the column client and attributes (boolean or in [0, 1]). They can be "
        "named in --criteria and --priority; "
        "`tff_pmc.reports.statistics.client_groups.groups` computes the accuracy of "
        "each group.",
        parse=flag_values.parse_path,
    )
    output_dir: str = setting(
        "",
        "A new folder for the results; by default runs/EXPERIMENT-TIME.",
        parse=flag_values.parse_path,
    )
    resume: bool = setting(
        False,
        "Resume the runs in --output_dir, with the same flags. The results are exactly "
        "those without the interruption. There may be more --rounds, orderings and "
        "--seeds than before.",
    )
    callbacks: tuple[str, ...] = setting(
        (),
        "Callbacks, which are called after each round of all runs, as a or a,b. "
        "--helpfull lists the names (docs/extend.md).",
        parse=_callbacks,
    )
    tensorboard: bool = setting(
        False,
        "The same as --callbacks=tensorboard: also write each round's record for "
        "TensorBoard: accuracies and their spread, the distributions over the "
        "clients, and the weights.",
    )


@dataclasses.dataclass(frozen=True)
class OfflineOptions(Settings):
    """Options of commands that read existing runs instead of starting new ones."""

    title: ClassVar[str] = "Tables of runs on disk"

    tables: str = setting(
        "",
        "Recompute the tables of a folder of runs, into --output_dir: those of the "
        "runs' experiment, or of --experiment. The folder is ours, or one that the "
        "authors' published code wrote.",
        parse=flag_values.parse_path,
    )
    compare: tuple[str, ...] = setting(
        (),
        "Compare two folders of runs, as A,B, row by row. They are ours or as the "
        "authors' published code writes them; --output_dir gets comparison.csv and "
        "comparison.png. Runs with several seeds are paired by seed, and --output_dir "
        "gets effect.csv, effect.md and effect.png.",
        parse=flag_values.parse_paths,
    )
    format: str = setting(
        "markdown",
        "With --tables, their format; the numbers are also written as CSV: "
        "markdown, latex (booktabs, for a paper), or csv for the numbers alone.",
        choices=output.TABLE_FORMATS,
    )
    figures: str = setting(
        "png",
        "How figures are written: png, or pdf for a vector PDF with each PNG.",
        choices=output.FIGURE_FORMATS,
    )
    export: str = setting(
        "",
        "A run's folder, recorded with --predictions, to be written into --output_dir "
        "in the form that the evaluation script of the authors' published code reads.",
        parse=flag_values.parse_path,
    )
    export_model: str = setting(
        "",
        "A run's folder, whose trained model is written into --output_dir: weights.npz "
        "and a TensorFlow SavedModel, as a finished run has them in model/.",
        parse=flag_values.parse_path,
    )


@dataclasses.dataclass(frozen=True)
class EngineOptions(Settings):
    """What runs TFF's computations."""

    title: ClassVar[str] = "Engines (docs/scaling.md)"

    engine: str = setting(
        "local",
        "What runs TFF's computations. local: this process, the fastest for one run on "
        "one machine. worker: TFF's worker, a separate process, to compare the "
        "others with. cluster: the workers of Dask, for many runs or large cohorts.",
        choices=tuple(ENGINES),
    )
    private_worker: bool = setting(
        True,
        "Run TFF's worker, where one is needed, in a separate network namespace: "
        "nothing listens.",
    )


@dataclasses.dataclass(frozen=True)
class Command(RunOptions, PathOptions, OfflineOptions, EngineOptions):
    """The experiment, the folders and the actions of one command.

    Attributes:
        invocation: the command line itself, to be recorded.
    """

    invocation: str = ""


ENGINE_OPTIONS: dict[str, str] = {
    "cluster": "tff_pmc.cluster.options.ClusterOptions",
}
"""The classes with the flags of single engines."""

PARTS: tuple[type[Settings], ...] = (
    *(RunOptions, PathOptions, OfflineOptions, EngineOptions),
    *map(pkgutil.resolve_name, ENGINE_OPTIONS.values()),
)
"""The parts of the command, in the order of the help."""

COMMAND_FLAGS = frozenset(flag for part in PARTS for flag in part.flags())
"""The flags of a command that are not settings of its runs."""
