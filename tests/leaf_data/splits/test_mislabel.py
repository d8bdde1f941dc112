"""Labels made wrong on purpose."""

from __future__ import annotations

import numpy as np

from leaf_data.splits import partition
from leaf_data.splits.adafed_simulations import mislabel


def test_wrong_labels_are_wrong_and_of_every_kind():
    y = np.repeat(np.arange(4), 50)
    given = y.copy()
    wrong = mislabel(y, 1.0, 4, partition.random_state(0))
    np.testing.assert_array_equal(y, given)
    assert wrong.dtype == np.int32 and not np.any(wrong == y)
    for label in range(4):
        assert set(wrong[y == label]) == set(range(4)) - {label}
    half = mislabel(y, 0.5, 4, partition.random_state(0))
    assert np.count_nonzero(half != y) == 100
    np.testing.assert_array_equal(mislabel(y, 0, 4, partition.random_state(0)), y)
