"""Kills runs at random and in the middle of saves; each must end as if it had not been.

    .venv/bin/python tools/kill_test.py --kills=50 [--seed=N] [--seconds=S]
    .venv/bin/python tools/kill_test.py --spread=clients

Two runs of a few rounds are made without interruption. Then the same are begun and
killed by SIGKILL, at a random time or in the middle of a save, resumed (`--resume`),
killed again, and so on. Whenever they come to their end, their records and checkpoints
are compared with the undisturbed runs', byte by byte. With
`--spread` the ones that are killed are those of a cluster's driver, whose scheduler and
workers have to end by themselves, before the command is given again. Prints a line for
each kill; exits with 1 at the first difference.
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
PATIENCE = 300
"""Seconds after which a run without output has failed."""


class KillLoopError(Exception):
    """A run that could not be resumed, or is not the one without interruption."""


class Loop:
    """One folder's run, begun and killed again and again."""

    def __init__(
        self, place: pathlib.Path, generator: random.Random, spread: str
    ) -> None:
        """Begins nothing yet.

        Args:
            place: an empty folder.
            generator: what draws the times of the kills.
            spread: what the workers of a cluster share, runs or clients; empty for
                runs without one.
        """
        self._place = place
        self._random = generator
        self._engine = (*CLUSTER, f"--spread={spread}") if spread else ()
        self._whole = place / "whole"
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, kills: int, until: float) -> int:
        """Makes the run without interruption, so many kills, and ends the last run.

        Args:
            kills: the number of kills.
            until: the time (`time.monotonic`) after which no other is begun.

        Returns:
            The number of kills made.

        Raises:
            KillLoopError: see the class.
        """
        made = 0
        if self._start(self._whole).wait(PATIENCE):
            raise KillLoopError("the undisturbed run failed")
        folder = self._fresh()
        while made < kills and time.monotonic() < until:
            killed = self._kill_once(folder, in_a_save=made % 2 == 0)
            if killed is None:
                self._compare(folder)
                folder = self._fresh()
                continue
            made += 1
            print(f"kill {made}: {killed}", flush=True)
        if self._start(folder).wait(PATIENCE):
            raise KillLoopError(f"{folder.name} cannot be resumed")
        self._compare(folder)
        return made

    def _fresh(self) -> pathlib.Path:
        self._number += 1
        return self._place / f"run_{self._number}"

    def _start(self, folder: pathlib.Path) -> subprocess.Popen[bytes]:
        begun = (folder / "run.json").exists()
        words = [sys.executable, str(ROOT / "run_experiments.py"), *FLAGS]
        words += [*self._engine, f"--output_dir={folder}"]
        words += ["--resume"] if begun else []
        with open(self._place / f"{folder.name}.log", "ab") as log:
            self._process = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=ROOT, start_new_session=True
            )
        return self._process

    def close(self) -> None:
        """Ends a run that was left in its middle."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _kill_once(self, folder: pathlib.Path, *, in_a_save: bool) -> str | None:
        """Starts or resumes, and kills; None if the run ended before."""
        since, deadline = time.time(), time.monotonic() + PATIENCE
        enough = _saved(folder) + self._random.randint(0, 3)
        starting = not in_a_save and self._random.random() < 0.25
        process = self._start(folder)
        while process.poll() is None and time.monotonic() < deadline and not starting:
            if _saved(folder) >= enough:
                if not in_a_save or _saves(folder, since):
                    break
            # A save takes milliseconds.
            time.sleep(0 if in_a_save else 0.005)
        if not in_a_save:
            time.sleep(self._random.uniform(0, 15 if starting else 0.5))
        process.kill()
        code = process.wait(PATIENCE)
        _wait_for_the_others(process.pid, PATIENCE)
        if code == 0:
            return None
        if process.returncode > 0 or time.monotonic() > deadline:
            log = self._place / f"{folder.name}.log"
            raise KillLoopError(f"it failed by itself:\n{log.read_text()[-2000:]}")
        left = sorted(path.name for path in folder.glob(f"*/{CHECKPOINT}.new"))
        rounds = sum(_rounds(folder / run) for run in RUNS)
        return (
            f"{'in a save' if in_a_save else 'at random'}, {rounds} rounds "
            f"recorded{', leaving ' + left[0] if left else ''}"
        )

    def _compare(self, folder: pathlib.Path) -> None:
        for run in RUNS:
            for name in RECORDS:
                ours, theirs = folder / run / name, self._whole / run / name
                if not ours.exists() or ours.read_bytes() != theirs.read_bytes():
                    raise KillLoopError(f"{ours} is not as without the kills")
            names = sorted(os.listdir(folder / run))
            if names != sorted(os.listdir(self._whole / run)):
                raise KillLoopError(f"{folder.name} has left {', '.join(names)}")
        print(f"{folder.name}: equal to the byte", flush=True)


def _wait_for_the_others(session: int, seconds: float) -> None:
    """Waits until what a killed process had started has ended, by itself."""
    until = time.monotonic() + seconds
    while left := _members(session):
        if time.monotonic() > until:
            raise KillLoopError(f"the processes {left} do not end")
        time.sleep(0.1)


def _members(session: int) -> list[int]:
    """Returns the processes of a session that run."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *numbers = place.read_text().rpartition(")")[2].split()
        except OSError:  # It has ended.
            continue
        if state != "Z" and int(numbers[2]) == session:
            found.append(int(place.parent.name))
    return found


def _rounds(run: pathlib.Path) -> int:
    try:
        return max(0, (run / "rounds.csv").read_bytes().count(b"\n") - 1)
    except FileNotFoundError:
        return 0


def _saved(folder: pathlib.Path) -> int:
    """Returns the rounds of all runs whose states are saved."""
    return sum(_last_state(folder / run / CHECKPOINT) for run in RUNS)


def _last_state(checkpoint: pathlib.Path) -> int:
    try:
        with np.load(checkpoint) as found:
            return int(found["round"])
    except FileNotFoundError:
        return 0


def _saves(folder: pathlib.Path, since: float) -> bool:
    """Returns whether a new file is there, which no earlier kill has left."""
    try:
        saved = folder.glob(f"*/{CHECKPOINT}.new")
        return any(path.stat().st_mtime > since for path in saved)
    except FileNotFoundError:
        return False


def main() -> int:
    """Runs the loop; returns the exit code."""
    parser = argparse.ArgumentParser(description="Kills runs and compares what is left")
    parser.add_argument("--kills", type=int, default=50, help="how many kills")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop to kill after these"
    )
    parser.add_argument("--spread", choices=("", "runs", "clients"), default="")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # And so clean up.
    until = time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory(prefix="kill_test_") as place:
        loop = Loop(pathlib.Path(place), random.Random(given.seed), given.spread)
        try:
            made = loop.run(given.kills, until)
        except KillLoopError as error:
            print(f"kill_test.py: {error}", file=sys.stderr)
            return 1
        finally:
            loop.close()
    print(f"{made} kills, every run as without them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
