"""Which clients straggle, and for how many epochs."""

import numpy as np
import pytest

from tff_pmc.selections import draw_local_epochs


def draw(round_num=1, size=10, epochs=20, share=0.5, seed=0, keeps_work=True):
    return draw_local_epochs(
        seed, round_num, size, epochs, share, keeps_work=keeps_work
    )


@pytest.mark.parametrize(
    ("size", "share", "count"),
    [
        (10, 0.0, 0),
        (10, 0.5, 5),
        (10, 0.9, 9),
        (10, 1.0, 10),
        (5, 0.5, 3),  # The code keeps round(2.5) = 2.
        (3, 0.5, 1),  # And round(1.5) = 2 here.
        (1, 0.4, 0),
        (1, 0.6, 1),
        (9, 1 / 3, 3),
    ],
)
def test_a_share_of_the_cohort_straggles(size, share, count):
    dropped = draw(size=size, share=share, keeps_work=False)
    assert dropped.dtype == np.int32 and dropped.shape == (size,)
    assert sorted(dropped) == [0] * count + [20] * (size - count)


def test_dropped_clients_are_those_whose_work_others_keep():
    for round_num in range(1, 50):
        kept, dropped = (draw(round_num, keeps_work=keeps) for keeps in (True, False))
        assert (kept[dropped == 20] == 20).all()
        assert kept.min() >= 1 and kept.max() <= 20


def test_epochs_are_uniform_and_so_is_who_straggles():
    """Over 4,000 rounds: each x from 1 to E, and each client, equally often."""
    rounds = range(1, 4001)
    epochs = np.array([draw(n, epochs=4, share=1.0) for n in rounds])
    np.testing.assert_allclose(
        np.bincount(epochs.ravel())[1:] / epochs.size, 0.25, 0.03
    )
    slow = np.array([draw(n, share=0.3, keeps_work=False) == 0 for n in rounds])
    np.testing.assert_allclose(slow.mean(axis=0), 0.3, 0.1)
    assert (slow.sum(axis=1) == 3).all()


def test_stragglers_are_a_pure_function_of_seed_and_round():
    """The numbers are those of the first version: a run of then is one of now."""
    assert draw(1).tolist() == [10, 20, 20, 20, 5, 20, 14, 18, 15, 20]
    assert draw(1).tolist() != draw(2).tolist() != draw(2, seed=1).tolist()
    assert draw(7).tolist() == draw(7).tolist()
