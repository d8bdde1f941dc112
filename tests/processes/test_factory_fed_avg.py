"""Whole rounds around an aggregation factory: Dual's baselines, and TFF's own."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tff

COHORT = [0, 1, 2, 3]


def test_the_metrics_of_a_round(
    runtime, toy_examples, toy_model, baseline_name, build_factory, run_rounds
):
    """More criteria are measured, and only the sizes count."""
    process = build_factory(
        toy_model,
        tff_pmc.BASELINES[baseline_name](),
        criteria=("LD", "DS"),
        report_cohort=3,
    )
    weights, metrics = run_rounds(process, toy_examples, [COHORT[1:], [5, 4]])
    assert all(np.isfinite(w).all() for w in weights)
    assert metrics["aggregator"]["excluded"] == 0
    train = metrics["client_work"]["train"]
    assert (train["clients"], train["excluded"], train["examples"]) == (2, 0, 11)
    assert train["criteria_by_client"][:, 1].tolist() == [7, 4, 0]
    assert train["criteria_by_client"][:, 0].max() > 1
    assert train["excluded_by_client"].tolist() == [0] * 3
    assert train["loss_sum"] > 0
    assert metrics["finalizer"]["update_rejected"] == 0


def test_an_excluded_client_takes_no_step(
    runtime, toy_examples, toy_model, build_factory, run_rounds, assert_equal, nan_for
):
    """Its update stays 0, which an unweighted factory of TFF's counts as one."""
    process = build_factory(
        toy_model,
        tff.aggregators.UnweightedMeanFactory(),
        client_step=lambda received, update: received,
        criteria=("DS", nan_for(3)),
    )
    weights, metrics = run_rounds(process, toy_examples, [[0, 1]])
    assert metrics["client_work"]["train"]["excluded"] == 1
    # The other's update became the whole model, and half of it is taken off.
    first = [np.asarray(w, float) for w in toy_model.initial_weights[0]]
    assert_equal(weights, [w / 2 for w in first], 1e-6)


def test_an_update_is_clipped_before_the_factory_sees_it(
    runtime, toy_examples, toy_model, build_factory, run_rounds
):
    sums = tff_pmc.SumOptions(clip_norm=0.01)
    process = build_factory(toy_model, tff_pmc.aggregation.weighted_mean(), sums=sums)
    weights, _ = run_rounds(process, toy_examples, [[2]])
    first = [np.asarray(w, float) for w in toy_model.initial_weights[0]]
    moved = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(weights, first)))
    assert moved == pytest.approx(0.01, rel=1e-4)
    with pytest.raises(Exception, match="exactly one client"):
        run_rounds(process, toy_examples, [COHORT], num_packs=3)
