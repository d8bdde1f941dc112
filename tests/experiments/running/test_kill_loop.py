"""The kill loop in short: `make kill-test` is the same with fifty kills."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_killed_in_a_save_and_at_random_a_run_ends_as_if_it_had_not_been():
    done = subprocess.run(
        [sys.executable, "tools/kill_test.py", "--kills=2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill 1: in a save" in done.stdout and "kill 2: at random" in done.stdout
    assert done.stdout.endswith("2 kills, every run as without them\n")
