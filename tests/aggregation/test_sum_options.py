"""What can be chosen of the sums, and what excludes what; the noise of privacy."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

RANGES = {"LD": (0, 10), "DS": (0, 1000)}


def secure():
    return tff.aggregators.SecureSumFactory(8.0)


@pytest.mark.parametrize(
    ("name", "words"), [("clip_norm", r"0 \(no clip"), ("max_update_norm", "above 0")]
)
@pytest.mark.parametrize("norm", [-1.0, float("inf"), float("nan")])
def test_a_norm_out_of_range_is_named(name, words, norm):
    with pytest.raises(ValueError, match=f"^{name} must be {words}"):
        tff_pmc.SumOptions(**{name: norm})
    for none in ("1", True):
        with pytest.raises(ValueError, match=f"{name} must be a number, got {none!r}"):
            tff_pmc.SumOptions(**{name: none})


def test_options_that_exclude_each_other_are_named():
    with pytest.raises(ValueError, match="remove model_sum_factory and"):
        tff_pmc.SumOptions(
            privacy=tff_pmc.GaussianSums(1.0), model_sum_factory=secure()
        )
    with pytest.raises(ValueError, match="scalar_sum_factory cannot .*'max'"):
        tff_pmc.SumOptions("max", scalar_sum_factory=secure())


def test_options_that_hide_updates_are_listed():
    options = tff_pmc.SumOptions("max", clip_norm=1.0, model_sum_factory=secure())
    assert options.hiding_options == {}
    for hiding in (
        {"privacy": tff_pmc.GaussianSums(1.0)},
        {"scalar_sum_factory": secure()},
    ):
        options = tff_pmc.SumOptions(**hiding)
        assert options.hiding_options == options.hiding == hiding


def test_earlier_names_work():
    plan = tff_pmc.SumOptions().plan(scores.Basis.singles(2), ("DS", "LD"))
    assert plan.only_counts is plan.counts_only is False
    assert plan.unweighted() == plan.first_stage()
    aggregation = tff_pmc.aggregation
    assert aggregation.with_score_in_force is aggregation.build_scored_mean


def test_a_plan_has_the_ranges_in_the_columns_order():
    basis = scores.Basis.singles(2)
    plan = tff_pmc.SumOptions("range", RANGES, clip_norm=2.0).plan(basis, ("DS", "LD"))
    assert plan.normalization.ranges == ((0, 1000), (0, 10))
    assert (plan.basis, plan.clip_norm) == (basis, 2.0)
    assert plan.model_sum_factory is None and plan.scalar_sum_factory is None
    with pytest.raises(ValueError, match="needs a range for MD"):
        tff_pmc.SumOptions("range", RANGES).plan(
            scores.Basis.singles(3), ("DS", "LD", "MD")
        )


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
