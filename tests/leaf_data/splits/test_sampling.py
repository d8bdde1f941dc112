"""LEAF's rules of sampling and splitting, as functions of counts."""

from __future__ import annotations

import numpy as np

from leaf_data.splits import sampling


def test_every_example_is_in_the_test_part_of_some_seed():
    drawn = {int(k) for seed in range(60) for k in sampling.split("a", 10, seed)[1]}
    assert drawn == set(range(10))
    first, second = (sampling.split(user, 50, 0)[1].tolist() for user in "ab")
    assert first != second


def test_sampling_takes_exactly_the_fraction_and_shuffles():
    sizes = np.array([5, 9, 3, 8, 1, 7, 7, 7])
    files = np.array([3, 3, 3, 3, 3, 0, 0, 0])
    draws = set()
    for seed in range(30):
        taken = sampling.niid(sizes, files, 0.6, seed)
        assert taken[files == 3].sum() == 15 and taken[files == 0].sum() == 12
        for own in (files == 3, files == 0):
            part = (taken[own] > 0) & (taken[own] < sizes[own])
            assert part.sum() <= 1 and (taken <= sizes).all()
        # Another file's users change nothing.
        alone = sampling.niid(sizes[:5], files[:5], 0.6, seed)
        np.testing.assert_array_equal(alone, taken[:5])
        draws.add(tuple(taken))
    assert len(draws) > 15
    np.testing.assert_array_equal(sampling.niid(sizes, files, 1.0, 0), sizes)


def test_a_cut_writer_keeps_the_proportion_of_train_and_test():
    sizes = np.array([[90, 10], [90, 10], [0, 4], [4, 0], [0, 0], [7, 3]])
    taken = np.array([50, 9, 3, 3, 0, 10])
    found = sampling.cut_parts(sizes, taken)
    assert found.tolist() == [*([45, 5], [9, 0], [0, 3]), *([3, 0], [0, 0], [7, 3])]
