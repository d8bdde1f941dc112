"""Checkpoints: a state of any structure, saved, found again, or refused."""

import collections
import os

import numpy as np
import pytest

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

    return Checkpoints(str(tmp_path / "checkpoints"), state(0))


def lengths(number):
    """Of a record that grows by a row of ten bytes a round."""
    return {"rounds.csv": (10 * number, "9f")} if number else {}


def at_most(number):
    """The check of a record that has so many rounds."""

    def check(found):
        if any(size > 10 * number for size, _ in found.values()):
            raise RecordError("the record lacks rows of its round")

    return check


def names(tmp_path):
    return sorted(os.listdir(tmp_path / "checkpoints"))


def test_the_last_two_are_kept_and_the_last_comes_back(checkpoints, tmp_path, state):
    for number in range(12):
        checkpoints.save(state(number), number, lengths(number))
    assert names(tmp_path) == ["round_10.state", "round_11.state"]
    found = checkpoints.load_last(at_most(11), True)
    assert found.round_num == 11 and found.lengths == lengths(11)
    assert isinstance(found.state, Pair)
    assert list(found.state.model.weights) == ["b", "a"]
    np.testing.assert_array_equal(found.state.model.weights["b"], np.full((2, 3), 11.0))
    assert found.state.model.weights["b"].dtype == np.float32
    assert found.state.count[0] == 11 and found.state.count[1]["flag"]


def test_states_of_rounds_that_lack_rows_and_broken_ones_are_set_aside(
    checkpoints, tmp_path, state
):
    checkpoints.save(state(1), 1, lengths(1))
    checkpoints.save(state(2), 2, lengths(2))
    (tmp_path / "checkpoints" / "round_3.state").write_bytes(b"")
    found = checkpoints.load_last(at_most(1), True)
    assert (found.round_num, found.state.count[0]) == (1, 1)
    assert names(tmp_path) == [
        *("broken_round_2.state", "broken_round_3.state", "round_1.state"),
    ]


def test_without_a_record_broken_states_do_not_matter(checkpoints, tmp_path):
    assert checkpoints.load_last(at_most(0), False) == (None, 0, {})
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "round_0.state").write_bytes(b"")
    assert checkpoints.load_last(at_most(0), False) == (None, 0, {})
    assert names(tmp_path) == ["broken_round_0.state"]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ([], "there is none"),
        (["round_1.state"], "round_1.state is no state"),
        (["round_1.state", "round_7.state"], "round_7.state is no state"),
        # The form of earlier versions, TensorFlow's SavedModels, is never loaded.
        (["round_2"], "there is none"),
    ],
)
def test_with_a_record_and_no_state_nothing_is_changed(
    checkpoints, tmp_path, found, why, assert_one_line
):
    (tmp_path / "checkpoints").mkdir()
    for name in found:
        (tmp_path / "checkpoints" / name).write_bytes(b"broken")
    call = lambda: checkpoints.load_last(at_most(1), True)  # noqa: E731
    assert_one_line(RecordError, call, "--resume: rounds are recorded, and no ", why)
    assert names(tmp_path) == found


def test_a_state_of_other_shapes_is_refused_when_it_is_saved(checkpoints, state):
    other = state(1)
    other.model.weights["b"] = np.zeros(3, np.float32)
    with pytest.raises(ValueError, match="another structure"):
        checkpoints.save(other, 1, {})
