"""Two workers of a cluster on a core each, against one worker on one core.

    python benchmarks/cluster.py --spread=clients --shape=femnist --turns=5
    python benchmarks/cluster.py --shape=celeba --epochs=5 --rounds_per_turn=1 --turns=2
    python benchmarks/cluster.py --spread=runs --turns=3

Both clusters are started here, behind TLS, and measured in turns in one run, so that a
drift of the machine's speed hits both alike. Every worker has one TensorFlow thread and
is pinned to one core. This process, which packs, sends and does the server's step, is
pinned to no core: on a machine of two cores it takes from the workers what it needs.

With `--spread=clients` every round has another cohort, so its packs are sent; with
`--same_cohort` none but the first's, which shows what sending them takes, and with
`--store` the workers read them of a store. The bytes are what `/proc/net/dev` says of
the loopback, which also has Dask's own messages and TLS, and what follows from the
types. With `--spread=runs` short runs of the embedded digits are made, whose number
the workers divide.

Ratios are of the same turn; the first turn, which traces, is left out. `--small` makes
everything tiny, to see whether it works.
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
from tff_pmc.experiments.running.execution import Federations
from tff_pmc.runtime import Runtime

Shape = collections.namedtuple("Shape", "model clients examples image classes epochs")
SHAPES = {
    "femnist": Shape(models.femnist_cnn, 35, 140, (28, 28), 62, 1),
    "celeba": Shape(models.celeba_cnn, 417, 19, (64, 64, 3), 2, 1),
}
BATCH_SIZE = 10
RATE = 0.01


@contextlib.contextmanager
def cluster(cores, folder):
    """Starts a worker for each of these cores, pinned to it; gives how to reach it."""
    security = distributed.Security.temporary()
    files = {}
    for name in ("tls_ca_file", "tls_client_cert", "tls_client_key"):
        path = pathlib.Path(folder) / f"{name}_{len(cores)}.pem"
        path.write_text(getattr(security, name))
        files[name.replace("_client", "")] = str(path)
    started = local_cluster.start(len(cores), security)
    with started, distributed.Client(started, set_as_default=False) as client:
        for worker, core in zip(client.scheduler_info()["workers"], cores):
            client.run(pin, core, workers=[worker])
        yield ClusterOptions(started.scheduler_address, threads=1, **files)


def pin(core):
    """Pins all threads of this process, and those to come, to a core."""
    import os

    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})


def stored(examples, folder):
    """Puts the same examples in a store, which the workers open."""
    path = os.path.join(folder, "store")
    clients = map(examples.client, examples.client_ids)
    leaf_data.write_store(
        (
            (name, own["x"], own["y"], own["x"][:1], own["y"][:1])
            for name, own in zip(examples.client_ids, clients)
        ),
        path,
    )
    return leaf_data.open_store(path).train_examples


def federation(shape):
    """Makes twice a cohort of clients of random images, which cost as much as real."""
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

    def __init__(self, shape, data, options, given):
        """Builds the process and its state."""
        self.shape, self.data, self.num_packs = shape, data, given.num_packs
        self.same_cohort, self.rounds = given.same_cohort, given.rounds_per_turn
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
        """Returns the median seconds of a round, and the bytes of a round."""
        tff.framework.set_default_context(self.running.context)
        seconds, before = [], wire()
        for _ in range(self.rounds):
            chosen = range(self.shape.clients)
            if not self.same_cohort:
                chosen = self.generator.permutation(2 * self.shape.clients)
                chosen = chosen[: self.shape.clients]
            begun = time.perf_counter()
            packs = packing.pack(self.data, chosen, num_packs=self.num_packs)
            self.state, _ = self.process.next(self.state, packs)
            seconds.append(time.perf_counter() - begun)
        return statistics.median(seconds), (wire() - before) / self.rounds

    def predicted(self, workers):
        """Returns the bytes of a round that follow from the types, by what they are."""
        weights = self.process.get_model_weights(self.state).trainable
        model = sum(np.asarray(w).nbytes for w in weights)
        examples = self.shape.clients * self.shape.examples
        pack = examples * (int(np.prod(self.shape.image)) + 4)
        if self.data.stored is not None:
            pack = 450 * self.num_packs + 4 * self.shape.clients
        # One ordering: one sum. It is merged with another where there are two workers.
        return {
            "packs": 0 if self.same_cohort else pack,
            "model to the workers": model * workers,
            "sums between workers": model * (workers - 1),
            "sum back": model,
        }


def wire():
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
        """Connects, and makes the settings of the runs."""
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
        """Returns the seconds of a run, when all are made, and no bytes."""
        load = Federations("", "", leaf_data.ClientTable())
        tff.framework.set_default_context(self.running.context)
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            elsewhere = self.running.engine.remote_runner(sweep.run_job)
            sweep.run_all(self.settings, load, folder, run=elsewhere)
            seconds = time.perf_counter() - begun
        return seconds / len(self.settings), None


def main():
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spread", choices=["clients", "runs"], default="clients")
    parser.add_argument("--shape", choices=SHAPES, default="femnist")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--num_packs", type=int, default=2)
    parser.add_argument(
        "--same_cohort", action="store_true", help="one cohort: its packs are sent once"
    )
    parser.add_argument(
        "--store", action="store_true", help="the workers read a store's clients"
    )
    parser.add_argument("--epochs", type=int, help="local ones; by default one")
    parser.add_argument("--rounds_per_turn", type=int, default=3)
    parser.add_argument("--num_runs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=10, help="of each run")
    parser.add_argument("--cores", default="0,1", help="the two cores of the workers")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try it")
    options = parser.parse_args()
    cores = [int(core) for core in options.cores.split(",")]
    shape = SHAPES[options.shape]
    if options.epochs:
        shape = shape._replace(epochs=options.epochs)
    if options.small:
        shape = shape._replace(clients=4, examples=3)
        options.num_runs, options.rounds = 2, 1
    data = federation(shape)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
        if options.store:
            data = stored(data, folder)
        sides = {}
        for number in (1, 2):
            where = held.enter_context(cluster(cores[:number], folder))
            if options.spread == "clients":
                sides[number] = Rounds(shape, data, where, options)
            else:
                sides[number] = Runs(where, options.num_runs, options.rounds)
            held.callback(sides[number].running.close)
        found = {1: [], 2: []}
        for turn in range(options.turns + 1):
            for number, side in sides.items():
                measured = side.turn()
                if turn:
                    found[number].append(measured)
        show(options, shape, sides, found)


def show(options, shape, sides, found):
    """Prints seconds, ratios, and the bytes of a round."""
    ratios = [one[0] / two[0] for one, two in zip(found[1], found[2])]
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
    for number, measured in found.items():
        seconds = [each[0] for each in measured]
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
    for number, measured in found.items():
        predicted = sides[number].predicted(number)
        parts = ", ".join(
            f"{name} {size / 1e6:.3f}" for name, size in predicted.items()
        )
        print(
            f"{number} worker(s), MB a round: on the wire {measured[-1][1] / 1e6:.3f}, "
            f"by types {sum(predicted.values()) / 1e6:.3f} ({parts})"
        )


if __name__ == "__main__":
    main()
