"""The scores of the algorithms, from their settings."""

import pytest

from declared_settings import SettingError
from tff_pmc.experiments.experiment import settings


def score(algorithm, *members, **changes):
    config = settings(
        "mnist_noniid", {"algorithm": algorithm, "priority": members, **changes}
    )
    return config.algorithm.score(config)


def test_settings_make_the_scores():
    members = ("LD", "DS")
    assert score("prioritized", *members).terms == {(1,): 1, (0, 1): 1}
    average = score("weighted_average", *members, average_weights=(0.25, 0.75))
    assert average.terms == {(0,): 0.75, (1,): 0.25}
    assert score("owa", *members, owa_quantifier="all").terms == {(0, 1): 1.0}
    assert score("product", *members).terms == {(0, 1): 1.0}
    powers = ("DS^0.5", "LD^-2")
    product = score("product", *powers, criteria=("MD", *powers))
    assert (product.label, product.terms) == ("product:DS^0.5,LD^-2", {(1, 2): 1.0})
    capacity = (("DS", 0.25), ("LD", 0.5))
    choquet = score("choquet", *members, choquet_capacity=capacity)
    assert choquet.terms == {(0,): 0.25, (1,): 0.5, (0, 1): 0.25}
    # The single-criterion baseline, which can be run with any of them.
    alone = score("choquet", "DS", choquet_capacity=capacity)
    assert (alone.label, alone.terms) == ("DS", {(0,): 1.0})


def test_fedavg_and_the_baselines_weigh_by_size():
    for algorithm in ("fedavg", "weighted_mean", "median", "momentum"):
        assert score(algorithm, "LD").terms == {(0,): 1.0}


def test_a_search_has_all_orderings_of_the_criteria_of_priority():
    config = settings("mnist_noniid", {"priority": ("MD", "DS")})
    candidates = config.algorithm.candidates(config)
    assert [candidate.label for candidate in candidates] == ["DS,MD", "MD,DS"]


def test_dual_searches_lambda_starting_from_quantity():
    config = settings("dual_criterion", {"algorithm": "dual", "dual_lambda_steps": 3})
    grid = config.algorithm.candidates(config)
    assert [s.label for s in grid] == ["lambda=0.00", "lambda=0.50", "lambda=1.00"]
    assert config.algorithm.score(config) == grid[0]


def test_powers_have_separate_folders():
    powers = ("DS^0.5", "DS^-0.5")
    configs = (
        settings("mnist_noniid", {"criteria": powers, "priority": (code,)})
        for code in powers
    )
    assert [config.folder_name for config in configs] == ["DS_0.5", "DS_-0.5"]


TWICE = {"choquet_capacity": (("DS", 0.4), ("DS", 0.4))}


@pytest.mark.parametrize(
    ("algorithm", "members", "changes", "message"),
    [
        (
            "owa",
            ("DS",),
            {"owa_weights": (1.0,), "owa_quantifier": "all"},
            "either --owa",
        ),
        (
            "product",
            ("DS",),
            {"average_weights": (1.0,)},
            "average_weights is not a setting",
        ),
        ("choquet", ("DS", "LD"), TWICE, "names a set twice"),
        ("adafed", ("DS",), {}, "the first of --criteria must be ACC, or MAPE for"),
    ],
)
def test_settings_without_a_score_are_rejected(algorithm, members, changes, message):
    with pytest.raises(SettingError, match=message):
        score(algorithm, *members, **changes)
