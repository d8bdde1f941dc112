"""`leaf_data.splits.partition`: exact facts about who gets which example."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from leaf_data import DataError
from leaf_data.splits import partition

# How often each digit is among MNIST's 60,000 training labels.
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.fixture(scope="module")
def labels():
    """Labels with MNIST's counts, in some mixed order."""
    return np.random.RandomState(0).permutation(np.repeat(np.arange(10), MNIST_COUNTS))


def _digest(parts):
    return hashlib.sha256(np.concatenate(parts).tobytes()).hexdigest()


BOTH = pytest.mark.parametrize("cut", [partition.iid, partition.sorted_shards])


@BOTH
def test_every_example_is_used_exactly_once(cut, labels):
    parts = cut(labels)
    assert [len(part) for part in parts] == [600] * 100
    assert all(part.dtype == np.int64 for part in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(60000))


@BOTH
def test_a_pure_function_of_the_seed(cut, labels):
    before = labels.copy()
    np.random.seed(1)
    first = _digest(cut(labels, seed=3))
    np.random.seed(2)
    assert _digest(cut(labels, seed=3)) == first
    assert _digest(cut(labels, seed=np.int64(3))) == first
    assert len({_digest(cut(labels, seed=seed)) for seed in range(5)}) == 5
    np.testing.assert_array_equal(labels, before)


@pytest.mark.parametrize(
    "cut, digest",
    [
        (
            partition.iid,
            "f4c7c8547e1ad3d535b0a88f2e2f39727a68e6222e4379cba111c8a772afc71e",
        ),
        (
            partition.sorted_shards,
            "0d624ef5c6a6973ee327765ab0a586ad9d1add034c16caa1c53fb82957613121",
        ),
    ],
)
def test_a_seed_means_the_same_partition_under_every_numpy(cut, digest, labels):
    assert _digest(cut(labels, seed=7)) == digest


def test_iid_clients_have_all_labels_and_ignore_them(labels):
    parts = partition.iid(labels, seed=5)
    assert all(len(np.unique(labels[part])) == 10 for part in parts)
    assert _digest(partition.iid(np.zeros(60000), seed=5)) == _digest(parts)


@pytest.mark.parametrize("seed", [0, 1, 15])
def test_nine_of_the_200_shards_hold_two_digits(labels, seed):
    parts = partition.sorted_shards(labels, seed=seed)
    shards = [labels[shard] for part in parts for shard in part.reshape(2, 300)]
    digits = [np.unique(shard) for shard in shards]
    assert [len(d) for d in digits].count(1) == 191
    # One at each border between digits: the borders are no multiples of 300.
    mixed = sorted(tuple(d) for d in digits if len(d) > 1)
    assert mixed == [(d, d + 1) for d in range(9)]
    assert np.all(np.cumsum(MNIST_COUNTS)[:-1] % 300 != 0)


def test_non_iid_clients_have_one_to_four_labels(labels):
    def counts(seed):
        parts = partition.sorted_shards(labels, seed=seed)
        return np.bincount([len(np.unique(labels[part])) for part in parts])

    # Index: number of labels. The paper says two at most.
    assert counts(0).tolist() == [0, 2, 90, 8]
    assert counts(15).tolist()[4:] == [1]
    for seed in range(30):
        found = counts(seed)
        assert found[0] == 0 and len(found) in (4, 5), "1 to 4, some with 3"


def test_shards_keep_the_order_of_equal_labels():
    labels = np.array([1, 0, 1, 0, 1, 0, 1, 0])
    for seed in range(4):
        shards = [
            tuple(shard)
            for part in partition.sorted_shards(labels, 2, 2, seed)
            for shard in part.reshape(2, 2)
        ]
        assert sorted(shards) == [(0, 2), (1, 3), (4, 6), (5, 7)]


def test_shards_are_dealt_shuffled(labels):
    parts = partition.sorted_shards(labels, seed=0)
    firsts = [labels[part[0]] for part in parts]
    assert firsts != sorted(firsts)


def test_consecutive_is_file_order():
    parts = partition.consecutive(10000, 100)
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part, np.arange(100 * i, 100 * i + 100))


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: partition.iid(np.zeros(10), 3),
            "10 examples cannot be cut into 3 equal clients",
        ),
        (
            lambda: partition.sorted_shards(np.zeros(10), 3, 2),
            "10 examples cannot be cut into 6 equal shards",
        ),
        (
            lambda: partition.consecutive(10, 4),
            "10 examples cannot be cut into 4 equal clients",
        ),
        (
            lambda: partition.iid(np.zeros(0), 1),
            "0 examples cannot be cut into 1 equal clients",
        ),
        (
            lambda: partition.iid(np.zeros(4), 0),
            "the number of clients has to be at least 1, not 0",
        ),
        (
            lambda: partition.sorted_shards(np.zeros(4), 2, 0),
            "the number of shards a client has to be at least 1, not 0",
        ),
        (
            lambda: partition.sorted_shards(np.zeros(4), -1, -2),
            "the number of clients has to be at least 1, not -1",
        ),
        (
            lambda: partition.iid(np.zeros((2, 2)), 1),
            "labels have to be one-dimensional, not (2, 2)",
        ),
        (
            lambda: partition.by_name("shards", np.zeros(4), 2, 0),
            "no partition 'shards': there are iid, noniid",
        ),
    ],
)
def test_errors_name_what_is_wrong(call, message):
    with pytest.raises(DataError) as error:
        call()
    assert str(error.value) == message


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "1", None, True])
@BOTH
def test_a_seed_that_is_none(cut, seed):
    with pytest.raises(DataError, match="seed has to be an integer from 0 to 2"):
        cut(np.zeros(200), seed=seed)
