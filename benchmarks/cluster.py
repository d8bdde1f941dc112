"""Compares two workers of a cluster, on one core each, with one worker on one core.

    python benchmarks/cluster.py --spread=clients --shape=femnist --turns=5
    python benchmarks/cluster.py --shape=celeba --epochs=5 --rounds_per_turn=1 --turns=2
    python benchmarks/cluster.py --spread=runs --turns=3

The benchmark starts both clusters, with TLS, and measures them in turns in one run, so
that a drift of the machine's speed affects both alike. Each worker has one TensorFlow
thread and is pinned to one core. This process, which packs, sends and runs the server's
step, is not pinned: on a machine of two cores it competes with the workers.

With `--spread=clients` each round has another cohort, so its packs are sent. With
`--same_cohort` only the first round's packs are sent, which shows the cost of sending.
With `--store` the workers read packs from a store. Bytes are measured for the loopback
in `/proc/net/dev`, including Dask's own messages and TLS, and computed from the types.
With `--spread=runs` the workers share short runs on the embedded digits.

Ratios compare values of the same turn; the first turn, which traces, is not counted.
`--small` uses tiny sizes, to see whether the benchmark works.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import distributed
import numpy as np
import tensorflow_federated as tff

import leaf_data
from tff_pmc import models, processes
from tff_pmc.clients import packing
from tff_pmc.cluster import local_cluster
from tff_pmc.cluster.options import ClusterOptions
from tff_pmc.experiments import experiment
from tff_pmc.experiments.running import sweep
from tff_pmc.experiments.running.execution import DatasetLoader
from tff_pmc.runtime import Runtime

Shape = collections.namedtuple("Shape", "model clients examples image classes epochs")
SHAPES = {
    "femnist": Shape(models.femnist_cnn, 35, 140, (28, 28), 62, 1),
    "celeba": Shape(models.celeba_cnn, 417, 19, (64, 64, 3), 2, 1),
}
BATCH_SIZE = 10
RATE = 0.01


@contextlib.contextmanager
def start_cluster(cores, folder):
    """Starts a worker pinned to each of these cores; yields the `ClusterOptions`."""
    security = distributed.Security.temporary()
    files = {}
    for name in ("tls_ca_file", "tls_client_cert", "tls_client_key"):
        path = pathlib.Path(folder) / f"{name}_{len(cores)}.pem"
        path.write_text(getattr(security, name))
        files[name.replace("_client", "")] = str(path)
    dask_cluster = local_cluster.start(len(cores), security)
    with dask_cluster, distributed.Client(dask_cluster, set_as_default=False) as client:
        for worker, core in zip(client.scheduler_info()["workers"], cores):
            client.run(pin_to_core, core, workers=[worker])
        yield ClusterOptions(dask_cluster.scheduler_address, threads=1, **files)


def pin_to_core(core):
    """Pins all threads of this process, also future ones, to a core."""
    import os

    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})


def store_examples(examples, folder):
    """Writes the examples into a store, which the workers open."""
    path = os.path.join(folder, "store")
    clients = map(examples.client, examples.client_ids)
    leaf_data.write_store(
        (
            (
                name,
                client_examples["x"],
                client_examples["y"],
                client_examples["x"][:1],
                client_examples["y"][:1],
            )
            for name, client_examples in zip(examples.client_ids, clients)
        ),
        path,
    )
    return leaf_data.open_store(path).train_examples


def make_federation(shape):
    """Creates clients of random images, twice as many as a cohort has."""
    generator = np.random.default_rng(0)
    clients = 2 * shape.clients
    total = clients * shape.examples
    return leaf_data.Examples(
        generator.integers(0, 256, (total, *shape.image), dtype=np.uint8),
        generator.integers(0, shape.classes, total).astype(np.int32),
        np.arange(clients + 1, dtype=np.int64) * shape.examples,
        tuple(str(k) for k in range(clients)),
    )


class Rounds:
    """Rounds of one shape on a cluster."""

    def __init__(self, shape, data, options, arguments):
        """Builds the process and its state."""
        self.shape, self.data, self.num_packs = shape, data, arguments.num_packs
        self.same_cohort, self.rounds = arguments.same_cohort, arguments.rounds_per_turn
        self.running = Runtime("cluster", cluster=options)
        self.process = processes.build_prioritized_fed_avg(
            shape.model(),
            priority=("DS",),
            client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
            local_epochs=shape.epochs,
            batch_size=BATCH_SIZE,
        )
        self.generator = np.random.default_rng(1)
        tff.framework.set_default_context(self.running.context)
        self.state = self.process.initialize()

    def turn(self):
        """Returns the median seconds of a round, and the bytes per round."""
        tff.framework.set_default_context(self.running.context)
        seconds, before = [], received_bytes()
        for _ in range(self.rounds):
            cohort = range(self.shape.clients)
            if not self.same_cohort:
                cohort = self.generator.permutation(2 * self.shape.clients)
                cohort = cohort[: self.shape.clients]
            start = time.perf_counter()
            packs = packing.pack(self.data, cohort, num_packs=self.num_packs)
            self.state, _ = self.process.next(self.state, packs)
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds), (received_bytes() - before) / self.rounds

    def predicted_bytes(self, workers):
        """Returns the bytes of a round that the types imply, by kind."""
        weights = self.process.get_model_weights(self.state).trainable
        model = sum(np.asarray(w).nbytes for w in weights)
        examples = self.shape.clients * self.shape.examples
        pack = examples * (int(np.prod(self.shape.image)) + 4)
        if self.data.store_part is not None:
            pack = 450 * self.num_packs + 4 * self.shape.clients
        # One ordering has one sum, which two workers merge.
        return {
            "packs": 0 if self.same_cohort else pack,
            "model to the workers": model * workers,
            "sums between workers": model * (workers - 1),
            "sum back": model,
        }


def received_bytes():
    """Returns the bytes that the loopback has received so far."""
    with open("/proc/net/dev") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name.strip() == "lo":
                return int(rest.split()[0])
    return 0


class Runs:
    """Suites of short runs on a cluster."""

    def __init__(self, options, num_runs, rounds):
        """Connects, and builds the settings of the runs."""
        self.running = Runtime("cluster", cluster=options)
        orders = ["DS", "LD", "LD,DS,MD", "LD,MD,DS", "DS,LD,MD", "MD,LD,DS"]
        self.settings = [
            experiment.settings(
                "quickstart",
                {"priority": tuple(order.split(",")), "rounds": rounds},
            )
            for order in orders[:num_runs]
        ]

    def turn(self):
        """Returns the seconds per run, and None for the bytes."""
        load = DatasetLoader("", "", leaf_data.ClientTable())
        tff.framework.set_default_context(self.running.context)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            remote_runner = self.running.engine.remote_runner(sweep.run_job)
            sweep.run_all(self.settings, load, folder, remote_runner=remote_runner)
            seconds = time.perf_counter() - start
        return seconds / len(self.settings), None


def main():
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spread", choices=["clients", "runs"], default="clients")
    parser.add_argument("--shape", choices=SHAPES, default="femnist")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--num_packs", type=int, default=2)
    parser.add_argument(
        "--same_cohort",
        action="store_true",
        help="one cohort, whose packs are sent once",
    )
    parser.add_argument(
        "--store", action="store_true", help="workers read the clients from a store"
    )
    parser.add_argument("--epochs", type=int, help="local epochs; by default one")
    parser.add_argument("--rounds_per_turn", type=int, default=3)
    parser.add_argument("--num_runs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each run")
    parser.add_argument("--cores", default="0,1", help="the two cores of the workers")
    parser.add_argument("--small", action="store_true", help="tiny sizes, for a trial")
    options = parser.parse_args()
    cores = [int(core) for core in options.cores.split(",")]
    shape = SHAPES[options.shape]
    if options.epochs:
        shape = shape._replace(epochs=options.epochs)
    if options.small:
        shape = shape._replace(clients=4, examples=3)
        options.num_runs, options.rounds = 2, 1
    data = make_federation(shape)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if options.store:
            data = store_examples(data, folder)
        sides = {}
        for number in (1, 2):
            cluster_options = stack.enter_context(start_cluster(cores[:number], folder))
            if options.spread == "clients":
                sides[number] = Rounds(shape, data, cluster_options, options)
            else:
                sides[number] = Runs(cluster_options, options.num_runs, options.rounds)
            stack.callback(sides[number].running.close)
        measurements = {1: [], 2: []}
        for turn in range(options.turns + 1):
            for number, side in sides.items():
                measurement = side.turn()
                if turn:
                    measurements[number].append(measurement)
        show(options, shape, sides, measurements)


def show(options, shape, sides, measurements):
    """Prints seconds, ratios, and the bytes per round."""
    ratios = [
        single[0] / double[0]
        for single, double in zip(measurements[1], measurements[2])
    ]
    what = "a run" if options.spread == "runs" else "a round"
    if options.spread == "clients":
        print(
            f"{options.shape}: {shape.clients} clients x {shape.examples} images, "
            f"batch {BATCH_SIZE}, {shape.epochs} epochs, {options.num_packs} packs; "
            f"{options.turns} turns of {options.rounds_per_turn} rounds"
        )
    else:
        print(
            f"{options.num_runs} runs of {options.rounds} rounds; {options.turns} turns"
        )
    for number, measured in measurements.items():
        seconds = [turn[0] for turn in measured]
        hourly = f", {3600 / statistics.median(seconds):.1f} an hour"
        print(
            f"{number} worker(s): {statistics.median(seconds):.2f} seconds {what}"
            f" ({min(seconds):.2f} to {max(seconds):.2f}){hourly}"
        )
    print(
        f"two workers are {statistics.median(ratios):.2f} times one "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )
    if options.spread == "runs":
        return
    for number, measured in measurements.items():
        predicted = sides[number].predicted_bytes(number)
        parts = ", ".join(
            f"{name} {size / 1e6:.3f}" for name, size in predicted.items()
        )
        print(
            f"{number} worker(s), MB per round: measured {measured[-1][1] / 1e6:.3f}, "
            f"from the types {sum(predicted.values()) / 1e6:.3f} ({parts})"
        )


if __name__ == "__main__":
    main()
