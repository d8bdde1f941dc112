"""Measures the same rounds here, in PyTorch, in Flower and in pfl-research.

    make peers
    python benchmarks/peers.py --shape=femnist --epochs=2

Each contender (`peers/`) trains the same model on the same clients for a few rounds, in
a new process for each turn. Turns are shuffled. Before them runs one turn of one round,
which is not counted, so that compiling and reading from disk are done. All use the same
two cores. Ours is the packed process with one sum, which is federated averaging.

A turn's seconds per round, wall time and CPU time, are the mean without the first
round. Processes that a contender starts count, also Ray's; memory that several share
counts once (PSS). The table shows medians over turns, with the smallest and the
largest; ratios compare values of the same turn.
"""

import argparse
import contextlib
import ctypes
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import psutil
from round import ratio
from shapes import add_arguments, add_turns, format_arguments, get_shape

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
CORES = 2
# The environment of each contender, and its script.
CONTENDERS = {
    "ours": (None, ["tff_round.py", "--name=one sum"]),
    "PyTorch": ("torch", ["torch_loop.py"]),
    "Flower": ("flower", ["flower_run.py"]),
    "pfl-research": ("pfl", ["pfl_run.py"]),
}
MEASURES = ("s until the end of round 1", "s a round", "CPU s a round", "GB")
SAMPLE_SECONDS = 0.5


def python_path(name):
    """Returns the Python that a contender runs on."""
    environment, _ = CONTENDERS[name]
    if environment is None:
        return pathlib.Path(sys.executable)
    return PEERS / ".venv" / environment / "bin" / "python"


def family():
    """Yields all descendant processes of this one."""
    yield from psutil.Process().children(recursive=True)


def cpu_seconds():
    """Returns the CPU seconds of the descendants, also of their ended children."""
    total = 0.0
    for member in family():
        with contextlib.suppress(psutil.Error):
            times = member.cpu_times()
            total += times.user + times.system
            total += times.children_user + times.children_system
    return total


def memory():
    """Returns the bytes that the descendants hold."""
    total = 0
    for member in family():
        with contextlib.suppress(psutil.Error):
            total += member.memory_full_info().pss
    return total


def turn(name, options, rounds):
    """Runs a contender's rounds in a new process; returns its `MEASURES`."""
    script, *rest = CONTENDERS[name][1]
    command = [str(python_path(name)), str(PEERS / script), *rest]
    command += format_arguments(options)
    peak, ended, marks = 0, threading.Event(), []

    def watch():
        nonlocal peak
        while not ended.wait(SAMPLE_SECONDS):
            peak = max(peak, memory())

    with tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process:
            watcher = threading.Thread(target=watch)
            watcher.start()
            process.stdin.write("round\n" * rounds)
            process.stdin.close()
            for line in process.stdout:
                # A round ends with a number; Flower and Ray print other lines, too.
                with contextlib.suppress(ValueError):
                    float(line)
                    marks.append((time.perf_counter() - start, cpu_seconds()))
            ended.set()
            watcher.join()
        left = list(family())
        for member in left:
            with contextlib.suppress(psutil.Error):
                member.kill()
        psutil.wait_procs(left, timeout=10)
        if process.returncode or len(marks) != rounds:
            log.seek(0)
            sys.exit(f"{log.read()[-5000:]}\npeers.py: {name} ended after {marks}")
    (first, first_cpu), (last, last_cpu) = marks[0], marks[-1]
    later = max(rounds - 1, 1)
    return first, (last - first) / later, (last_cpu - first_cpu) / later, peak / 1e9


def table(turns_by_name):
    """Returns the table, as Markdown."""
    rows = [["", *MEASURES], ["---", *["---:"] * len(MEASURES)]]
    for name, turns in turns_by_name.items():
        cells = [
            f"{statistics.median(m):.2f} ({min(m):.2f}-{max(m):.2f})"
            for m in zip(*turns)
        ]
        rows.append([name, *cells])
    for name, turns in turns_by_name.items():
        if "ours" in turns_by_name and name != "ours":
            pairs = zip(zip(*turns_by_name["ours"]), zip(*turns))
            rows.append([f"ours / {name}", *(ratio(*pair) for pair in pairs)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main():
    """Measures one shape and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    add_turns(parser, CONTENDERS, 3)
    parser.add_argument(
        "--rounds", type=int, default=4, help="rounds per turn, at least 2"
    )
    options = parser.parse_args()
    if options.rounds < 2 or options.turns < 1:
        parser.error("at least 2 rounds and 1 turn are needed")
    names = options.only or list(CONTENDERS)
    missing = [name for name in names if not python_path(name).exists()]
    if missing:
        sys.exit(f"peers.py: {', '.join(missing)} not installed: run `make peers`")
    psutil.Process().cpu_affinity(psutil.Process().cpu_affinity()[:CORES])
    # PR_SET_CHILD_SUBREAPER: processes that outlive their parent stay descendants.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    for name in names:
        turn(name, options, 1)
    turns_by_name = {name: [] for name in names}
    for number in range(options.turns):
        for name in random.sample(names, len(names)):
            turns_by_name[name].append(turn(name, options, options.rounds))
            seconds = " ".join(f"{value:.2f}" for value in turns_by_name[name][-1])
            print(f"turn {number + 1}: {name}: {seconds}", file=sys.stderr)
    shape = get_shape(options)
    print(
        f"{options.shape}: {shape.clients} clients x {shape.examples} images, batch "
        f"{shape.batch_size or 'all'}, {shape.epochs} epochs; {options.turns} turns of "
        f"{options.rounds} rounds\n\n{table(turns_by_name)}"
    )


if __name__ == "__main__":
    main()
