"""AdaFed's printed numbers of images, from MNIST's published label counts alone."""

from __future__ import annotations

import numpy as np
import pytest

from leaf_data.splits import adafed_simulations, partition

# LeCun, Cortes, Burges: the training labels of each digit.
MNIST = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)


def test_simulation_1_as_printed():
    """Section 4.0.1, read as 5,500 images a client."""
    counts = np.array(adafed_simulations.simulation_1("a_client", MNIST))
    assert counts.sum(axis=1).tolist() == [5500] * 5 + [5000]
    five, sixth = counts[:5], counts[5]
    assert ((five > 0).sum(axis=1) == 2).all()  # Two classes each,
    assert ((five > 0).sum(axis=0) == 1).all()  # with no overlap.
    assert (five[:, 0].max(), five[:, 5].max()) == (100, 200)
    assert sixth.tolist() == [500] * 10
    assert (counts.sum(axis=0) <= MNIST).all()
    assert counts.sum() == 32500
    by_hand = [100, 5400, 2750, 2750, 5300, 200, 2750, 2750, 2750, 2750]
    assert five.sum(axis=0).tolist() == by_hand


def test_simulation_1_read_as_5500_a_class():
    """MNIST has too few of 2, 4, 6, 8 and 9 for the sixth client's 500."""
    counts = np.array(adafed_simulations.simulation_1("a_class", MNIST))
    by_hand = [100, 5500, 5500, 5500, 5500, 200, 5500, 5500, 5500, 5500]
    assert counts[:5].sum(axis=0).tolist() == by_hand
    left = [500, 500, 5958 - 5500, 500, 5842 - 5500]
    left += [500, 5918 - 5500, 500, 5851 - 5500, 5949 - 5500]
    assert counts[5].tolist() == left
    assert min(left) == 342 and sorted(set(left))[-2] == 458
    assert (counts.sum(axis=0) <= MNIST).all()


def test_simulation_3_adds_clients_3_and_4_once_more():
    """Section 4.0.3: 50 % and 100 % of their labels are wrong."""
    counts = np.array(adafed_simulations.SIMULATION_3)
    totals = [190, 1710, 1780, 1230, 2040, 3160, 1780, 1230]
    assert counts.sum(axis=1).tolist() == totals
    np.testing.assert_array_equal(counts[6:], counts[2:4])
    assert adafed_simulations.WRONG_LABELS == (0, 0, 0, 0, 0, 0, 0.5, 1)
    assert (counts.sum(axis=0) <= MNIST).all()


@pytest.mark.parametrize("table", ["TABLE_1", "SIMULATION_3"])
def test_every_table_is_dealt_and_no_image_twice(table):
    labels = np.random.default_rng(2).permutation(np.repeat(np.arange(10), MNIST))
    counts = getattr(adafed_simulations, table)
    parts = adafed_simulations.deal(labels, counts, np.random.RandomState(4))
    for part, row in zip(parts, counts):
        assert np.bincount(labels[part], minlength=10).tolist() == list(row)
    everyone = np.concatenate(parts)
    assert len(np.unique(everyone)) == len(everyone)


def test_wrong_labels_are_wrong_and_of_every_kind():
    y = np.repeat(np.arange(4), 50)
    given = y.copy()
    wrong = adafed_simulations.mislabel(y, 1.0, 4, partition.random_state(0))
    np.testing.assert_array_equal(y, given)
    assert wrong.dtype == np.int32 and not np.any(wrong == y)
    for label in range(4):
        assert set(wrong[y == label]) == set(range(4)) - {label}
    half = adafed_simulations.mislabel(y, 0.5, 4, partition.random_state(0))
    assert np.count_nonzero(half != y) == 100
    np.testing.assert_array_equal(
        adafed_simulations.mislabel(y, 0, 4, partition.random_state(0)), y
    )
