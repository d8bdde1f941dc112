"""Measures seconds per round: packed clients, seven sums and one, against others.

    python benchmarks/round.py --shape=mnist_full --turns=5

The contenders train clients of random images (or letters, with --shape=shakespeare) in
turns of a few rounds each, so that a drift of the machine's speed affects all alike.
The first round of a turn is not counted: while the others ran, the machine may have
reclaimed the memory of a process that waited. All shuffle each epoch's examples.

    seven sums   the packed process over all subsets of DS, LD, MD, in its process
    one sum      the packed process with DS alone, in its process
    worker       the same as "one sum", in TFF's worker
    bare loop    a `tf.function` loop over the clients, no TFF
    fed_avg      `tff.learning.algorithms.build_weighted_fed_avg`, in TFF's worker
    pytorch      the same arithmetic in PyTorch (`make peers` installs it)

Each contender is a process of its own (`peers/`), which waits for its turn, so that
none uses another's threads or memory. The table shows the resident memory of the
process and its child processes. The first turn (tracing) is not counted; ratios are
medians over turns, with the smallest and the largest. To see whether memory grows, run
many short turns of one contender:

    python benchmarks/round.py --shape=femnist --epochs=1 --turns=150 \\
        --only="seven sums"
"""

import argparse
import contextlib
import pathlib
import statistics
import subprocess
import sys

import psutil
from shapes import CONTENDERS, add_arguments, add_turns, format_arguments, get_shape

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
TORCH_PYTHON = PEERS / ".venv" / "torch" / "bin" / "python"
ROUNDS_PER_TURN = 3
# Each contender is compared with these.
AGAINST = ("bare loop", "fed_avg", "pytorch", "worker")


class Contender:
    """A process that runs a round on request."""

    def __init__(self, name, options):
        """Starts the process, and returns when it is ready for its first round."""
        if name == "pytorch":
            command = [str(TORCH_PYTHON), str(PEERS / "torch_loop.py")]
        else:
            command = [sys.executable, str(PEERS / "tff_round.py"), f"--name={name}"]
        command += format_arguments(options)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._expect("ready")

    def turn(self):
        """Runs a turn; returns the median of its rounds' seconds, without the first."""
        seconds = []
        for _ in range(ROUNDS_PER_TURN):
            self._process.stdin.write("round\n")
            self._process.stdin.flush()
            seconds.append(float(self._expect()))
        return statistics.median(seconds[1:])

    def memory(self):
        """Returns the resident bytes of the process and its child processes."""
        process = psutil.Process(self._process.pid)
        family = [process, *process.children(recursive=True)]
        return sum(member.memory_info().rss for member in family)

    def close(self):
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()

    def _expect(self, expected=None):
        line = self._process.stdout.readline().strip()
        if not line or (expected and line != expected):
            sys.exit(f"round.py: {self._process.args} said {line!r}")
        return line


def table(names, seconds, memory):
    """Returns the table, as Markdown."""
    against = [name for name in AGAINST if name in names]
    head = ["contender", "seconds", *(f"/ {name}" for name in against), "GB"]
    rows = [head, ["---"] * len(head)]
    for name in names:
        ratios = [
            "" if name == other else ratio(seconds[name], seconds[other])
            for other in against
        ]
        first, last = (memory[name][turn] / 1e9 for turn in (0, -1))
        median = f"{statistics.median(seconds[name]):.3f}"
        rows.append([name, median, *ratios, f"{first:.2f} to {last:.2f}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def ratio(ours, theirs):
    """Returns the median of the ratios of turns, the smallest and the largest."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def main():
    """Measures one shape and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    add_turns(parser, CONTENDERS, 5)
    options = parser.parse_args()
    names = options.only or list(CONTENDERS)
    if "pytorch" in names and not TORCH_PYTHON.exists():
        sys.exit("round.py: PyTorch is not installed: run `make peers`, or use --only")
    seconds = {name: [] for name in names}
    memory = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        contenders = {}
        for name in names:
            contenders[name] = Contender(name, options)
            stack.callback(contenders[name].close)
        for turn in range(options.turns + 1):
            for name, contender in contenders.items():
                seconds_per_round = contender.turn()
                if turn:
                    seconds[name].append(seconds_per_round)
                    memory[name].append(contender.memory())
    shape = get_shape(options)
    print(
        f"{options.shape}: {shape.clients} clients x {shape.examples} examples, batch "
        f"{shape.batch_size or 'all'}, {shape.epochs} epochs, {options.num_packs} "
        f"packs; {options.turns} turns\n\n{table(names, seconds, memory)}"
    )


if __name__ == "__main__":
    main()
