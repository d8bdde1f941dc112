"""Noise for differential privacy: its bounds, its spread, its seed."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff


def test_the_bound_of_one_clients_contribution_by_hand():
    """B = 3 sums of updates of norm 2; 3 monomials and 3 criteria."""
    basis = scores.Basis.of(3, [scores.prioritized((0, 1, 2))])
    normalization = scores.Normalization("range", ((0, 1),) * 3)
    bounds = tff_pmc.GaussianSums(1.0).bounds(basis, normalization, 2.0)
    assert bounds == pytest.approx((12**0.5, 6**0.5))
    models, scalars = tff_pmc.GaussianSums(0.5).factories(basis, normalization, 2.0)
    # Two mechanisms of sqrt(2) z each are one of z.
    assert models.stddev == pytest.approx(0.5 * 24**0.5)
    assert scalars.stddev == pytest.approx(0.5 * 12**0.5)


def test_the_noise_has_the_stated_spread_and_the_seed_fixes_it(runtime):
    from tff_pmc.aggregation.privacy import GaussianSumFactory

    value_type = tff.TensorType(np.float32, [20000])
    values = [np.zeros(20000, np.float32)] * 2

    def noise(stream, rounds=1, seed=3):
        process = GaussianSumFactory(2.0, seed, stream).create(value_type)
        state = process.initialize()
        for _ in range(rounds):
            output = process.next(state, values)
            state = output.state
        return output.result

    first = noise(0)
    assert first.std() == pytest.approx(2.0, rel=0.03)
    assert abs(first.mean()) < 0.06
    np.testing.assert_array_equal(first, noise(0))
    unseeded = noise(0, seed=None), noise(0, seed=None)
    assert unseeded[0].std() == pytest.approx(2.0, rel=0.03)
    assert abs(np.corrcoef(*unseeded)[0, 1]) < 0.05
    for other in (noise(1), noise(0, rounds=2)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 0.05
