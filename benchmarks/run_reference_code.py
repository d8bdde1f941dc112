"""Runs the authors' published code on MNIST and keeps what it writes.

    git clone https://github.com/sisinflab/ClientAware-FL
    python benchmarks/run_reference_code.py --reference_repo=ClientAware-FL \\
        --data_dir=DIR --permutation=0 --rounds=40 --output_dir=THEIRS
    python run_experiments.py --output_dir=BOTH \\
        --compare=THEIRS/experiments/non-iid,OURS

With `--clients` it is the first of their hundred clients alone, and with `--fraction`
a cohort of another size: so a sample of their form stays small.

Their `preparation.py`, server, clients and model run as they are, with the values of
their `main.py`. `--permutation` is their index of the ordering: 0 is DS, 5 is
LD, DS, MD. Every permutation runs in a process of its own with the same seed, so that
partition, initial weights and the cohorts of round after round are the same: their
clients are drawn with Python's generator, which nothing else of theirs uses.

In memory, and in none of their files, five things are another's: the images come from
DIR, by the names that `leaf_data` knows; the generators have a seed; the learning rate
is honoured, which TensorFlow 2.11 to 2.15 ignore where it is called `lr`; a run's
folder is named by its permutation and not by the time; and Keras draws no bars.
`permutation_N.json` has the settings. What was written of a round whose process was
ended stays; there is no resuming, as in their code.
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
    """Stands for `datetime`, of which their server asks its folder's name."""

    def __init__(self, name):
        self._name = name

    def now(self):
        return self

    def strftime(self, form):
        return self._name


def run(repo, arrays, options, permutation):
    """Makes one run of theirs, below `experiments/` in the output folder."""
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

    def model():
        made = parts["Model"].Model(rate)
        made.optimizer.learning_rate = rate
        return made

    np.random.seed(options.seed)  # Of the shards, whatever the imports have drawn.
    train, test = parts["preparation"].MNIST(iid=options.iid)
    server = parts["Server"].Server(
        model(),
        None,
        EPOCHS,
        options.fraction,
        options.clients,
        options.iid,
        rate,
        permutation,
    )
    clients = [
        parts["Client"].Client(model(), *train[k], *test[k])
        for k in range(options.clients)
    ]
    random.seed(options.seed)  # Of the cohorts.
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
    os.chdir(folder)  # They write where they are run.
    server.train(clients, rounds=options.rounds)


def main():
    """Runs each permutation, `--jobs` at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--reference_repo", required=True, help="their repository")
    add("--data_dir", required=True, help="the folder of MNIST's files")
    add("--output_dir", required=True, help="a new folder")
    add("--permutation", type=int, action="append", choices=range(ORDERINGS))
    add("--rounds", type=int, default=1000, help="as many as theirs by default")
    known = range(1, CLIENTS + 1)
    add("--clients", type=int, default=CLIENTS, choices=known, metavar="K")
    add("--fraction", type=float, default=FRACTION, help="of the clients, a round's")
    add("--iid", action="store_true", help="equal shares of shuffled images")
    add("--lr", type=float, help="by default 0.215 with --iid, else 0.1, as theirs")
    add("--seed", type=int, default=0)
    add("--jobs", type=int, default=1, help="processes at a time")
    options = parser.parse_args()
    check_repo(parser, options.reference_repo)
    if pathlib.Path(options.output_dir).exists():
        parser.exit(2, f"--output_dir={options.output_dir} exists already\n")
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
