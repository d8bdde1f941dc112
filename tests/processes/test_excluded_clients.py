"""Clients that a round excludes, and data that end it with an error."""

import dataclasses
import re

import numpy as np
import pytest
from absl import logging

import tff_pmc
from tff_pmc import criteria, scores
from tff_pmc._lazy import tf


@pytest.mark.parametrize("two_stage", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.float64(1e-300)])
def test_a_client_that_diverges_is_excluded_and_counted(
    runtime,
    toy_examples,
    toy_model,
    sgd,
    nan_for,
    assert_close,
    weights_of,
    two_stage,
    value,
):
    """One client's criterion is NaN, or below a float32: it is the others' mean."""
    codes = ("DS", "LD", "BR")
    score = scores.prioritized((2, 0), codes)
    if two_stage:  # It is out of the totals, too.
        score = scores.owa("most", codes)
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        score=score,
        criteria=("DS", "LD", nan_for(5, value)),
        client_optimizer_fn=sgd(),
    )
    start = process.initialize()
    state, metrics = process.next(start, tff_pmc.pack(toy_examples, [0, 2, 3]))
    healthy, _ = process.next(start, tff_pmc.pack(toy_examples, [0, 3]))
    assert metrics["client_work"]["train"]["excluded"] == 1
    assert metrics["client_work"]["train"]["clients"] == 3
    assert_close(weights_of(process, state), weights_of(process, healthy), 1e-6)


@pytest.mark.parametrize("packed", [True, False])
def test_a_client_without_examples_is_in_no_sum(
    runtime, toy_examples, toy_model, build_prioritized, datasets, packed
):
    """Its model has not diverged, of which MD would make the highest value."""
    process = build_prioritized(
        toy_model, priority=("MD", "DS"), criteria=("DS", "MD"), packed=packed
    )
    none = dataclasses.replace(
        toy_examples, row_splits=np.array([0, 0, *toy_examples.row_splits[2:]])
    )
    outputs = []
    for cohort in ([0, 2, 3], [2, 3]):
        data = tff_pmc.pack(none, cohort) if packed else datasets(none, cohort, 9)
        outputs.append(process.next(process.initialize(), data))
    with_it, without = (output.metrics for output in outputs)
    for name in ("totals", "monomials"):
        sums, expected = (m["aggregator"][name] for m in (with_it, without))
        np.testing.assert_allclose(sums, expected, rtol=1e-6)
    assert with_it["client_work"]["train"]["excluded"] == 1


def test_the_model_is_unchanged_if_all_scores_are_zero(
    runtime, toy_examples, toy_model, build_prioritized, assert_close, weights_of
):
    zero = criteria.Criterion("ZE", "zero", "this test", lambda _: tf.constant(0.0))
    process = build_prioritized(
        toy_model,
        priority=("ZE", "DS"),
        criteria=("DS", zero),
    )
    before = process.initialize()
    state, metrics = process.next(before, tff_pmc.pack(toy_examples, [0, 1]))
    assert metrics["aggregator"]["score"] == 0
    assert metrics["finalizer"]["update_rejected"] == 1
    assert_close(weights_of(process, state), weights_of(process, before), 0)


def test_a_negative_criterion_is_rejected_and_named(
    runtime, toy_examples, toy_model, build_prioritized
):
    bad = criteria.Criterion(
        "NEG", "4 - size", "this test", lambda client: 4 - tf.shape(client.y)[0]
    )
    process = build_prioritized(toy_model, priority=("NEG",), criteria=("DS", bad))
    words = "^the criterion NEG gave a negative value: -4 of client 0$"
    with pytest.raises(criteria.CriterionError, match=words):
        process.next(process.initialize(), tff_pmc.pack(toy_examples, [0]))


def test_the_error_for_a_label_without_a_class_names_its_client(
    runtime, toy_examples, toy_model, build_prioritized
):
    """TensorFlow names the label alone; of three classes, label 7 of client 2."""
    labels = toy_examples.y.copy()
    labels[toy_examples.row_splits[2]] = 7
    examples = dataclasses.replace(toy_examples, y=labels)
    process = build_prioritized(toy_model, priority=("DS",), criteria=("DS",))
    says = pytest.raises(ValueError, match="^client 2 has label 7, but there are 3 cl")
    with says:
        process.next(process.initialize(), tff_pmc.pack(examples, [1, 2, 3]))


@pytest.fixture
def warnings_of(monkeypatch):
    """The warnings that are logged during a test."""
    messages = []
    monkeypatch.setattr(
        logging, "warning", lambda words, *args: messages.append(words % args)
    )
    return messages


@pytest.mark.parametrize(
    ("form", "options", "says"),
    [
        ("packed", {"report_cohort": 6}, r"position 0 has the criteria 5, 1e\+31\)$"),
        ("packed", {}, "report_cohort shows each client's criteria"),
        ("datasets", {}, "the update was above max_update_norm"),
        ("online", {}, "a smaller learning rate of client_optimizer_fn may help"),
        (
            "packed",
            {"client_learning_rate_fn": lambda round_num: 0.1},
            "a smaller learning rate of client_learning_rate_fn may help",
        ),
        ("nobody", {}, "there were no clients$"),
        ("zero", {}, "no client's score was above 0"),
    ],
)
def test_a_lost_round_warns_once_per_process_and_has_no_loss(
    runtime,
    toy_examples,
    metric_model,
    sgd,
    datasets,
    warnings_of,
    form,
    options,
    says,
):
    """Loss and accuracy were measured on no client, which is not 0."""
    value = 0.0 if form == "zero" else 1e31
    large = criteria.Criterion("BIG", "large", "this test", lambda _: value)
    options = {"criteria": ("DS", large), "client_optimizer_fn": sgd(), **options}
    cohort, tests = [2, 3], tff_pmc.evaluation_packs(toy_examples)
    packs = tff_pmc.pack(toy_examples, cohort)
    clients = datasets(toy_examples, cohort, 9) if form == "datasets" else packs
    clients = [pack.take(0) for pack in packs] if form == "nobody" else clients
    # That each process warns, one case shows for all.
    for processes in (1, 2) if options.get("report_cohort") else (1,):
        if form == "online":
            build = tff_pmc.build_online_adjusted_fed_avg
        else:
            build = tff_pmc.build_prioritized_fed_avg
            options.update(priority=("BIG", "DS"), packed=form != "datasets")
        process = build(metric_model, **options)
        state = process.initialize()
        for _ in range(2):
            judge_data = (tests,) if form == "online" else ()
            state, metrics = process.next(state, clients, *judge_data)[:2]
        assert len(warnings_of) == processes
    assert re.search(f"did not change the model: .*{says}", warnings_of[-1])
    train = metrics["client_work"]["train"]
    lost = [np.isnan(train[name]) for name in ("loss_sum", "top_2")]
    assert lost == [form != "zero"] * 2
    assert train["examples"] == 11 * (form == "zero")
