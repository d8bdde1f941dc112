"""A state as one file: read back to the bit, or refused; killed in a save, or not."""

import hashlib
import json
import os
import pickle
import signal

import numpy as np
import pytest

from tff_pmc.record import checkpoints, files
from tff_pmc.record.record_error import RecordError

ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(7, np.int32),
    np.array([], np.float64).reshape(0, 4),
    np.array([True, False]),
    np.array([[np.nan, -0.0, np.inf]], np.float16),
    np.arange(4, dtype=np.int64)[::2],
    np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3)),
]

LENGTHS = {"rounds.csv": (812, "9f" * 32), "clients.csv": (0, "00")}


@pytest.fixture
def path(tmp_path):
    found = str(tmp_path / "round_3.state")
    checkpoints.write_state(found, ARRAYS, 3, LENGTHS)
    return found


def test_arrays_come_back_to_the_bit(path):
    found, lengths = checkpoints.read_state(path, ARRAYS, 3)
    assert lengths == LENGTHS
    for a, b in zip(ARRAYS, found):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    assert os.listdir(os.path.dirname(path)) == ["round_3.state"]


def test_the_form_is_as_it_is_described(path):
    """Read without the package."""
    with open(path, "rb") as file:
        content = file.read()
    form, header, rest = content.split(b"\n", 2)
    assert form == b"tff_pmc state 2"
    header = json.loads(header)
    assert header["round"] == 3 and len(header["arrays"]) == len(ARRAYS)
    assert header["arrays"][0] == {"dtype": "<f4", "shape": [2, 3]}
    assert rest[:24] == ARRAYS[0].tobytes()
    assert json.loads(rest[sum(a.nbytes for a in ARRAYS) : -32]) == {
        name: list(length) for name, length in LENGTHS.items()
    }
    assert rest[-32:] == hashlib.sha256(content[:-32]).digest()


class Evil:
    def __reduce__(self):
        return os._exit, (3,)


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda c: b"", "is empty"),
        (lambda c: c[:-1], "does not end in its checksum: it was cut"),
        (lambda c: c[:10], "is no state"),
        (lambda c: c[:40], "is of another state"),
        (lambda c: c + b"\0" * 1000, "does not end in its checksum"),
        (lambda c: flipped(c, len(c) - 40), "does not end in its checksum"),
        (lambda c: c.replace(b"state 2", b"state 1", 1), "has another form than"),
        (lambda c: c.replace(b"[2, 3]", b"[3, 2]", 1), "is of another state"),
        (lambda c: c.replace(b"<f4", b"<i4", 1), "is of another state"),
        (lambda c: c.replace(b'"round": 3', b'"round": 4', 1), "is of another state"),
        (lambda c: pickle.dumps(Evil()), "is no state of tff_pmc"),
    ],
)
def test_what_is_not_this_state_is_refused(path, damage, says, assert_one_line):
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(damage(content))
    call = lambda: checkpoints.read_state(path, ARRAYS, 3)  # noqa: E731
    assert_one_line(RecordError, call, path, says)


@pytest.mark.parametrize(
    "lengths",
    [
        [],
        {"../x.csv": [1, "9f"]},
        {"x.csv": [-1, "9f"]},
        {"x.csv": [True, "9f"]},
        {"x.csv": [1, 2]},
        {"x.csv": None, "y": {}},
    ],
    ids=str,
)
def test_lengths_that_are_none_are_refused(tmp_path, lengths):
    """Whoever forges a state can forge its checksum."""
    path = str(tmp_path / "round_3.state")
    checkpoints.write_state(path, ARRAYS, 3, lengths)
    with pytest.raises(RecordError, match="does not say how long the record's files"):
        checkpoints.read_state(path, ARRAYS, 3)


def test_a_huge_file_is_not_read(path):
    """Sizes are those of the state that is expected, whatever the file says."""
    with open(path, "r+b") as file:
        file.truncate(1 << 40)  # Sparse.
    with pytest.raises(RecordError, match="does not end in its checksum"):
        checkpoints.read_state(path, ARRAYS, 3)


def test_only_numbers_are_kept(tmp_path):
    for array in (np.array(["a"]), np.array([object()]), np.array([b"a"])):
        with pytest.raises(TypeError, match="cannot be kept"):
            checkpoints.write_state(str(tmp_path / "x"), [array], 1, {})
    assert os.listdir(tmp_path) == []


def killed_in_a_save(path, step, monkeypatch):
    """Whether a child that saves anew was killed before it took a step."""
    pid = os.fork()
    if not pid:
        monkeypatch.setattr(os, step, lambda *a: os.kill(os.getpid(), signal.SIGKILL))
        checkpoints.write_state(path, [array * 0 for array in ARRAYS], 3, {})
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_killed_in_the_middle_of_a_save_the_old_state_is_there(path, step, monkeypatch):
    open(path + ".new", "w").close()  # Of a save before.
    before, _ = checkpoints.read_state(path, ARRAYS, 3)
    assert killed_in_a_save(path, step, monkeypatch)
    for a, b in zip(before, checkpoints.read_state(path, ARRAYS, 3)[0]):
        assert a.tobytes() == b.tobytes()
    files.sweep(os.path.dirname(path))
    assert os.listdir(os.path.dirname(path)) == ["round_3.state"]
