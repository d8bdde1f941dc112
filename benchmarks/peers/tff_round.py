"""Runs a contender of `round.py` and `peers.py` on TensorFlow, and prints seconds.

    python tff_round.py --name="one sum" --shape=mnist_full

It prints `ready`, and then runs one round per line of standard input and prints its
seconds.
"""

import argparse
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from shapes import (
    CONTENDERS,
    RATE,
    add_arguments,
    check_parameters,
    get_shape,
    make_data,
)

import leaf_data
from tff_pmc import models, processes, scores
from tff_pmc.clients import packing
from tff_pmc.runtime import Runtime

MODELS = {
    "mnist": models.mnist_cnn,
    "femnist": models.femnist_cnn,
    "celeba": models.celeba_cnn,
    "shakespeare": models.stacked_lstm,
}


def make_federation(shape):
    """Creates the clients."""
    return leaf_data.Examples(
        *make_data(shape),
        np.arange(shape.clients + 1, dtype=np.int64) * shape.examples,
        tuple(str(k) for k in range(shape.clients)),
    )


def packed_clients(model, shape, data, num_packs, basis=None, engine="local"):
    """Builds a process of packed clients; returns a function that runs one round."""
    Runtime(engine).install()
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

    return build_round(process, clients)


def fed_avg(model, shape, data):
    """Builds TFF's own weighted federated averaging, one dataset per client."""
    Runtime("worker").install()
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

    return build_round(process, clients)


def build_round(process, clients):
    """Returns a function that runs one round of a TFF process."""
    state = process.initialize()

    def run_round():
        nonlocal state
        state, _ = process.next(state, clients())

    return run_round


def bare_loop(model, shape, data):
    """Returns the loop that a user of TensorFlow would write, without TFF."""
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
                # An embedding's gradient is sparse.
                gradients = map(tf.convert_to_tensor, tape.gradient(loss, weights))
                weights = tuple(w - RATE * g for w, g in zip(weights, gradients))
        return weights

    def run_round():
        received = tuple(v.read_value() for v in variables)
        mean = [tf.zeros_like(w) for w in received]
        for k in range(shape.clients):
            part = data.client(k)
            trained = train(received, tf.constant(part["x"]), tf.constant(part["y"]))
            mean = [m + w / shape.clients for m, w in zip(mean, trained)]
        for variable, value in zip(variables, mean):
            variable.assign(value)

    return run_round


def build_contender(name, shape, num_packs):
    """Returns the function that runs one round of a contender."""
    model = MODELS[shape.model]()
    check_parameters(shape, sum(w.size for w in model.initial_weights[0]))
    data = make_federation(shape)
    if name == "bare loop":
        return bare_loop(model, shape, data)
    if name == "fed_avg":
        return fed_avg(model, shape, data)
    basis = scores.Basis.all_subsets(3) if name == "seven sums" else None
    engine = "worker" if name == "worker" else "local"
    return packed_clients(model, shape, data, num_packs, basis, engine)


def main():
    """Runs a round per line of standard input and prints its seconds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", choices=CONTENDERS, required=True)
    add_arguments(parser)
    options = parser.parse_args()
    run_round = build_contender(options.name, get_shape(options), options.num_packs)
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        run_round()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
