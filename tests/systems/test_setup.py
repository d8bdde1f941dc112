"""The choice of clients in each round."""

import numpy as np

from tff_pmc.systems.setup import cohort


class TestCohort:
    def test_it_is_a_pure_function_of_seed_and_round(self):
        first = [cohort(3, r, 100, 10) for r in range(1, 6)]
        assert first == [cohort(3, r, 100, 10) for r in range(1, 6)]
        assert cohort(3, 4, 100, 10) == first[3]  # Whatever came before.
        assert len({tuple(c) for c in first}) == 5
        assert cohort(4, 1, 100, 10) != first[0]

    def test_clients_are_different_and_each_comes_equally_often(self):
        counts = np.zeros(20)
        for r in range(2000):
            chosen = cohort(0, r, 20, 5)
            assert len(set(chosen)) == 5
            counts[chosen] += 1
        # 500 expected, standard deviation 19: five of them are 97.
        assert np.abs(counts - 500).max() < 97
