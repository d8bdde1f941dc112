"""A user's criteria, scores and attributes in a process, and invalid ones."""

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc import criteria, scores
from tff_pmc._lazy import tf


def test_inputs_and_labels_of_a_shuffled_dataset_belong_together(
    runtime, toy_examples, toy_model, sgd
):
    """A criterion of both: x is made to encode y, so all of them agree."""
    agree = criteria.Criterion(
        "AG",
        "share of examples whose x encodes y",
        "this test",
        lambda client: tf.reduce_mean(
            tf.cast(
                tf.equal(tf.cast(client.x[:, 0, 0], tf.int32), client.y), tf.float32
            )
        ),
    )
    y = np.arange(40, dtype=np.int32) % 3
    x = np.zeros([40, 4, 4], np.uint8)
    x[:, 0, 0] = y
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(40).batch(6)
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        criteria=("DS", agree),
        priority=("DS", "AG"),
        client_optimizer_fn=sgd(),
        packed=False,
        local_epochs=1,
    )
    output = process.next(process.initialize(), [dataset])
    np.testing.assert_allclose(output.metrics["aggregator"]["totals"], [40, 1])


@pytest.mark.parametrize("packed", [True, False])
def test_a_criterion_and_a_score_from_a_notebook_cell(
    runtime, toy_examples, toy_model, packed, sgd, datasets, trained_alone, assert_close
):
    """Brightness weighs: the aggregate is the mean with those weights."""
    bright = criteria.Criterion(
        code="BR",
        name="mean brightness",
        source="this notebook",
        value=lambda client: tf.reduce_mean(tf.cast(client.x, tf.float32)),
    )
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        criteria=("DS", bright),
        score=scores.PolynomialScore("mixed", {(0,): 0.75, (1,): 0.25}, (0, 1)),
        client_optimizer_fn=sgd(),
        packed=packed,
        local_epochs=1,
    )
    cohort = [0, 1, 4]
    batches = datasets(toy_examples, cohort, 100)
    data = tff_pmc.pack(toy_examples, cohort) if packed else batches
    output = process.next(process.initialize(), data)
    parts = [toy_examples.client(k) for k in cohort]
    raw = np.array([[len(part["y"]), part["x"].mean()] for part in parts])
    totals = output.metrics["aggregator"]["totals"]
    np.testing.assert_allclose(totals, raw.sum(axis=0), rtol=1e-5)
    models = [trained_alone(toy_model, toy_examples, k) for k in cohort]
    p = (raw / raw.sum(axis=0)) @ [0.75, 0.25]
    expected = [np.tensordot(p, np.stack(part), 1) for part in zip(*models)]
    weights = process.get_model_weights(output.state).trainable
    assert_close(weights, expected, 1e-5)


@pytest.mark.parametrize("packed", [True, False])
def test_client_attributes_are_criteria_like_any_other(
    runtime, toy_examples, toy_model, packed, sgd, datasets, assert_close, weights_of
):
    """An untrusted client has no weight: the model is the other one's."""
    trusted = np.array([1, 0, 1, 1, 1, 1], np.float32)
    battery = np.array([0.5, 1.0, 0.25, 0, 0, 0], np.float32)

    def build(**options):
        return tff_pmc.build_prioritized_fed_avg(
            toy_model,
            client_optimizer_fn=sgd(),
            packed=packed,
            local_epochs=1,
            **options,
        )

    process = build(
        criteria=("DS", criteria.attribute("trusted"), criteria.attribute("battery")),
        client_attributes=("trusted", "battery"),
        priority=("trusted", "DS"),
    )
    alone = build(priority=("DS",))
    table = {"battery": battery, "trusted": trusted}  # In any order.
    if packed:
        backwards = {name: values[::-1] for name, values in table.items()}
        by_name = leaf_data.ClientTable(toy_examples.client_ids[::-1], backwards)
        data = tff_pmc.pack(toy_examples, [1, 2], attributes=by_name)
        single = tff_pmc.pack(toy_examples, [2])
    else:
        single = datasets(toy_examples, [2], 3)
        data = [
            tff_pmc.with_attributes(part, {name: table[name][k] for name in table})
            for k, part in zip([1, 2], datasets(toy_examples, [1, 2], 3))
        ]
    state, metrics = process.next(process.initialize(), data)
    expected = alone.next(alone.initialize(), single).state
    assert_close(weights_of(process, state), weights_of(alone, expected), 1e-6)
    np.testing.assert_allclose(metrics["aggregator"]["totals"], [8, 1, 1.25])
