"""Checkpoints: a state of any structure, saved, found again, or refused."""

import collections
import gc
import os
import pickle
import signal
import sys
import zipfile

import numpy as np
import pytest

from tff_pmc.record import checkpoints
from tff_pmc.record.checkpoints import Checkpoint
from tff_pmc.record.record_error import RecordError

Pair = collections.namedtuple("Pair", "model count")
SPECIAL = np.array([[np.nan, -0.0, np.inf]], np.float32)
LENGTHS = {"rounds.csv": 10, "clients.csv": 7}


@pytest.fixture
def state():
    """States with the containers that TFF's have; each number makes another."""
    attrs = pytest.importorskip("attrs")

    @attrs.define
    class Inner:
        weights: object
        extra: object

    def make(number):
        weights = collections.OrderedDict(
            b=np.full((2, 3), number, np.float32), a=np.int32(number)
        )
        return Pair(Inner(weights, (np.zeros(0),)), [number, {"flag": number > 1}])

    return make


def test_the_last_checkpoint_is_restored_to_the_bit(tmp_path, state):
    folder = str(tmp_path)
    assert checkpoints.load(folder, state(0)) is None
    saved = state(3)
    saved.model.weights["b"] = np.asfortranarray(np.repeat(SPECIAL, 2, axis=0))
    for number, pair in ((2, state(2)), (3, saved)):
        checkpoints.save(folder, Checkpoint(pair, number, LENGTHS))
    assert os.listdir(folder) == ["checkpoint.npz"]
    checkpoint = checkpoints.load(folder, state(0))
    assert checkpoint.round_num == 3 and checkpoint.lengths == LENGTHS
    assert isinstance(checkpoint.state, Pair)
    assert list(checkpoint.state.model.weights) == ["b", "a"]
    read = checkpoint.state.model.weights["b"]
    assert read.tobytes() == np.repeat(SPECIAL, 2, axis=0).tobytes()
    assert read.dtype == np.float32
    assert checkpoint.state.count[0] == 3 and checkpoint.state.count[1]["flag"]
    # Equal states, equal files.
    first = (tmp_path / checkpoints.FILE_NAME).read_bytes()
    checkpoints.save(folder, Checkpoint(saved, 3, LENGTHS))
    assert (tmp_path / checkpoints.FILE_NAME).read_bytes() == first


class Evil:
    def __reduce__(self):
        return os._exit, (3,)


def archive(path, **changes):
    """Replaces or removes arrays of a checkpoint."""
    with np.load(path) as stored:
        arrays = {**stored, **changes}
    np.savez(path, **{name: a for name, a in arrays.items() if a is not None})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda p: p.write_bytes(b""), "cannot be read"),
        (lambda p: p.write_bytes(p.read_bytes()[:-30]), "cannot be read"),
        (lambda p: p.write_bytes(pickle.dumps(Evil())), "cannot be read"),
        (lambda p: archive(p, leaf_0=np.array([Evil()], object)), "cannot be read"),
        (lambda p: archive(p, leaf_1=None), "cannot be read"),
        (
            lambda p: archive(p, leaf_1=np.zeros((3, 2), np.float32)),
            "not from this process",
        ),
        (lambda p: archive(p, leaf_1=np.zeros((2, 3))), "is not from this process"),
    ],
)
def test_a_broken_checkpoint_is_rejected(
    tmp_path, state, damage, says, assert_one_line
):
    checkpoints.save(str(tmp_path), Checkpoint(state(2), 2, {}))
    path = tmp_path / checkpoints.FILE_NAME
    damage(path)
    read = lambda: checkpoints.load(str(tmp_path), state(0))  # noqa: E731
    assert_one_line(RecordError, read, path, says)


def test_a_state_with_strings_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="cannot be saved"):
        checkpoints.save(str(tmp_path), Checkpoint(["a"], 1, {}))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_kill_during_a_save_leaves_the_old_state(tmp_path, state, step, monkeypatch):
    folder = str(tmp_path)
    checkpoints.save(folder, Checkpoint(state(1), 1, {}))
    pid = os.fork()
    if not pid:
        monkeypatch.setattr(os, step, lambda *a: os.kill(os.getpid(), signal.SIGKILL))
        checkpoints.save(folder, Checkpoint(state(5), 5, {}))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert sorted(os.listdir(folder)) == ["checkpoint.npz", "checkpoint.npz.new"]
    assert checkpoints.load(folder, state(0)).round_num == 1
    checkpoints.save(folder, Checkpoint(state(5), 5, {}))
    assert os.listdir(folder) == ["checkpoint.npz"]


def test_a_save_that_a_signal_ends_leaves_and_prints_nothing(
    tmp_path, state, monkeypatch
):
    begun, said = zipfile.ZipFile.open, []
    monkeypatch.setattr(sys, "unraisablehook", said.append)

    def interrupted(archive, member, *arguments, **options):
        if "lengths" in str(member):
            raise KeyboardInterrupt
        return begun(archive, member, *arguments, **options)

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(str(tmp_path), Checkpoint(state(1), 1, {}))
    gc.collect()
    assert not said and not os.listdir(tmp_path)
