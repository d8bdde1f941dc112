"""Dual's criterion: the score, and its grid of lambda."""

import pytest

from tff_pmc import scores


def test_the_score_and_the_grid():
    score = scores.dual(0.3)
    assert score.label == "lambda=0.30"
    assert score((0.5, 0.1)) == pytest.approx(0.3 * 0.5 + 0.7 * 0.1)
    swapped = scores.dual(0.3, criteria=("DS", "ACC"))
    assert swapped((0.1, 0.5)) == pytest.approx(score((0.5, 0.1)))
    grid = scores.dual_grid()
    assert [s.label for s in grid[:3]] == ["lambda=0.00", "lambda=0.10", "lambda=0.20"]
    assert len(grid) == 11 and grid[-1].label == "lambda=1.00"
    assert len(scores.Basis.of(2, grid)) == 2  # Two sums serve them all.


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: scores.dual(1.1), "lambda"),
        (lambda: scores.dual(float("nan")), "lambda"),
        (lambda: scores.dual(0.5, quality="LD"), "LD"),
        (lambda: scores.dual(0.5, quality="DS"), "both DS"),
        (lambda: scores.dual_grid(1), "steps"),
    ],
)
def test_what_is_out_of_range_is_named(call, says):
    with pytest.raises(ValueError, match=says):
        call()
