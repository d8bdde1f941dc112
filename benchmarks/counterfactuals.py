"""What judging every ordering costs a round: the same run with and without.

    .venv/bin/python benchmarks/counterfactuals.py --turns=3

In turns, DS runs with `--counterfactuals=orderings` (nine weightings, judged by all
clients) and without, each in a process of its own; seconds a round are the median of
the rounds after the second.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def seconds(flags):
    """Runs the flags; returns the median seconds of a round, and those of training."""
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
    """Prints the medians of both, and the ratios turn by turn."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--experiment", default="quickstart")
    parser.add_argument("--rounds", type=int, default=12)
    given, more = parser.parse_known_args()
    flags = [f"--experiment={given.experiment}", f"--rounds={given.rounds}", *more]
    ratios, whole = [], []
    for _ in range(given.turns):
        plain, _ = seconds(flags)
        asked, training = seconds([*flags, "--counterfactuals=orderings"])
        ratios.append(asked / plain)
        whole.append((plain, asked, training))
    plain, asked, training = (statistics.median(column) for column in zip(*whole))
    print(f"without {plain:.2f} s a round, with {asked:.2f} s, {training:.2f} training")
    print(
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    )


if __name__ == "__main__":
    main()
