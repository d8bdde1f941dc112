"""Divisions: exact facts about who gets which example."""

import collections
import fractions
import hashlib

import numpy as np
import pytest

from leaf_data import partition

# How often each digit is among MNIST's 60,000 training labels.
MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.fixture(scope="module")
def labels():
    """Labels with MNIST's counts, in some mixed order."""
    return np.random.RandomState(0).permutation(np.repeat(np.arange(10), MNIST_COUNTS))


def _digest(parts):
    return hashlib.sha256(np.concatenate(parts).tobytes()).hexdigest()


EQUAL, UNEQUAL = np.full(100, 600), partition.power_law(60000, 100, 1)


def _iid(labels, sizes=EQUAL, seed=0):
    return partition.iid(labels, sizes, seed)


def _shards(labels, sizes=EQUAL, seed=0):
    return partition.sorted_shards(labels, len(sizes), seed)


def _dirichlet(labels, sizes=EQUAL, seed=0):
    return partition.dirichlet(labels, sizes, 0.1, seed)


@pytest.mark.parametrize(
    "cut, sizes",
    [
        *((cut, EQUAL) for cut in (_iid, _shards, _dirichlet)),
        *((cut, UNEQUAL) for cut in (_iid, _dirichlet)),
    ],
)
def test_every_example_is_used_exactly_once(cut, sizes, labels):
    parts = cut(labels, sizes)
    assert [len(part) for part in parts] == sizes.tolist()
    assert all(part.dtype == np.int64 for part in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(60000))


@pytest.mark.parametrize(
    "cut, digest",
    [
        (_iid, "f4c7c8547e1ad3d5"),
        (_shards, "0d624ef5c6a6973e"),
        (_dirichlet, "f5484e8e2473061f"),
    ],
)
def test_a_seed_gives_the_same_partition_under_every_numpy(cut, digest, labels):
    before = labels.copy()
    np.random.rand()  # Nothing is drawn from NumPy's own generator.
    assert _digest(cut(labels, seed=np.int64(7))).startswith(digest)
    assert not _digest(cut(labels, seed=8)).startswith(digest)
    np.testing.assert_array_equal(labels, before)


@pytest.mark.parametrize("seed", [0, 1, 15])
def test_nine_of_the_200_shards_hold_two_digits(labels, seed):
    parts = partition.sorted_shards(labels, seed=seed)
    shards = [labels[shard] for part in parts for shard in part.reshape(2, 300)]
    digits = [np.unique(shard) for shard in shards]
    assert [len(d) for d in digits].count(1) == 191
    # One at each border between digits: the borders are not multiples of 300.
    mixed = sorted(tuple(d) for d in digits if len(d) > 1)
    assert mixed == [(d, d + 1) for d in range(9)]
    assert np.all(np.cumsum(MNIST_COUNTS)[:-1] % 300 != 0)


def test_sizes_fall_as_one_over_the_rank():
    for total, clients in ((60000, 100), (4000, 100), (7, 7), (100, 3)):
        sizes = partition.power_law(total, clients, 5)
        ranked = np.sort(sizes)[::-1]
        harmonic = sum(1 / rank for rank in range(1, clients + 1))
        law = [
            1 + (total - clients) / rank / harmonic for rank in range(1, clients + 1)
        ]
        assert sizes.sum() == total and ranked.min() >= 1
        np.testing.assert_allclose(ranked, law, atol=1)
    by_seed = {tuple(partition.power_law(4000, 100, seed)) for seed in range(5)}
    assert len(by_seed) == 5 and len({tuple(sorted(s)) for s in by_seed}) == 1


def test_a_smaller_alpha_concentrates_clients_on_fewer_classes():
    """With clients so small that no class runs out early, the shares are as drawn."""
    many = np.tile(np.arange(10), 4000)
    for alpha in (0.1, 1.0, 100.0):
        parts = partition.dirichlet(many, np.full(400, 100), alpha, 3)
        largest = np.mean([np.bincount(many[part]).max() / 100 for part in parts])
        drawn = np.random.default_rng(0).dirichlet([alpha] * 10, 20000)
        mixed = np.random.default_rng(1).multinomial(100, drawn)
        expected = (mixed.max(axis=1) / 100).mean()
        assert abs(largest - expected) < 0.03, alpha


def test_the_last_clients_are_not_more_mixed_than_the_first(labels):
    """Clients that are dealt late are no more mixed than those that come first."""
    parts = partition.dirichlet(labels, EQUAL, 0.05, 0)
    kinds = [len(np.unique(labels[part])) for part in parts]
    assert abs(np.mean(kinds[:50]) - np.mean(kinds[50:])) < 1.5


def test_a_fraction_of_every_class_is_split_off():
    y = np.repeat([0, 1, 3], [10, 4, 7])
    part, others = partition.split_classes(y, 0.5, partition.random_state(1))
    assert collections.Counter(y[part].tolist()) == {0: 5, 1: 2, 3: 4}
    assert sorted([*part, *others]) == list(range(21))
    assert part.tolist() == sorted(part) and others.tolist() == sorted(others)
    again, _ = partition.split_classes(y, 0.5, partition.random_state(2))
    assert again.tolist() != part.tolist()
    everything, nothing = partition.split_classes(y, 1, partition.random_state(1))
    assert (len(everything), len(nothing)) == (21, 0)


def test_classes_that_take_turns():
    y = np.tile([2, 0, 1], 10)
    order = partition.mixed_classes(y, partition.random_state(1))
    assert sorted(order) == list(range(30))
    for start in range(0, 30, 5):
        counts = np.bincount(y[order[start : start + 5]], minlength=3)
        assert sorted(counts.tolist()) == [1, 2, 2]
    other = partition.mixed_classes(y, partition.random_state(2))
    assert order.tolist() != other.tolist()


def test_every_example_is_in_the_test_part_of_some_seed():
    drawn = {
        int(k) for seed in range(60) for k in partition.leaf_split("a", 10, seed)[1]
    }
    assert drawn == set(range(10))
    first, second = (partition.leaf_split(user, 50, 0)[1].tolist() for user in "ab")
    assert first != second
    # Half a character is a name as any other; another's numbers are as they ever were.
    train, test = partition.leaf_split("\ud800", 10, seed=0)
    assert np.union1d(train, test).tolist() == list(range(10))
    assert partition.leaf_split("é", 10, seed=3)[1].tolist() == [0]


def test_sampling_takes_exactly_the_fraction_and_shuffles():
    sizes = np.array([5, 9, 3, 8, 1, 7, 7, 7])
    files = np.array([3, 3, 3, 3, 3, 0, 0, 0])
    draws = set()
    for seed in range(30):
        taken = partition.leaf_sample(sizes, files, 0.6, seed)
        assert taken[files == 3].sum() == 15 and taken[files == 0].sum() == 12
        for in_file in (files == 3, files == 0):
            part = (taken[in_file] > 0) & (taken[in_file] < sizes[in_file])
            assert part.sum() <= 1 and (taken <= sizes).all()
        # Another file's users change nothing.
        alone = partition.leaf_sample(sizes[:5], files[:5], 0.6, seed)
        np.testing.assert_array_equal(alone, taken[:5])
        draws.add(tuple(taken))
    assert len(draws) > 15
    np.testing.assert_array_equal(partition.leaf_sample(sizes, files, 1.0, 0), sizes)


def test_a_cut_writer_keeps_the_proportion_of_train_and_test():
    sizes = np.array([[90, 10], [90, 10], [0, 4], [4, 0], [0, 0], [7, 3]])
    taken = np.array([50, 9, 3, 3, 0, 10])
    cut = partition.leaf_cut(sizes, taken)
    assert cut.tolist() == [*([45, 5], [9, 0], [0, 3]), *([3, 0], [0, 0], [7, 3])]


@pytest.mark.parametrize(
    ("fraction", "size", "count"),
    [
        # The product of these floats is below the whole number.
        *((0.29, 100, 29), (0.57, 100, 57), (0.58, 50, 29), (0.07, 300, 21)),
        (0.1 + 0.2, 10, 3),
        (np.float64(0.29), 100, 29),
        (np.float32(0.29), 100, 29),
        (fractions.Fraction(1, 3), 9, 3),
        *((1 - 0.8, 5, 1), (1 - 0.9, 10, 1), (15 / 22, 22, 15), (1 - 0.8, 4, 0)),
        # The product of these is not.
        *((1 / 3, 3, 1), (2 / 3, 6, 4), (0.5, 7, 3), (0.29, 99, 28), (1e-7, 100, 0)),
        (0, 100, 0),
    ],
)
def test_a_share_is_rounded_down_in_decimals(fraction, size, count):
    assert partition.floor_share(fraction, np.int64(size)) == count


def test_shares_match_decimals_and_floats_where_these_agree():
    """In whole numbers: of p percent of n, p * n // 100 examples."""
    for percent in range(1, 100):
        for size in range(1, 301):
            share = partition.floor_share(percent / 100, size)
            assert share == percent * size // 100
    # The papers' share is a fifth, of which the product in floats was never less.
    sizes = range(1, 20_000)
    assert all(partition.floor_share(0.2, n) == int(0.2 * n) == n // 5 for n in sizes)


def test_leafs_rounding_is_kept():
    """LEAF's scripts take int(fraction * n), in floats: 28 of 100, not 29."""
    taken = partition.leaf_sample(np.full(10, 10), np.zeros(10), 0.29, 0)
    assert taken.sum() == 28
    assert len(partition.leaf_split("u", 100, 0, 0.29)[0]) == 28


@pytest.mark.parametrize(
    ("size", "gap", "train", "test"),
    [
        (0, 79, 0, 0),
        (1, 79, 1, 0),
        (100, 79, 90, 0),
        (1000, 79, 900, 21),
        (10, 0, 9, 1),
    ],
)
def test_a_text_is_split_at_one_position(size, gap, train, test):
    rows, test_rows = partition.leaf_split_text(size, gap)
    assert rows.tolist() == list(range(train))
    assert test_rows.tolist() == list(range(size - test, size))


def test_a_limited_draw_is_uniform_and_independent_per_client():
    assert partition.draw_at_most(7, "a", 7, 0).tolist() == list(range(7))
    draws = np.array([partition.draw_at_most(3, "a", 10, seed) for seed in range(400)])
    assert draws.shape == (400, 3) and (np.diff(draws) > 0).all()
    counts = np.bincount(draws.ravel(), minlength=10)
    assert (abs(counts - 120) < 46).all()  # Five standard deviations.
    other = [partition.draw_at_most(3, "b", 10, seed).tolist() for seed in range(400)]
    assert 0 < (draws == other).all(axis=1).sum() < 20  # One in 120 by chance.
