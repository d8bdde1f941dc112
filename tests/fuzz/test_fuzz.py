"""Some seconds of fuzzing for each reader, and what was found before."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
import sys
import time

import fuzzing
import pytest
import run_fuzz
from targets import TARGETS

HERE = pathlib.Path(__file__).parent
FOUND = sorted((HERE / "found").glob("*/*.gz"))
ALL_SECONDS = 30


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """What one run over all targets says."""
    command = [sys.executable, str(HERE / "run_fuzz.py"), "--seed=0"]
    command += [f"--found={tmp_path_factory.mktemp('found')}"]
    command += [f"--seconds={ALL_SECONDS}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_ends_in_an_error_of_one_line_or_a_right_result(name, lines):
    counts = [json.loads(line) for line in lines if line.startswith("{")]
    (count,) = [count for count in counts if count["target"] == name]
    assert [line for line in lines if line.startswith(f"{name}: ")] == []
    assert count["fault"] == 0 < count["accepted"] + count["refused"]


@pytest.mark.parametrize("path", FOUND, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_what_was_found_before_is_no_fault(path):
    assert path.stat().st_size < 10_000
    data, target = gzip.decompress(path.read_bytes()), TARGETS[path.parent.name]
    target.seeds()  # What a reader needs is imported.
    outcome = "accepted" if path.name.startswith("accepted") else "refused"
    # A slow machine is no fault of a reader.
    found = fuzzing.judge(target, data, seconds=10 * fuzzing.SECONDS)
    assert found == (outcome, None)


@pytest.mark.parametrize("name", TARGETS)
def test_good_inputs_are_accepted_and_changed_ones_a_function_of_the_seed(
    name, monkeypatch
):
    target = TARGETS[name]
    outcomes = [fuzzing.judge(target, data)[0] for data in target.seeds()]
    assert set(outcomes) == {"accepted"} or name == "jpeg"
    assert outcomes[0] == "accepted"

    def first(seed):
        return [data for data, _ in zip(fuzzing.inputs(target, seed), range(20))]

    before = first(3)
    monkeypatch.setattr(time, "time", lambda: 1e9)  # Another time of day.
    assert before == first(3) != first(4)


def _spin():
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass


def _raise(error):
    raise error


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: _raise(KeyError("x")), "KeyError in"),
        (lambda: _raise(AssertionError("wrong")), "AssertionError in"),
        (lambda: _raise(ValueError("two\nlines")), "a message of 9 characters"),
        (lambda: _raise(ValueError("\x1b[2J")), "a message of 4 characters"),
        (lambda: _raise(ValueError("m" * 2000)), "a message of 2000 characters"),
        (lambda: bytearray(b"1") * 40_000_000, "40 MB"),
        (_spin, " s"),
    ],
    ids=["raw", "wrong", "lines", "escapes", "long", "memory", "time"],
)
def test_the_oracle_sees_faults(read, says):
    target = fuzzing.Target(
        "bad", lambda: [b""], lambda r, d: d, lambda f, d: read(), ValueError
    )
    outcome, fault = fuzzing.judge(target, b"", seconds=0.1, megabytes=20)
    assert outcome == "fault" and says in fault


def _abort(target, seed, seconds, found):
    (found / "current").write_bytes(b"bad")
    os.abort()


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (_abort, "npz: the process ended with -6"),
        (lambda *_: _raise(RuntimeError("of its own")), "RuntimeError: of its own"),
    ],
)
def test_a_process_that_ends_and_an_error_of_its_own(
    run, says, tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(fuzzing, "run", run)
    arguments = [f"--found={tmp_path}", "--targets=npz", "--seconds=0.1"]
    assert run_fuzz.main(arguments) == 1
    assert says in capfd.readouterr().out
    kept = {path.read_bytes() for path in tmp_path.glob("npz_*_ended")}
    assert kept == ({b"bad"} if run is _abort else set())
