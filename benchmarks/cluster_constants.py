"""What bytes and tasks cost on a cluster: the constants b and o of docs/scaling.md.

    python benchmarks/cluster_constants.py --turns=5

A scheduler and two workers are started here, behind TLS. Of arrays of `--megabytes` the
ways are timed that a round's take: from this process to a worker, from a worker to the
other, and back. Then a tree of sums over small arrays is made, which is nothing but
tasks. All are processes of one machine: its loopback has no wire, so that b is what
serialization and encryption leave.
"""

import argparse
import operator
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import distributed
import numpy as np

from tff_pmc.cluster import local_cluster
from tff_pmc.runtime.pack_sums import merged_in_tree


def timed(function, *arguments, **options):
    """Returns what the function gives, and the seconds it took."""
    begun = time.perf_counter()
    found = function(*arguments, **options)
    return found, time.perf_counter() - begun


def ways(client, workers, array):
    """Returns the seconds of an array's way to a worker, to the other one, and back."""
    (there,), to_worker = timed(
        client.scatter, [array], workers=workers[:1], hash=False
    )
    one = np.ones((), array.dtype)
    # On the other worker, with the array as what it needs; its result stays there.
    moved = client.submit(operator.add, there, one, workers=workers[1:], pure=False)
    _, between = timed(moved.exception)  # It waits, and fetches nothing.
    _, back = timed(moved.result)
    return {"to a worker": to_worker, "to another": between, "back": back}


def tree(client, workers, number):
    """Returns the seconds of a task, in a tree of sums over as many small arrays."""
    ones = client.scatter([np.ones(3)] * number, workers=workers, hash=False)

    def total():
        leaves = (
            client.submit(np.negative, one, workers=[workers[k * 2 // number]])
            for k, one in enumerate(ones)
        )
        add = operator.add
        return merged_in_tree(leaves, lambda a, b: client.submit(add, a, b)).result()

    found, seconds = timed(total)
    assert found.tolist() == [-number] * 3
    return seconds / (2 * number - 1)


def main():
    """Measures and prints medians, smallest and largest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=200, help="leaves of the tree")
    options = parser.parse_args()
    cluster = local_cluster.start(2, distributed.Security.temporary())
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        workers = sorted(client.scheduler_info()["workers"])
        found = []
        for turn in range(options.turns + 1):
            numbers = options.megabytes * 250_000
            array = np.random.default_rng(turn).random(numbers, dtype=np.float32)
            found.append(ways(client, workers, array))
            found[-1]["a task"] = tree(client, workers, options.tasks)
    for name in found[0]:
        seconds = [each[name] for each in found[1:]]
        if name == "a task":
            figures, unit = [1000 * s for s in seconds], "ms a task"
        else:
            figures, unit = [array.nbytes / s / 1e6 for s in seconds], "MB a second"
        print(
            f"{name}: {statistics.median(figures):.2f} {unit} "
            f"({min(figures):.2f} to {max(figures):.2f})"
        )


if __name__ == "__main__":
    main()
