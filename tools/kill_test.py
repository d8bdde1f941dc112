"""Kills runs at random times and during saves.

Each must end with the results of an uninterrupted run.

    .venv/bin/python tools/kill_test.py --kills=50 [--seed=N] [--seconds=S]
    .venv/bin/python tools/kill_test.py --spread=clients

The tool first runs two runs of a few rounds without interruption. Then it starts the
same runs, kills them with SIGKILL at a random time or during a save, resumes them
(`--resume`), kills them again, and so on. Whenever they finish, it compares their
records and checkpoints with those of the uninterrupted runs, byte by byte. With
`--spread` it kills the driver of a cluster, whose scheduler and workers must end by
themselves before the tool resumes the runs. Prints one line per kill; exits with 1 at
the first difference.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROUNDS = 12
CHECKPOINT = "checkpoint.npz"
RECORDS = ("rounds.csv", "clients.csv", "cohort.csv", CHECKPOINT)
FLAGS = (
    *("--experiment=quickstart", "--priority=DS;LD"),
    *(f"--rounds={ROUNDS}", "--local_epochs=1", "--batch_size=10", "--num_packs=2"),
)
RUNS = ("DS", "LD")
CLUSTER = ("--cluster=local", "--cluster_threads=1")
PATIENCE_SECONDS = 300
"""Seconds after which a run that has not ended counts as failed."""


class KillLoopError(Exception):
    """Raised if a run cannot be resumed, or differs from the uninterrupted run."""


class KillLoop:
    """Starts runs in a folder, and kills and resumes them again and again."""

    def __init__(
        self, folder: pathlib.Path, generator: random.Random, spread: str
    ) -> None:
        """Prepares the loop, but starts no run.

        Args:
            folder: an empty folder.
            generator: the random generator of the times of kills.
            spread: what a cluster distributes, runs or clients; empty for runs
                without a cluster.
        """
        self._folder = folder
        self._random = generator
        self._engine = (*CLUSTER, f"--spread={spread}") if spread else ()
        self._reference = folder / "reference"
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, kills: int, until: float) -> int:
        """Runs the uninterrupted run, then kills runs, and finishes the last one.

        Args:
            kills: the number of kills.
            until: the time (`time.monotonic`) after which no further kill is started.

        Returns:
            The number of kills.

        Raises:
            KillLoopError: see the class.
        """
        num_kills = 0
        if self._start(self._reference).wait(PATIENCE_SECONDS):
            raise KillLoopError("the uninterrupted run failed")
        folder = self._next_folder()
        while num_kills < kills and time.monotonic() < until:
            description = self._kill_once(folder, in_a_save=num_kills % 2 == 0)
            if description is None:
                self._compare(folder)
                folder = self._next_folder()
                continue
            num_kills += 1
            print(f"kill {num_kills}: {description}", flush=True)
        if self._start(folder).wait(PATIENCE_SECONDS):
            raise KillLoopError(f"{folder.name} could not be resumed")
        self._compare(folder)
        return num_kills

    def _next_folder(self) -> pathlib.Path:
        self._number += 1
        return self._folder / f"run_{self._number}"

    def _start(self, folder: pathlib.Path) -> subprocess.Popen[bytes]:
        is_started = (folder / "run.json").exists()
        command = [sys.executable, str(ROOT / "run_experiments.py"), *FLAGS]
        command += [*self._engine, f"--output_dir={folder}"]
        command += ["--resume"] if is_started else []
        with open(self._folder / f"{folder.name}.log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=ROOT, start_new_session=True
            )
        return self._process

    def close(self) -> None:
        """Ends a run that is still running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _kill_once(self, folder: pathlib.Path, *, in_a_save: bool) -> str | None:
        """Starts or resumes a run and kills it; None if it ended before."""
        since, deadline = time.time(), time.monotonic() + PATIENCE_SECONDS
        target = _num_saved_rounds(folder) + self._random.randint(0, 3)
        while_starting = not in_a_save and self._random.random() < 0.25
        process = self._start(folder)
        while (
            process.poll() is None
            and time.monotonic() < deadline
            and not while_starting
        ):
            if _num_saved_rounds(folder) >= target:
                if not in_a_save or _is_saving(folder, since):
                    break
            # A save takes milliseconds.
            time.sleep(0 if in_a_save else 0.005)
        if not in_a_save:
            time.sleep(self._random.uniform(0, 15 if while_starting else 0.5))
        process.kill()
        code = process.wait(PATIENCE_SECONDS)
        _wait_for_descendants(process.pid, PATIENCE_SECONDS)
        if code == 0:
            return None
        if process.returncode > 0 or time.monotonic() > deadline:
            log = self._folder / f"{folder.name}.log"
            raise KillLoopError(
                f"{folder.name} failed by itself:\n{log.read_text()[-2000:]}"
            )
        leftovers = sorted(path.name for path in folder.glob(f"*/{CHECKPOINT}.new"))
        rounds = sum(_num_recorded_rounds(folder / run) for run in RUNS)
        return (
            f"{'during a save' if in_a_save else 'at random'}, {rounds} rounds "
            f"recorded{', leaving ' + leftovers[0] if leftovers else ''}"
        )

    def _compare(self, folder: pathlib.Path) -> None:
        for run in RUNS:
            for name in RECORDS:
                actual, expected = folder / run / name, self._reference / run / name
                if not actual.exists() or actual.read_bytes() != expected.read_bytes():
                    raise KillLoopError(
                        f"{actual} differs from that of the uninterrupted run"
                    )
            names = sorted(os.listdir(folder / run))
            if names != sorted(os.listdir(self._reference / run)):
                raise KillLoopError(
                    f"{folder.name} has other files than the uninterrupted run: "
                    f"{', '.join(names)}"
                )
        print(f"{folder.name}: equal to the byte", flush=True)


def _wait_for_descendants(session: int, seconds: float) -> None:
    """Waits until the processes that a killed process started have ended."""
    until = time.monotonic() + seconds
    while remaining := _running_processes(session):
        if time.monotonic() > until:
            raise KillLoopError(f"the processes {remaining} do not end")
        time.sleep(0.1)


def _running_processes(session: int) -> list[int]:
    """Returns the ids of the running processes of a session."""
    processes = []
    for stat_file in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *numbers = stat_file.read_text().rpartition(")")[2].split()
        except OSError:  # It has ended.
            continue
        if state != "Z" and int(numbers[2]) == session:
            processes.append(int(stat_file.parent.name))
    return processes


def _num_recorded_rounds(run: pathlib.Path) -> int:
    try:
        return max(0, (run / "rounds.csv").read_bytes().count(b"\n") - 1)
    except FileNotFoundError:
        return 0


def _num_saved_rounds(folder: pathlib.Path) -> int:
    """Returns the sum over all runs of the rounds of their checkpoints."""
    return sum(_checkpoint_round(folder / run / CHECKPOINT) for run in RUNS)


def _checkpoint_round(checkpoint: pathlib.Path) -> int:
    try:
        with np.load(checkpoint) as arrays:
            return int(arrays["round"])
    except FileNotFoundError:
        return 0


def _is_saving(folder: pathlib.Path, since: float) -> bool:
    """Returns whether a run is writing a checkpoint, which no earlier kill has left."""
    try:
        saved = folder.glob(f"*/{CHECKPOINT}.new")
        return any(path.stat().st_mtime > since for path in saved)
    except FileNotFoundError:
        return False


def main() -> int:
    """Runs the loop; returns the exit code."""
    parser = argparse.ArgumentParser(
        description="Kills runs and compares their results"
    )
    parser.add_argument("--kills", type=int, default=50, help="how many kills")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop to kill after these"
    )
    parser.add_argument("--spread", choices=("", "runs", "clients"), default="")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # And so clean up.
    until = time.monotonic() + arguments.seconds
    with tempfile.TemporaryDirectory(prefix="kill_test_") as folder:
        loop = KillLoop(
            pathlib.Path(folder), random.Random(arguments.seed), arguments.spread
        )
        try:
            num_kills = loop.run(arguments.kills, until)
        except KillLoopError as error:
            print(f"kill_test.py: {error}", file=sys.stderr)
            return 1
        finally:
            loop.close()
    print(f"{num_kills} kills, every run equal to the uninterrupted run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
