"""What can be chosen of the sums, and what excludes what."""

import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

RANGES = {"LD": (0, 10), "DS": (0, 1000)}


def secure():
    return tff.aggregators.SecureSumFactory(8.0)


@pytest.mark.parametrize("name", ["clip_norm", "max_update_norm"])
@pytest.mark.parametrize("norm", [0.0, -1.0, float("inf"), float("nan")])
def test_a_norm_out_of_range_is_named(name, norm):
    with pytest.raises(ValueError, match=f"{name} must be finite and above 0"):
        tff_pmc.SumOptions(**{name: norm})


def test_options_that_exclude_each_other_are_named():
    with pytest.raises(ValueError, match="give no sum factory with it"):
        tff_pmc.SumOptions(
            privacy=tff_pmc.GaussianSums(1.0), model_sum_factory=secure()
        )
    with pytest.raises(ValueError, match="'max' sends maxima.*scalar_sum_factory"):
        tff_pmc.SumOptions("max", scalar_sum_factory=secure())


def test_what_hides_is_named():
    options = tff_pmc.SumOptions("max", clip_norm=1.0, model_sum_factory=secure())
    assert options.hiding == {}
    for hiding in (
        {"privacy": tff_pmc.GaussianSums(1.0)},
        {"scalar_sum_factory": secure()},
    ):
        assert tff_pmc.SumOptions(**hiding).hiding == hiding


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
