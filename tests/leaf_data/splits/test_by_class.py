"""Draws that take from every class alike."""

from __future__ import annotations

import collections

import numpy as np

from leaf_data.splits import by_class, partition


def test_a_part_of_every_class(assert_refused):
    y = np.repeat([0, 1, 3], [10, 4, 6])
    part, others = by_class.split(y, 0.5, partition.random_state(1))
    assert collections.Counter(y[part].tolist()) == {0: 5, 1: 2, 3: 3}
    assert sorted([*part, *others]) == list(range(20))
    assert part.tolist() == sorted(part) and others.tolist() == sorted(others)
    again, _ = by_class.split(y, 0.5, partition.random_state(2))
    assert again.tolist() != part.tolist()
    everything, nothing = by_class.split(y, 1, partition.random_state(1))
    assert (len(everything), len(nothing)) == (20, 0)
    assert_refused(lambda: by_class.split(y, 1.1, partition.random_state(1)), "not 1.1")


def test_classes_that_take_turns():
    y = np.tile([2, 0, 1], 10)
    order = by_class.mixed(y, partition.random_state(1))
    assert sorted(order) == list(range(30))
    for start in range(0, 30, 5):
        counts = np.bincount(y[order[start : start + 5]], minlength=3)
        assert sorted(counts.tolist()) == [1, 2, 2]
    other = by_class.mixed(y, partition.random_state(2))
    assert order.tolist() != other.tolist()
