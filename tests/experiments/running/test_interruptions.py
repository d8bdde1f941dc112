"""Interrupts, closed pipes, a worker that dies, and kills."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from cli import ALONE, ROOT, command, long_run


def test_a_pipe_that_closes_early_does_not_hang(tmp_path):
    line = " ".join(command(*ALONE, "--rounds=2", f"--output_dir={tmp_path / 'out'}"))
    done = subprocess.run(
        ["bash", "-c", f"{line} 2>&- | head -n 1"],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
    )
    assert done.stdout.startswith("digits5k")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupt_keeps_what_was_recorded(tmp_path, number):
    folder = tmp_path / "out"
    process = long_run(folder)
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 128 + number
    assert f"--output_dir={folder} --resume" in err.splitlines()[-1]
    assert "Traceback" not in err and "asyncio" not in err
    info = json.loads((folder / "DS" / "run.json").read_text())
    assert info["status"] == "interrupted"


@pytest.mark.parametrize("seconds", [0.0, 0.7])
def test_an_interrupt_during_the_imports_is_one_line(tmp_path, seconds):
    process = subprocess.Popen(
        command(*ALONE, "--rounds=2", f"--output_dir={tmp_path / 'out'}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    maps = pathlib.Path(f"/proc/{process.pid}/maps")
    while process.poll() is None and "/tensorflow/" not in maps.read_text():
        time.sleep(0.01)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err.splitlines()[-1]


def children(pid):
    """The processes that a process's main thread has started."""
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def test_a_worker_that_dies_ends_the_run_and_keeps_the_record(tmp_path):
    folder = tmp_path / "out"
    process = long_run(folder, "--engine=worker")
    (host,) = children(process.pid)
    (worker,) = children(host)
    os.kill(worker, signal.SIGKILL)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 1
    (line,) = [line for line in err.splitlines() if "run_experiments.py:" in line]
    assert "ended by signal 9" in line
    assert "--resume" in line


@pytest.mark.slow  # `make kill-test` is the same with fifty kills.
def test_a_run_killed_in_a_save_or_at_random_ends_as_if_uninterrupted():
    done = subprocess.run(
        [sys.executable, "tools/kill_test.py", "--kills=2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill 1: during a save" in done.stdout and "kill 2: at random" in done.stdout
    assert done.stdout.endswith("2 kills, every run equal to the uninterrupted run\n")
