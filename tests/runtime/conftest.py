"""Processes with a runtime of their own, and what they leave behind."""

import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff

PRELUDE = """
import os, signal, sys, time
# What a shell starts in the background inherits that interrupts are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf, tensorflow_federated as tff
from tff_pmc.runtime import WorkerDiedError
from tff_pmc.runtime import Runtime as AnyRuntime

def Runtime(**options):
    return AnyRuntime("worker", **options)

@tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
def add(x):
    return tff.federated_sum(x)

@tff.tensorflow.computation(np.int32)
def slow(n):
    return tf.while_loop(
        lambda i, _: i < n,
        lambda i, a: (i + 1, tf.linalg.matmul(a, a) * 1e-3),
        (0, tf.eye(500)),
    )[0]

def report(running):
    host = running.engine._host.pid
    with open(f"/proc/{host}/task/{host}/children") as file:
        worker = int(file.read().split()[0])
    print("pids", host, worker, running.engine._folder, flush=True)
    return worker
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="session")
def start():
    """Starts a process that runs code; it has `add`, `slow` and `report`."""

    def begin(body, **options):
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(body)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    return begin


@pytest.fixture(scope="session")
def read_report():
    """Host pid, worker pid and folder, as the child printed them."""

    def read(process):
        for line in process.stdout:
            if line.startswith("pids"):
                _, host, worker, folder = line.split()
                return int(host), int(worker), folder
        raise AssertionError("no report: " + process.stderr.read())

    return read


@pytest.fixture(scope="session")
def assert_nothing_left():
    """Checks that host, worker and folder are gone soon."""

    def check(host, worker, folder):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if not alive(host) and not alive(worker) and not os.path.exists(folder):
                return
            time.sleep(0.05)
        raise AssertionError(
            f"left: host {alive(host)}, worker {alive(worker)}, "
            f"{os.path.exists(folder)}"
        )

    return check


@pytest.fixture(scope="session")
def summed():
    """Makes a federated computation that sums what another makes of each client."""

    def make(computation):
        type_ = computation.type_signature.parameter

        @tff.federated_computation(tff.FederatedType(type_, tff.CLIENTS))
        def sums(clients):
            return tff.federated_sum(tff.federated_map(computation, clients))

        return sums

    return make


@pytest.fixture(scope="session")
def add():
    """Sums the clients' integers."""

    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def add(x):
        return tff.federated_sum(x)

    return add


@pytest.fixture(scope="session")
def pairs():
    """The arrays of two structures, side by side, which are of the same kinds."""

    def of(a, b):
        tf.nest.assert_same_structure(a, b, check_types=True)
        found = []
        for theirs, ours in zip(tf.nest.flatten(a), tf.nest.flatten(b)):
            assert type(ours) is type(theirs)
            ours, theirs = np.asarray(ours), np.asarray(theirs)
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            found.append((theirs, ours))
        return found

    return of


@pytest.fixture(scope="module")
def worker():
    """A worker, installed as the default context for the tests of a file."""
    from tff_pmc.runtime import Runtime

    with Runtime("worker") as running:
        yield running


@pytest.fixture(scope="module")
def digits():
    """Four clients of real digits, so that training does not go astray."""
    import leaf_data

    data = leaf_data.load("digits5k", partition="noniid").train_examples
    sizes = [9, 4, 6, 5]
    parts = [data.client(k) for k in range(4)]
    return leaf_data.Examples(
        np.concatenate([part["x"][:n] for part, n in zip(parts, sizes)]),
        np.concatenate([part["y"][:n] for part, n in zip(parts, sizes)]),
        np.concatenate([[0], np.cumsum(sizes)]),
        tuple("abcd"),
    )


@pytest.fixture(scope="module")
def process():
    """A process of three criteria and all orderings, with batches."""
    return tff_pmc.build_prioritized_fed_avg(
        tff_pmc.models.mnist_cnn(seed=1),
        priority=("LD", "DS", "MD"),
        basis=tff_pmc.scores.Basis.all_subsets(3),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.05),
        batch_size=4,
    )


@pytest.fixture
def assert_same_bits(pairs):
    def check(a, b):
        for theirs, ours in pairs(a, b):
            assert ours.tobytes() == theirs.tobytes()

    return check
