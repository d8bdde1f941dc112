"""The flags of one call of `run_experiments.py` beside a run's settings."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from leaf_data.settings import A_SEED, AT_LEAST_1, Settings, setting
from tff_pmc.settings import flag_values
from tff_pmc.settings.engine_names import ENGINES, SPREADS

LR_SEARCH = "lr_search"
"""The name by which `--experiment` asks for the search of a learning rate."""


@dataclasses.dataclass(frozen=True)
class Command(Settings):
    """The experiment, the folders and the actions that one call names."""

    title: ClassVar[str] = "What to do"

    experiment: str = setting(
        "quickstart",
        "The named experiment that settings start from; or lr_search, which finds the "
        "learning rate of --search_for.",
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
        parse=flag_values.words,
    )
    dataset: str = setting("", "The data set; each experiment has its own.")
    model: str = setting("", "The model; each experiment has its own.")
    data_dir: str = setting(
        "",
        "Where the data is: MNIST's idx .gz files or mnist.npz, what LEAF's "
        "preprocess.sh made of FEMNIST, CelebA's raw folder, CIFAR-10's python batches "
        "or an image folder, Dual's places, or a folder with subfolders of these "
        "names.",
    )
    cache_dir: str = setting(
        "", "Where data that is converted once is kept; by default beside the data."
    )
    client_table: str = setting(
        "",
        "A CSV of client attributes, a column client and one for each attribute "
        "(boolean or in [0, 1]): they can be named in --criteria and --priority, and "
        "accuracy is recorded by group.",
    )
    output_dir: str = setting(
        "", "A new folder for the results; by default runs/EXPERIMENT-TIME."
    )
    resume: bool = setting(
        False,
        "Go on with the run that --output_dir holds, given the same flags: to exactly "
        "what it would have been without the interruption.",
    )
    inspect: bool = setting(
        False,
        "Describe the federation and each ordering's weights on the first cohorts; "
        "train nothing beyond what the criteria need.",
    )
    seed: int = setting(
        None,
        "Sets the seeds of partition, model, cohorts and batches at once.",
        within=A_SEED,
    )
    seeds: tuple[int, ...] = setting(
        (),
        "Several seeds, as 0,1,2,3,4: all runs are made under each, in folders seed_N, "
        "and effect.md holds each of them against the baseline (DS, FedAvg, or Dual's "
        "weighted mean) seed by seed, beside the noise floor.",
        parse=flag_values.seeds,
    )
    search_for: str = setting(
        "mnist_noniid",
        "With --experiment=lr_search, the experiment whose rate is searched: the rate "
        "with which DS first brings half of the devices to its highest target, on a "
        "validation part of the training examples (PMC's rule).",
    )
    learning_rates: tuple[float, ...] = setting(
        (0.5, 0.215, 0.1),
        "With --experiment=lr_search, the rates.",
        parse=flag_values.rates,
    )
    compare: tuple[str, ...] = setting(
        (),
        "Two folders, as A,B: a run or several, ours or as the authors' published code "
        "writes them. Compares them row by row and runs nothing; with --output_dir as "
        "comparison.csv, too.",
        parse=flag_values.words,
    )
    tables: str = setting(
        "",
        "A folder of runs, ours or as the authors' published code writes them, of "
        "which the tables and figures of --experiment are made again, into "
        "--output_dir.",
    )
    export: str = setting(
        "",
        "A run's folder, recorded with --predictions, to be written into --output_dir "
        "in the form of the authors' published code, whose evaluation script then "
        "reads it.",
    )
    engine: str = setting(
        "local",
        "What runs TFF's computations. local: this process, the fastest for one run on "
        "one machine. worker: TFF's own worker, a process of its own, to hold the "
        "others against it. cluster: the workers of Dask on this or on many machines, "
        "for many runs or large cohorts (docs/scaling.md).",
        choices=ENGINES,
    )
    cluster: str = setting(
        "",
        "The cluster of --engine=cluster, which need not be given then: local, which "
        "starts a worker for each core of this machine, or where a Dask scheduler "
        "listens, as tls://HOST:PORT. By default local.",
    )
    tls_ca_file: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the certificate (PEM) of the authority that "
        "both sides trust.",
    )
    tls_cert: str = setting(
        "", "With --cluster=tls://HOST:PORT, the certificate (PEM) of this side."
    )
    tls_key: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the key (PEM, no passphrase) of --tls_cert.",
    )
    insecure_cluster: bool = setting(
        False,
        "Allow --cluster=tcp://HOST:PORT beyond this machine: whoever reaches such a "
        "cluster runs code on all of it.",
    )
    cluster_threads: int = setting(
        None,
        "TensorFlow's threads within an operation, in each worker of a cluster; by "
        "default as many as this process would have, so that results are equal to the "
        "bit.",
        within=AT_LEAST_1,
    )
    spread: str = setting(
        "auto",
        "What a cluster shares out. runs: each run is made by one worker; data and "
        "--output_dir must be where all machines find them. clients: the packs of each "
        "round (--num_packs, at least as many as workers). auto: runs, if there are at "
        "least two, and as many as workers; else clients.",
        choices=SPREADS,
    )
    private_worker: bool = setting(
        True,
        "Run TFF's worker, where one is needed, in a network namespace of its own: "
        "nothing listens.",
    )
    plugin: str = setting(
        "",
        "A module of your own, or several as a,b, imported first: its data sets, "
        "models, criteria, systems, experiments and reports register themselves "
        "(CONTRIBUTING.md).",
    )
