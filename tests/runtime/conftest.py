"""Processes with a runtime of their own, and what they leave behind."""

import os
import subprocess
import sys
import textwrap
import time

import pytest

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
    """Starts a process that runs code, which can use `add`, `slow` and `report`."""

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
    """Returns host pid, worker pid and folder, which the child printed."""

    def read(process):
        for line in process.stdout:
            if line.startswith("pids"):
                _, host, worker, folder = line.split()
                return int(host), int(worker), folder
        raise AssertionError("no report: " + process.stderr.read())

    return read


@pytest.fixture(scope="session")
def assert_nothing_left():
    """Checks that host, worker and folder disappear soon."""

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


@pytest.fixture(scope="module")
def worker():
    """A worker, installed as the default context for the tests of a file."""
    from tff_pmc.runtime import Runtime

    with Runtime("worker") as running:
        yield running
