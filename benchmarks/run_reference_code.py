"""Runs the authors' published code on MNIST and keeps its files.

    git clone https://github.com/sisinflab/ClientAware-FL
    python benchmarks/run_reference_code.py --reference_repo=ClientAware-FL \\
        --data_dir=DIR --permutation=0 --rounds=40 --output_dir=THEIRS
    python run_experiments.py --output_dir=BOTH \\
        --compare=THEIRS/experiments/non-iid,OURS

`--clients` uses only the first of their hundred clients, and `--fraction` another size
of cohort, so that a sample of their format stays small.

Their `preparation.py`, server, clients and model run unchanged, with the values of
their `main.py`. `--permutation` is their index of the ordering: 0 is DS, 5 is
LD, DS, MD. Each permutation runs in a process of its own with the same seed, so that
partition, initial weights and the cohorts of all rounds are the same: their server
draws clients with Python's generator, which nothing else of their code uses.

Five things differ in memory, none in their files: the images come from DIR, with the
file names of `leaf_data`; the generators are seeded; the learning rate applies, which
TensorFlow 2.11 to 2.15 ignore if it is called `lr`; a run's folder is named after its
permutation instead of the time; and Keras draws no progress bars. `permutation_N.json`
contains the settings. Files of an interrupted process stay; as in their code, runs
cannot be resumed.
"""

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import random
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from reference_side import check_repo, load

from leaf_data import DataError
from leaf_data.datasets import mnist

FRACTION, CLIENTS, EPOCHS = 0.1, 100, 5  # C, K and E of their main.py; B is None.
RATES = {True: 0.215, False: 0.1}  # By `iid`.
ORDERINGS = 9


class Name:
    """Replaces `datetime`, from which their server builds the name of its folder."""

    def __init__(self, name):
        self._name = name

    def now(self):
        return self

    def strftime(self, form):
        return self._name


def run(repo, arrays, options, permutation):
    """Runs their code once, below `experiments/` in the output folder."""
    folder = pathlib.Path(options.output_dir)
    repo = pathlib.Path(repo).resolve()
    import keras
    import numpy as np
    import tensorflow as tf
    from absl import logging

    logging.set_verbosity(logging.ERROR)  # Keras warns of `lr`, model by model.
    keras.utils.set_random_seed(options.seed)
    keras.utils.disable_interactive_logging()
    keras.datasets.mnist.load_data = lambda: (
        (arrays["x_train"], arrays["y_train"]),
        (arrays["x_test"], arrays["y_test"]),
    )
    parts = {
        part: load(repo, "MNIST", part)
        for part in ("Server", "Client", "Model", "preparation")
    }
    rate = RATES[options.iid] if options.lr is None else options.lr

    def build_model():
        new_model = parts["Model"].Model(rate)
        new_model.optimizer.learning_rate = rate
        return new_model

    np.random.seed(options.seed)  # For the shards, whatever the imports have drawn.
    train, test = parts["preparation"].MNIST(iid=options.iid)
    server = parts["Server"].Server(
        build_model(),
        None,
        EPOCHS,
        options.fraction,
        options.clients,
        options.iid,
        rate,
        permutation,
    )
    clients = [
        parts["Client"].Client(build_model(), *train[k], *test[k])
        for k in range(options.clients)
    ]
    random.seed(options.seed)  # For the cohorts.
    settings = {
        "repository": "sisinflab/ClientAware-FL",
        "permutation": permutation,
        "seed": options.seed,
        "rounds": options.rounds,
        "clients": options.clients,
        "fraction": options.fraction,
        "learning_rate": rate,
        "iid": options.iid,
        "tensorflow": tf.__version__,
        "onednn_fpmath_mode": os.environ.get("TF_SET_ONEDNN_FPMATH_MODE", ""),
        "gpus": len(tf.config.list_physical_devices("GPU")),
    }
    name = f"permutation_{permutation}"
    (folder / f"{name}.json").write_text(json.dumps(settings, indent=2) + "\n")
    parts["Server"].datetime = Name(name)
    os.chdir(folder)  # They write into the current folder.
    server.train(clients, rounds=options.rounds)


def main():
    """Runs each permutation, `--jobs` at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--reference_repo", required=True, help="their repository")
    add("--data_dir", required=True, help="the folder of MNIST's files")
    add("--output_dir", required=True, help="a new folder")
    add("--permutation", type=int, action="append", choices=range(ORDERINGS))
    add("--rounds", type=int, default=1000, help="by default as many as theirs")
    allowed_clients = range(1, CLIENTS + 1)
    add("--clients", type=int, default=CLIENTS, choices=allowed_clients, metavar="K")
    add("--fraction", type=float, default=FRACTION, help="of the clients, a round's")
    add("--iid", action="store_true", help="equal shares of shuffled images")
    add("--lr", type=float, help="by default 0.215 with --iid, else 0.1, as theirs")
    add("--seed", type=int, default=0)
    add("--jobs", type=int, default=1, help="processes at a time")
    options = parser.parse_args()
    check_repo(parser, options.reference_repo)
    if pathlib.Path(options.output_dir).exists():
        parser.exit(
            2,
            f"--output_dir={options.output_dir} already exists: choose a new folder\n",
        )
    try:
        arrays, _ = mnist.read(options.data_dir)
    except DataError as error:
        parser.exit(2, f"{error}\n")
    os.makedirs(options.output_dir)
    fresh = multiprocessing.get_context("spawn")
    waiting = sorted(set(options.permutation or range(ORDERINGS)), reverse=True)
    running, failed = {}, False
    while waiting or running:
        while waiting and len(running) < max(options.jobs, 1):
            rest = (options.reference_repo, arrays, options, waiting.pop())
            process = fresh.Process(target=run, args=rest)
            process.start()
            running[process.sentinel] = process
        for sentinel in multiprocessing.connection.wait(running):
            ended = running.pop(sentinel)
            ended.join()
            failed |= bool(ended.exitcode)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
