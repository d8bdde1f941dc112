"""A run that is cut off and resumed is the run that was not, bit for bit."""

import json
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 5
FLAGS = [
    "--experiment=quickstart",
    f"--rounds={ROUNDS}",
    "--local_epochs=1",
    "--batch_size=10",
    "--priority=LD,DS,MD",
]
ADJUSTED = ("--adjustment=backtracking",)
RECORDS = ("rounds.csv", "clients.csv", "cohort.csv", "weights.csv")


@pytest.fixture(scope="module")
def resume(run):
    """Runs, or goes on, into a folder, in this process."""
    return lambda folder, *more: run(*FLAGS, f"--output_dir={folder}", *more)


def run_of(folder):
    """The one run in the folder: with a fixed ordering unless another has begun."""
    adjusted = pathlib.Path(folder) / "LD-DS-MD_backtracking"
    return adjusted if adjusted.exists() else pathlib.Path(folder) / "LD-DS-MD"


def last_model(folder, rounds=ROUNDS):
    """The last checkpoint's values, read without the package."""
    path = run_of(folder) / "checkpoints" / f"round_{rounds}.state"
    _, header, rest = path.read_bytes().split(b"\n", 2)
    values, start = [], 0
    for array in json.loads(header)["arrays"]:
        dtype = np.dtype(array["dtype"])
        count = math.prod(array["shape"])
        values.append(np.frombuffer(rest, dtype, count, start).reshape(array["shape"]))
        start += values[-1].nbytes
    return values


def assert_same_run(a, b):
    more = ["candidates.csv"] if (run_of(a) / "candidates.csv").exists() else []
    for name in [*RECORDS, *more]:
        assert (run_of(a) / name).read_bytes() == (run_of(b) / name).read_bytes(), name
    assert (pathlib.Path(a) / "results.csv").read_bytes() == (
        pathlib.Path(b) / "results.csv"
    ).read_bytes()
    for left, right in zip(last_model(a), last_model(b)):
        np.testing.assert_array_equal(left, right)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, resume):
    """The run without interruption."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    done = resume(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def whole_adjusted(tmp_path_factory, resume):
    """The same with the ordering adjusted online, and more than one tried."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    done = resume(folder, *ADJUSTED)
    assert done.returncode == 0, done.stderr
    tried = (run_of(folder) / "candidates.csv").read_text().splitlines()
    assert len(tried) > ROUNDS + 1, "no round tested a second ordering"
    return folder


def rounds_done(folder):
    path = run_of(folder) / "rounds.csv"
    return len(path.read_text().splitlines()) - 1 if path.exists() else 0


def start_and_kill(command, folder, kill_after_round, delay, *more):
    process = subprocess.Popen(
        command(*FLAGS, f"--output_dir={folder}", *more),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    deadline = time.monotonic() + 120
    while rounds_done(folder) < kill_after_round:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(delay)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize(
    "adjusted", [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_killed_at_three_rounds_and_resumed_it_is_the_same_run(
    request, tmp_path, command, resume, adjusted
):
    """SIGKILL wherever it falls: between two files, in a checkpoint, in training."""
    whole = request.getfixturevalue("whole_adjusted" if adjusted else "whole")
    flags = ADJUSTED if adjusted else ()
    folder = tmp_path / "out"
    seed = int(time.time())
    print("kills drawn with the seed", seed)
    generator = random.Random(seed)
    for number, round_num in enumerate(sorted(generator.sample(range(1, ROUNDS), 3))):
        delay = generator.uniform(0, 1)
        again = ["--resume"] if number else []
        start_and_kill(command, folder, round_num, delay, *flags, *again)
    done = resume(folder, *flags, "--resume")
    assert done.returncode == 0, done.stderr
    assert_same_run(folder, whole)


def test_the_same_flags_give_the_same_run_in_a_new_process(whole, tmp_path, run_alone):
    done = run_alone(*FLAGS, f"--output_dir={tmp_path / 'out'}")
    assert done.returncode == 0, done.stderr
    assert_same_run(tmp_path / "out", whole)


@pytest.mark.slow
def test_full_batches_are_deterministic_too(tmp_path, resume):
    for name in ("a", "b"):
        done = resume(tmp_path / name, "--batch_size=0", "--rounds=2")
        assert done.returncode == 0, done.stderr
    for record in RECORDS:
        a, b = (run_of(tmp_path / name) / record for name in ("a", "b"))
        assert a.read_bytes() == b.read_bytes()
    for a, b in zip(last_model(tmp_path / "a", 2), last_model(tmp_path / "b", 2)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_the_number_of_packs_changes_rounding_only(tmp_path, resume):
    """One pack against two, after one round: 1e-5 relative L2 per tensor.

    Later rounds amplify it, once a maximum or a ReLU has taken the other side.
    """
    for packs in (1, 2):
        done = resume(tmp_path / str(packs), f"--num_packs={packs}", "--rounds=1")
        assert done.returncode == 0, done.stderr
    models = [last_model(tmp_path / str(packs), 1) for packs in (1, 2)]
    for a, b in zip(*models):
        a, b = a.astype(float), b.astype(float)
        assert np.linalg.norm(a - b) <= 1e-5 * max(np.linalg.norm(b), 1e-9)


@pytest.fixture
def copy(whole, tmp_path):
    """The finished run as if it had been killed before it said so."""
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    path = run_of(folder) / "run.json"
    path.write_text(path.read_text().replace('"finished"', '"running"'))
    return folder


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("state cut off", f"round_{ROUNDS}.state is broken"),
        ("one bit of the state", f"round_{ROUNDS}.state is broken"),
        # The checkpoint is whole and the record is not: the one before is used.
        ("a row lost", "the record lacks rows"),
        ("no state, and rows cut off", ""),
    ],
)
def test_what_the_last_round_lost_is_made_again(whole, copy, damage, said, resume):
    state = run_of(copy) / "checkpoints" / f"round_{ROUNDS}.state"
    if damage == "state cut off":
        cut_off(state)
    elif damage == "a row lost":
        cut_off(run_of(copy) / "clients.csv")
    elif damage == "one bit of the state":
        content = bytearray(state.read_bytes())
        content[len(content) // 2] ^= 4
        state.write_bytes(content)
    else:
        state.unlink()
        for name in RECORDS:
            cut_off(run_of(copy) / name)
    done = resume(copy, "--resume")
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    assert state.with_name(f"broken_{state.name}").exists() == bool(said)
    assert_same_run(copy, whole)


def everything(folder):
    """All files of a folder: their bytes, and when they were written."""
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "loss", ["emptied", "deleted", "folder deleted", "rows lost", "a row changed"]
)
def test_without_any_usable_checkpoint_nothing_is_changed(copy, loss, resume):
    folder = run_of(copy) / "checkpoints"
    if loss == "folder deleted":
        shutil.rmtree(folder)
    elif loss == "rows lost":  # All states are of rounds that the record lacks.
        (run_of(copy) / "clients.csv").unlink()
    elif loss == "a row changed":
        path = run_of(copy) / "cohort.csv"
        path.write_bytes(path.read_bytes().replace(b"\n1,", b"\n2,", 1))
    else:
        for path in folder.iterdir():
            path.write_bytes(b"") if loss == "emptied" else path.unlink()
    before = everything(copy)
    done = resume(copy, "--resume")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "rounds are recorded, and no checkpoint in" in done.stderr
    assert everything(copy) == before


def test_killed_before_the_first_row_it_begins_anew(whole, copy, resume):
    """No state, and nothing to lose; a leftover of the kill goes."""
    for path in run_of(copy).glob("*.csv"):
        path.unlink()
    for path in (run_of(copy) / "checkpoints").iterdir():
        path.rename(path.with_name("round_0.state.new"))
    done = resume(copy, "--resume")
    assert done.returncode == 0, done.stderr
    assert_same_run(copy, whole)
    names = {path.name for path in (run_of(copy) / "checkpoints").iterdir()}
    assert names == {f"round_{n}.state" for n in (ROUNDS - 1, ROUNDS)}


def test_a_finished_run_is_reported_again_and_not_touched(whole, tmp_path, resume):
    folder = tmp_path / "copy"
    shutil.copytree(whole, folder)
    (folder / "results.csv").unlink()
    before = {p: p.read_bytes() for p in run_of(folder).glob("*.*")}
    done = resume(folder, "--resume")
    assert done.returncode == 0, done.stderr
    assert {p: p.read_bytes() for p in run_of(folder).glob("*.*")} == before
    assert (folder / "results.csv").exists()


def test_a_folder_may_get_more_rounds_and_orderings(whole, tmp_path, resume):
    """They are what they had been if they had been asked for at once."""
    folder = tmp_path / "out"
    assert resume(folder, "--rounds=3").returncode == 0
    done = resume(folder, "--resume")
    assert done.returncode == 0, done.stderr
    assert_same_run(folder, whole)
    done = resume(folder, "--resume", "--priority=DS")
    assert done.returncode == 0, done.stderr
    assert rounds_done(folder) == ROUNDS
    plan = json.loads((folder / "run.json").read_text())
    assert plan["settings"]["orderings"] == ["LD,DS,MD", "DS"]
    longer = json.loads((run_of(folder) / "run.json").read_text())
    assert longer["settings"]["training"]["rounds"] == ROUNDS
    assert len(longer["resumed"]) == 1
    fewer = resume(folder, "--resume")
    assert fewer.returncode == 2
    assert "orderings: ['LD,DS,MD', 'DS'] there, ['LD,DS,MD'] here" in fewer.stderr


def test_a_run_of_an_earlier_version_is_refused_in_one_line(copy, resume):
    """Whose settings, and the parts of whose checkpoints, have other names."""
    path = copy / "run.json"
    path.write_text(path.read_text().replace('"format": 2,', ""))
    done = resume(copy, "--resume")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "was begun by an earlier version" in done.stderr


def test_another_runs_folder_is_refused_with_the_flags_that_differ(whole, resume):
    done = resume(
        whole, "--resume", "--learning_rate=0.2", "--cohort_seed=5", "--rounds=4"
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "learning_rate: 0.1 there, 0.2 here" in done.stderr
    assert "cohort_seed: 0 there, 5 here" in done.stderr
    assert f"rounds: {ROUNDS} there, 4 here" in done.stderr
    assert "batch_size" not in done.stderr


def test_there_must_be_a_folder_and_a_run_in_it(tmp_path, run, resume):
    done = run("--resume")
    assert done.returncode == 2 and "--output_dir" in done.stderr
    done = resume(tmp_path / "nothing", "--resume")
    assert done.returncode == 2 and "there is no run in" in done.stderr
    assert not (tmp_path / "nothing").exists()


def test_two_runs_into_one_folder_the_second_refuses(tmp_path, command, resume):
    folder = tmp_path / "out"
    first = subprocess.Popen(
        command(*FLAGS, f"--output_dir={folder}", "--rounds=1000"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        deadline = time.monotonic() + 120
        while not (run_of(folder) / "rounds.csv").exists():
            assert first.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        second = resume(folder, "--rounds=1000", "--resume")
        assert second.returncode == 2
        assert "is in use" in second.stderr
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()
