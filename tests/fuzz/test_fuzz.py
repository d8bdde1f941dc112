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
    assert count["faults"] == 0 < count["accepted"] + count["refused"]


@pytest.mark.parametrize("path", FOUND, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_what_was_found_before_is_no_fault(path):
    data, target = gzip.decompress(path.read_bytes()), TARGETS[path.parent.name]
    target.seeds()  # What a reader needs is imported.
    assert fuzzing.judge(target, data) == ("refused", None)


def test_found_inputs_are_small_and_of_targets_that_there_are():
    for path in FOUND:
        assert path.parent.name in TARGETS and path.stat().st_size < 10_000


@pytest.mark.parametrize("name", TARGETS)
def test_the_good_inputs_are_accepted(name):
    target = TARGETS[name]
    outcomes = [fuzzing.judge(target, data)[0] for data in target.seeds()]
    assert set(outcomes) == {"accepted"} or name == "jpeg"
    assert outcomes[0] == "accepted"


@pytest.mark.parametrize("name", TARGETS)
def test_an_input_is_a_function_of_the_seed(name):
    def first(seed):
        return [data for data, _ in zip(fuzzing.inputs(TARGETS[name], seed), range(9))]

    assert first(3) == first(3)
    assert first(3) != first(4)


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
        "bad", lambda: [b""], lambda r, d: d, lambda f, d: read(), (ValueError,)
    )
    outcome, fault = fuzzing.judge(target, b"", seconds=0.1, megabytes=20)
    assert outcome == "fault" and says in fault


def test_a_process_that_ends_is_seen_and_its_input_kept(tmp_path, monkeypatch, capfd):
    import run_fuzz

    def crash(target, seed, seconds, found):
        (found / "current").write_bytes(b"bad")
        os.abort()

    monkeypatch.setattr(fuzzing, "run", crash)
    code = run_fuzz.main([f"--found={tmp_path}", "--targets=npz", "--seconds=0.1"])
    assert code == 1
    kept = [path.read_bytes() for path in tmp_path.glob("npz_*_ended")]
    assert kept and set(kept) == {b"bad"}
    assert "npz: the process ended with -6" in capfd.readouterr().out


def test_an_error_of_the_fuzzer_itself_is_shown_and_no_success(
    tmp_path, monkeypatch, capfd
):
    import run_fuzz

    monkeypatch.setattr(fuzzing, "run", lambda *_: _raise(RuntimeError("of its own")))
    code = run_fuzz.main([f"--found={tmp_path}", "--targets=npz", "--seconds=0.1"])
    assert code == 1
    assert "RuntimeError: of its own" in capfd.readouterr().out
