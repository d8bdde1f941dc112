"""Checkpoints: a state of any structure, saved, found again, or refused."""

import collections
import os
import pickle
import signal

import numpy as np
import pytest

from tff_pmc.record import files
from tff_pmc.record.record_error import RecordError

Pair = collections.namedtuple("Pair", "model count")


@pytest.fixture
def state():
    """States with the containers that TFF's have; each number makes another."""
    attrs = pytest.importorskip("attrs")

    @attrs.define
    class Inner:
        weights: object
        own: object

    def of(number):
        weights = collections.OrderedDict(
            b=np.full((2, 3), number, np.float32), a=np.int32(number)
        )
        return Pair(Inner(weights, (np.zeros(0),)), [number, {"flag": number > 1}])

    return of


@pytest.fixture
def checkpoints(tmp_path, state):
    from tff_pmc.record.checkpoints import Checkpoints

    return Checkpoints(str(tmp_path), state(0))


def lengths(number):
    """Of a record that grows by a row of ten bytes a round."""
    return {"rounds.csv": 10 * number, "clients.csv": 7} if number else {}


def names(tmp_path):
    return sorted(os.listdir(tmp_path / "checkpoints"))


def test_the_last_two_are_kept_and_the_last_comes_back(checkpoints, tmp_path, state):
    for number in range(12):
        checkpoints.save(state(number), number, lengths(number))
    assert names(tmp_path) == ["round_10.npz", "round_11.npz"]
    found = checkpoints.load_last(lengths(11))
    assert found.round_num == 11 and found.lengths == lengths(11)
    assert isinstance(found.state, Pair)
    assert list(found.state.model.weights) == ["b", "a"]
    np.testing.assert_array_equal(found.state.model.weights["b"], np.full((2, 3), 11.0))
    assert found.state.model.weights["b"].dtype == np.float32
    assert found.state.count[0] == 11 and found.state.count[1]["flag"]


def test_equal_states_are_equal_files_that_numpy_reads(checkpoints, tmp_path, state):
    path = tmp_path / "checkpoints" / "round_1.npz"
    checkpoints.save(state(1), 1, lengths(1))
    first = path.read_bytes()
    checkpoints.save(state(1), 1, lengths(1))
    assert path.read_bytes() == first
    with np.load(path, allow_pickle=False) as found:
        assert found["tables"].tolist() == ["rounds.csv", "clients.csv"]
        assert found["lengths"].tolist() == [10, 7]
        assert found["leaf_1"].tolist() == [[1.0] * 3] * 2


SPECIAL = np.array([[np.nan, -0.0, np.inf]], np.float32)


def test_a_state_comes_back_to_the_bit(checkpoints, state):
    saved = state(1)
    saved.model.weights["b"] = np.asfortranarray(np.repeat(SPECIAL, 2, axis=0))
    checkpoints.save(saved, 1, {})
    found = checkpoints.load_last({}).state.model.weights["b"]
    assert found.tobytes() == np.repeat(SPECIAL, 2, axis=0).tobytes()


class Evil:
    def __reduce__(self):
        return os._exit, (3,)


def archive(path, **changes):
    """Replaces or removes arrays of a checkpoint."""
    with np.load(path) as found:
        arrays = {**found, **changes}
    np.savez(path, **{name: a for name, a in arrays.items() if a is not None})


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda p: p.write_bytes(b""), "cannot be read"),
        (lambda p: p.write_bytes(p.read_bytes()[:-30]), "cannot be read"),
        (lambda p: p.write_bytes(pickle.dumps(Evil())), "cannot be read"),
        (
            lambda p: p.write_bytes(p.read_bytes().replace(b"\0\0\0@", b"\0\0\0A", 1)),
            "cannot be read: Bad CRC-32",
        ),
        (lambda p: archive(p, leaf_0=np.array([Evil()], object)), "cannot be read"),
        (lambda p: archive(p, leaf_1=None), "cannot be read"),
        (lambda p: archive(p, leaf_1=np.zeros((3, 2), np.float32)), "another state"),
        (lambda p: archive(p, leaf_1=np.zeros((2, 3))), "is of another state"),
        (lambda p: archive(p, lengths=np.array([99, 7])), "rounds.csv lacks rows"),
        (lambda p: archive(p, tables=np.array(["a", "b"])), "a lacks rows"),
    ],
)
def test_a_broken_one_is_set_aside_and_the_one_before_is_used(
    checkpoints, tmp_path, state, damage, says, caplog
):
    checkpoints.save(state(1), 1, lengths(1))
    checkpoints.save(state(2), 2, lengths(2))
    damage(tmp_path / "checkpoints" / "round_2.npz")
    with caplog.at_level("WARNING"):
        found = checkpoints.load_last(lengths(2))
    assert (found.round_num, found.state.count[0]) == (1, 1)
    assert names(tmp_path) == ["broken_round_2.npz", "round_1.npz"]
    assert says in caplog.text


def test_without_a_record_broken_states_do_not_matter(checkpoints, tmp_path):
    assert checkpoints.load_last({}) == (None, 0, {})
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "round_0.npz").write_bytes(b"")
    assert checkpoints.load_last({"rounds.csv": 0}) == (None, 0, {})
    assert names(tmp_path) == ["broken_round_0.npz"]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "there is none"),
        (["round_1.npz"], "round_1.npz cannot be read"),
        (["round_1.npz", "round_7.npz"], "round_7.npz cannot be read"),
        # The forms of earlier versions are never loaded.
        (["round_2", "round_2.state"], "there is none"),
    ],
)
def test_with_a_record_and_no_state_nothing_is_changed(
    checkpoints, tmp_path, found, why, assert_one_line
):
    (tmp_path / "checkpoints").mkdir()
    for name in found:
        (tmp_path / "checkpoints" / name).write_bytes(b"broken")
    call = lambda: checkpoints.load_last(lengths(1))  # noqa: E731
    assert_one_line(RecordError, call, "--resume: rounds are recorded, and no ", why)
    assert names(tmp_path) == found


def test_a_state_that_is_another_or_no_numbers_is_refused(checkpoints, tmp_path, state):
    from tff_pmc.record.checkpoints import Checkpoints

    other = state(1)
    other.model.weights["b"] = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="another structure"):
        checkpoints.save(other, 1, {})
    words = Checkpoints(str(tmp_path), ["a"])
    with pytest.raises(TypeError, match="cannot be kept"):
        words.save(["a"], 1, {})
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_killed_in_the_middle_of_a_save_the_old_state_is_there(
    checkpoints, tmp_path, state, step, monkeypatch
):
    checkpoints.save(state(1), 1, {})
    pid = os.fork()
    if not pid:
        monkeypatch.setattr(os, step, lambda *a: os.kill(os.getpid(), signal.SIGKILL))
        checkpoints.save(state(5), 1, {})
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert names(tmp_path) == ["round_1.npz", "round_1.npz.new"]
    assert checkpoints.load_last({}).state.count[0] == 1
    files.sweep(str(tmp_path / "checkpoints"))
    assert names(tmp_path) == ["round_1.npz"]
