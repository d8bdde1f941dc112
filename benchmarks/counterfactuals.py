"""Measures what judging every ordering costs: the same run with and without it.

    .venv/bin/python benchmarks/counterfactuals.py --turns=3

In turns, DS runs with `--counterfactuals=orderings` (nine weightings, judged by all
clients) and without, each in a process of its own. Seconds per round are the median
of the rounds after the second.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def measure_seconds(flags):
    """Runs with the flags; returns median seconds per round, and of its training."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        command = [sys.executable, os.path.join(ROOT, "run_experiments.py"), *flags]
        command += ["--priority=DS", f"--output_dir={out}"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            sys.exit(done.returncode)
        with open(os.path.join(out, "DS", "timing.csv")) as file:
            rows = [list(map(float, line.split(",")[1:])) for line in list(file)[3:]]
    return statistics.median(map(sum, rows)), statistics.median(row[0] for row in rows)


def main():
    """Prints the medians of both, and the median ratio over turns."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--experiment", default="quickstart")
    parser.add_argument("--rounds", type=int, default=12)
    arguments, other_flags = parser.parse_known_args()
    flags = [
        f"--experiment={arguments.experiment}",
        f"--rounds={arguments.rounds}",
        *other_flags,
    ]
    ratios, rows = [], []
    for _ in range(arguments.turns):
        without, _ = measure_seconds(flags)
        with_counterfactuals, training = measure_seconds(
            [*flags, "--counterfactuals=orderings"]
        )
        ratios.append(with_counterfactuals / without)
        rows.append((without, with_counterfactuals, training))
    without, with_counterfactuals, training = (
        statistics.median(column) for column in zip(*rows)
    )
    print(
        f"without {without:.2f} s per round, with {with_counterfactuals:.2f} s, "
        f"{training:.2f} training"
    )
    print(
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
