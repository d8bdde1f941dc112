"""Seconds per round: packed, with seven sums and with one, against others.

    python benchmarks/round.py --shape=mnist_full --turns=5

The contenders train the same clients from the same weights in one run, in turns
of a few rounds each, so that a drift of the machine's speed hits all alike. The
first round of a turn is left out: while the others ran, the machine may have taken
back the memory of a process that waited. All shuffle each epoch's examples.

    seven sums   the packed process over all subsets of DS, LD, MD, in this process
    one sum      the packed process with DS alone, in this process
    worker       the same as "one sum", in TFF's worker
    bare loop    a `tf.function` loop over the clients in this process, no TFF
    fed_avg      `tff.learning.algorithms.build_weighted_fed_avg`, in TFF's worker

Each contender in TFF's worker has one of its own, whose memory is shown. The first turn
(tracing) is left out; ratios are medians of the ratios turn by turn. To see whether
a worker's memory climbs, many short turns of one contender do:

    python benchmarks/round.py --shape=femnist --epochs=1 --turns=15 \\
        --only="worker"
"""

import argparse
import collections
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from tff_pmc import models, processes, scores
from tff_pmc.clients import packing
from tff_pmc.runtime import Runtime, WorkerEngine

Shape = collections.namedtuple(
    "Shape", "model clients examples batch_size epochs", defaults=[5]
)
SHAPES = {
    "mnist_full": Shape(models.mnist_cnn, 10, 500, 0),
    "mnist_batch": Shape(models.mnist_cnn, 10, 50, 10),
    "femnist": Shape(models.femnist_cnn, 10, 140, 10),
}
ROUNDS_PER_TURN = 3
RATE = 0.05


def federation(shape, classes):
    """Makes clients of random images, which cost as much time as real ones."""
    generator = np.random.default_rng(0)
    total = shape.clients * shape.examples
    return leaf_data.Examples(
        generator.integers(0, 256, (total, 28, 28), dtype=np.uint8),
        generator.integers(0, classes, total).astype(np.int32),
        np.arange(shape.clients + 1, dtype=np.int64) * shape.examples,
        tuple(str(k) for k in range(shape.clients)),
    )


def packed(model, shape, data, basis, num_packs, engine="local"):
    """A packed process with an engine of its own."""
    process = processes.build_prioritized_fed_avg(
        model,
        priority=("DS",),
        basis=basis,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        local_epochs=shape.epochs,
        batch_size=shape.batch_size,
    )

    def clients():
        return packing.pack(data, range(shape.clients), num_packs=num_packs)

    return tff_contender(process, clients, engine)


def fed_avg(model, shape, data):
    """TFF's own weighted federated averaging, one dataset per client."""
    process = tff.learning.algorithms.build_weighted_fed_avg(
        model,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
    )
    size = shape.batch_size or shape.examples

    def clients():
        parts = [data.client(k) for k in range(shape.clients)]
        return [
            tf.data.Dataset.from_tensor_slices((part["x"], part["y"]))
            .shuffle(shape.examples)
            .batch(size)
            .repeat(shape.epochs)
            for part in parts
        ]

    return tff_contender(process, clients, "worker")


def tff_contender(process, clients, engine):
    """Returns a function that runs one round, and the runtime it runs on."""
    running = Runtime(engine).install()
    state = process.initialize()

    def one_round():
        nonlocal state
        tff.framework.set_default_context(running.context)
        state, _ = process.next(state, clients())

    return one_round, running


def bare_loop(model, shape, data):
    """Makes the fastest contender: a compiled loop in this process."""
    variables = [tf.Variable(w) for w in model.initial_weights[0]]

    @tf.function
    def train(weights, x, y):
        size = shape.batch_size or shape.examples
        for _ in tf.range(shape.epochs):
            order = tf.random.shuffle(tf.range(shape.examples))
            for start in tf.range(0, shape.examples, size):
                batch = order[start : start + size]
                batch_x, batch_y = tf.gather(x, batch), tf.gather(y, batch)
                with tf.GradientTape() as tape:
                    tape.watch(weights)
                    output = model.predict_on_batch((weights, ()), batch_x, True)
                    loss = model.loss(output, batch_y)
                gradients = tape.gradient(loss, weights)
                weights = tuple(w - RATE * g for w, g in zip(weights, gradients))
        return weights

    def one_round():
        received = tuple(v.read_value() for v in variables)
        mean = [tf.zeros_like(w) for w in received]
        for k in range(shape.clients):
            part = data.client(k)
            trained = train(received, tf.constant(part["x"]), tf.constant(part["y"]))
            mean = [m + w / shape.clients for m, w in zip(mean, trained)]
        for variable, value in zip(variables, mean):
            variable.assign(value)

    return one_round, None


def measure(contenders, turns):
    """Median seconds of each turn and the worker's memory after it."""
    seconds = {name: [] for name in contenders}
    memory = {name: [] for name in contenders}
    for turn in range(turns + 1):
        for name, (one_round, running) in contenders.items():
            elapsed = []
            for _ in range(ROUNDS_PER_TURN):
                begun = time.perf_counter()
                one_round()
                elapsed.append(time.perf_counter() - begun)
            if turn:
                seconds[name].append(statistics.median(elapsed[1:]))
                memory[name].append(worker_memory(running))
    return seconds, memory


def main():
    """Measures one shape and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="mnist_full")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--num_packs", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument(
        "--only",
        action="append",
        choices=["seven sums", "one sum", "worker", "bare loop", "fed_avg"],
        help="measure this contender; may be repeated",
    )
    options = parser.parse_args()
    shape = SHAPES[options.shape]._replace(epochs=options.epochs)
    model = shape.model()
    data = federation(shape, model.initial_weights[0][-1].size)
    everything = scores.Basis.all_subsets(3)
    makers = {
        "seven sums": lambda: packed(model, shape, data, everything, options.num_packs),
        "one sum": lambda: packed(model, shape, data, None, options.num_packs),
        "worker": lambda: packed(model, shape, data, None, options.num_packs, "worker"),
        "bare loop": lambda: bare_loop(model, shape, data),
        "fed_avg": lambda: fed_avg(model, shape, data),
    }
    names = options.only or list(makers)
    contenders = {name: makers[name]() for name in names}
    try:
        seconds, memory = measure(contenders, options.turns)
    finally:
        for _, running in contenders.values():
            if running:
                running.close()
    print(
        f"{options.shape}: {shape.clients} clients x {shape.examples} images, batch "
        f"{shape.batch_size or 'all'}, {shape.epochs} epochs, {options.num_packs} "
        f"packs; {options.turns} turns"
    )
    print(
        f"{'':12}{'seconds':>9}{'/ bare loop':>13}{'/ fed_avg':>11}{'/ worker':>11}"
        f"{'worker GB, first to last turn':>33}"
    )
    for name in contenders:
        ratios = "".join(
            f"{ratio(seconds[name], seconds[other]):{width}.2f}"
            if other in seconds
            else f"{'':{width}}"
            for other, width in (("bare loop", 13), ("fed_avg", 11), ("worker", 11))
        )
        first, last = memory[name][0] / 1e9, memory[name][-1] / 1e9
        print(
            f"{name:12}{statistics.median(seconds[name]):9.2f}{ratios}"
            + (f"{first:24.2f} to {last:.2f}" if last else "")
        )


def worker_memory(running):
    """The resident memory of the contender's worker, bytes; 0 if it has none."""
    is_worker = running and isinstance(running.engine, WorkerEngine)
    return running.engine.memory() if is_worker else 0


def ratio(ours, theirs):
    """The median of the ratios turn by turn."""
    return statistics.median(a / b for a, b in zip(ours, theirs))


if __name__ == "__main__":
    main()
