"""Measures the cost of a round in federations of 1,000 to 1,000,000 clients.

    .venv/bin/python benchmarks/federation.py --stores=DIR --turns=3

It writes made-up stores into DIR, unless they exist (per client 20 training and 4 test
examples of 16 numbers); the largest needs 1.6 GB. In turns, each federation runs eight
rounds of 100 clients, tested by 1,000, in a process of its own. Seconds per round are
the median of the rounds after the second. Memory is the peak of the process, including
the pages of the store that it has read.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import leaf_data

COUNTS = (1_000, 100_000, 1_000_000)
NUMBERS, CLASSES, TRAIN, TEST = 16, 10, 20, 4
FLAGS = (
    "--plugin=federation",
    "--experiment=federation",
    "--evaluate_clients=1000",
    "--rounds=8",
)


def clients(count):
    """Yields made-up clients, whose labels are those of one linear model."""
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(NUMBERS, CLASSES))
    for client in range(count):
        x = generator.normal(size=(TRAIN + TEST, NUMBERS)).astype(np.float32)
        y = (x @ weights).argmax(axis=1)
        yield f"{client:07d}", x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:]


def register():
    """Registers a linear model, and the experiment; for `--plugin`."""
    import dataclasses

    from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
    from tff_pmc.models import MODELS, ModelSettings
    from tff_pmc.models.functional import classifier, initial_weights

    @dataclasses.dataclass(frozen=True)
    class Linear(ModelSettings):
        """A linear model of 16 numbers."""

        element_shape = (NUMBERS,)
        element_dtype = "float32"

        def build(self):
            import tensorflow as tf

            shapes = [(NUMBERS, CLASSES), (CLASSES,)]

            @tf.function
            def predict(model_weights, x, training=True):
                (kernel, bias), _ = model_weights
                return x @ kernel + bias

            return classifier(
                initial_weights(shapes, self.initializer, self.seed),
                predict,
                self.element_shape,
                element_dtype=self.element_dtype,
            )

    MODELS.register("federation_linear", Linear)
    settings = {"dataset": "store", "model": "federation_linear", "batch_size": 10}
    settings |= {"clients_per_round": 100, "local_epochs": 1, "learning_rate": 0.5}
    EXPERIMENTS.register("federation", Experiment("Rounds alone.", settings))


def measure(store):
    """Runs a federation; returns seconds per round, and to the end of the first."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        command = [sys.executable, os.path.join(root, "run_experiments.py"), *FLAGS]
        command += [f"--store={store}", f"--output_dir={out}"]
        start = time.time()
        process = subprocess.Popen(
            command, cwd=os.path.join(root, "benchmarks"), stdout=subprocess.DEVNULL
        )
        first = None
        path = os.path.join(out, "DS", "timing.csv")
        while process.poll() is None:
            if first is None and os.path.exists(path) and os.path.getsize(path) > 20:
                first = time.time() - start
            time.sleep(0.05)
        if process.returncode:
            sys.exit(process.returncode)
        with open(path) as file:
            rows = [line.split(",")[1:] for line in file][1:]
    seconds = statistics.median(sum(map(float, row)) for row in rows[2:])
    return {"round": seconds, "first": first}


def main():
    """Prints the medians of all turns, and their ratios to the smallest federation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stores", required=True, help="the folder of the stores")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:  # In a process of its own, whose child's memory is the run's.
        seconds = measure(arguments.one)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(json.dumps({**seconds, "memory": peak / 1e6}))
        return
    stores = {}
    for count in COUNTS:
        stores[count] = os.path.abspath(os.path.join(arguments.stores, str(count)))
        if not os.path.exists(stores[count]):
            leaf_data.write_store(clients(count), stores[count])
    measurements = {count: [] for count in COUNTS}
    for _ in range(arguments.turns):
        for count in random.sample(COUNTS, len(COUNTS)):
            command = [sys.executable, __file__, "--stores=.", f"--one={stores[count]}"]
            line = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
            measurements[count].append(json.loads(line))
    for name, unit in (("round", "s"), ("first", "s"), ("memory", "GB")):
        base = statistics.median(
            measurement[name] for measurement in measurements[COUNTS[0]]
        )
        for count, count_measurements in measurements.items():
            values = [measurement[name] for measurement in count_measurements]
            middle = statistics.median(values)
            print(
                f"{name:7}{count:>10,} {middle:8.2f} {unit} "
                f"({min(values):.2f}-{max(values):.2f}), ratio to the smallest "
                f"{middle / base:.2f}"
            )


if __name__ == "__main__":
    main()
else:
    register()
