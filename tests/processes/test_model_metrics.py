"""The metrics of a user's model, against TFF's own federated averaging."""

import collections
import re

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff

OURS = ["clients", "excluded", "examples", "loss_sum"]


@pytest.fixture(scope="module")
def tffs_metrics(sgd):
    """The training metrics of one round of TFF's own federated averaging."""

    def run(model, clients):
        process = tff.learning.algorithms.build_weighted_fed_avg(
            model, client_optimizer_fn=sgd()
        )
        output = process.next(process.initialize(), clients)
        return output.metrics["client_work"]["train"]

    return run


def check(metrics, expected):
    """Ours are there, and all of TFF's with the same values under the same names."""
    assert list(metrics) == [*OURS, *expected] and expected
    for name in expected:
        np.testing.assert_allclose(metrics[name], expected[name], rtol=1e-5)


def test_a_model_fns_metrics_are_tffs(
    runtime,
    toy_examples,
    keras_model_fn,
    build_prioritized,
    float_datasets,
    tffs_metrics,
):
    """Two epochs of several batches, which TFF is given as a repeated dataset."""
    clients = float_datasets(toy_examples, [0, 2, 3, 5], 3)
    ours = build_prioritized(keras_model_fn(), priority=("DS",), local_epochs=2)
    metrics = ours.next(ours.initialize(), clients).metrics["client_work"]["train"]
    expected = tffs_metrics(keras_model_fn(), [d.repeat(2) for d in clients])
    assert {"loss", "top_2", "sparse_categorical_accuracy"} <= set(expected)
    assert expected["num_examples"] == 2 * metrics["examples"] == 52
    check(metrics, expected)
    bad = clients[0].map(lambda x, y: (x * np.float32("nan"), y))
    with_bad = [bad, clients[1]]  # An excluded client is in no metric.
    metrics = ours.next(ours.initialize(), with_bad).metrics["client_work"]["train"]
    expected = tffs_metrics(keras_model_fn(), [d.repeat(2) for d in with_bad])
    assert metrics["excluded"] == 1 and expected["num_examples"] == 10
    check(metrics, expected)


@pytest.mark.parametrize("num_packs", [1, 3, None])
def test_a_functional_models_metrics_are_tffs(
    runtime,
    toy_examples,
    metric_model,
    build_prioritized,
    datasets,
    tffs_metrics,
    num_packs,
):
    """Packed, and None for datasets of batches."""
    cohort = [0, 2, 3, 5]
    batches = datasets(toy_examples, cohort, 100 if num_packs else 3)
    packed = num_packs is not None
    ours = build_prioritized(metric_model, priority=("DS",), packed=packed)
    data = tff_pmc.pack(toy_examples, cohort, num_packs=num_packs or 1)
    clients = data if packed else batches
    metrics = ours.next(ours.initialize(), clients).metrics["client_work"]["train"]
    check(metrics, tffs_metrics(metric_model, batches))


def test_an_excluded_packed_client_is_in_no_metric(
    runtime, toy_examples, metric_model, build_prioritized
):
    """A bound that no update keeps: all clients are excluded, nothing is measured."""
    sums = tff_pmc.SumOptions(max_update_norm=1e-9)
    ours = build_prioritized(metric_model, priority=("DS",), sums=sums)
    packs = tff_pmc.pack(toy_examples, [0, 2])
    metrics = ours.next(ours.initialize(), packs).metrics["client_work"]["train"]
    assert metrics["excluded"] == 2
    assert metrics["examples"] == 0
    assert all(np.isnan(metrics[name]) for name in ("top_2", "loss_sum"))


def test_the_map_reduce_form_has_the_sums_of_metrics(
    metric_model, build_prioritized, sent_shapes
):
    """One sum, one total, one monomial, four counts, and two numbers of two metrics."""
    process = build_prioritized(metric_model, criteria=("DS",))
    clear = sorted([(16, 3), (3,), (1,), (1,)] + 8 * [()])
    assert sent_shapes(process) == (clear, [])


class TestSecureSums:
    @pytest.fixture
    def build(self, metric_model, build_prioritized):
        secure = tff.aggregators.SecureSumFactory(100.0, -100.0)

        def build(model=metric_model, **options):
            sums = tff_pmc.SumOptions(
                model_sum_factory=secure, scalar_sum_factory=secure
            )
            return build_prioritized(model, criteria=("DS",), sums=sums, **options)

        return build

    def test_by_default_only_the_count_is_measured_and_in_the_clear(
        self, build, sent_shapes
    ):
        process = build()
        metrics = process.next.type_signature.result.metrics.member
        (name,) = [n for n, _ in tff_elements(metrics.client_work.train)]
        assert name == "clients"
        clear, secret = sent_shapes(process)
        assert clear == [()] and (16, 3) in secret

    def test_aggregators_that_sum_in_the_clear_are_rejected(self, build):
        with pytest.raises(ValueError, match="metrics_aggregator sums in the clear"):
            build(metrics_aggregator=tff.learning.metrics.sum_then_finalize)

    def test_secure_aggregators_compile_with_only_the_count_in_the_clear(
        self, build, sent_shapes, keras_model_fn
    ):
        """A model_fn's metrics, which are lists: TFF's aggregator takes no tuples."""
        aggregator = tff.learning.metrics.secure_sum_then_finalize
        process = build(keras_model_fn(), metrics_aggregator=aggregator)
        assert sent_shapes(process)[0] == [()]

    def test_secure_sums_are_close_to_plain_sums(
        self, build, keras_model_fn, toy_examples, float_datasets, sgd, assert_close
    ):
        """Every mean is a quotient of sums that were rounded. TFF's worker has none."""
        aggregator = tff.learning.metrics.secure_sum_then_finalize
        clients = float_datasets(toy_examples, [0, 2, 3], 3)
        hidden = build(keras_model_fn(), metrics_aggregator=aggregator)
        plain = tff.learning.algorithms.build_weighted_fed_avg(
            keras_model_fn(), client_optimizer_fn=sgd()
        )
        with tff_pmc.Runtime("local"):
            outputs = [p.next(p.initialize(), clients) for p in (hidden, plain)]
        models = [output.state.global_model_weights.trainable for output in outputs]
        assert_close(*models, 1e-3)
        metrics, expected = (o.metrics["client_work"]["train"] for o in outputs)
        assert metrics["num_examples"] == expected["num_examples"] > 0
        for name in ("loss", "top_2", "sparse_categorical_accuracy"):
            np.testing.assert_allclose(metrics[name], expected[name], rtol=1e-3)


def tff_elements(type_):
    return tff.structure.to_elements(type_)


def test_privacy_excludes_an_aggregator_without_noise(metric_model, sgd):
    sums = tff_pmc.SumOptions(
        "range", {"DS": (0, 9)}, clip_norm=1.0, privacy=tff_pmc.GaussianSums(1.0)
    )
    options = dict(criteria=("DS",), client_optimizer_fn=sgd(), sums=sums)
    process = tff_pmc.build_prioritized_fed_avg(metric_model, **options)
    metrics = process.next.type_signature.result.metrics.member
    assert [n for n, _ in tff_elements(metrics.client_work.train)] == ["clients"]
    with pytest.raises(ValueError, match="cannot be combined with privacy"):
        tff_pmc.build_prioritized_fed_avg(
            metric_model,
            metrics_aggregator=tff.learning.metrics.secure_sum_then_finalize,
            **options,
        )


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["examples"], "metric 'examples' has the name of a measurement"),
        (["excluded_by_client"], "'excluded_by_client' has the name of a measurement"),
        (["auc@1000"], "metric 'auc@1000' must have a name of letters"),
        (["recall (macro)"], "name it 'recall_macro'"),
        (["a>b"], "name it 'a_b'"),
        (["top", "TOP"], "'top' and 'TOP' differ only in case"),
        (["top", "top"], "two metrics named 'top'"),
        (["loss"], "two metrics named 'loss', and TFF adds one of this name"),
    ],
)
def test_metrics_with_invalid_or_equal_names_are_rejected(
    keras_model_fn, build_prioritized, names, says
):
    def metrics():
        return [tf.keras.metrics.SparseCategoricalAccuracy(name=n) for n in names]

    with pytest.raises(ValueError, match=re.escape(says)):
        build_prioritized(keras_model_fn(metrics))


def test_a_program_may_use_names_reserved_for_columns(
    keras_model_fn, build_prioritized
):
    """No record is written, so that the names of its columns are free."""
    names = ["accuracy", "round", "val/top-1", "recall_by_client", "1", "num_examples"]

    def metrics():
        return [tf.keras.metrics.SparseCategoricalAccuracy(name=n) for n in names]

    process = build_prioritized(keras_model_fn(metrics))
    measured = process.next.type_signature.result.metrics.member.client_work.train
    assert {*names} <= {*tff.structure.name_list(measured)}


@pytest.mark.parametrize("name", ["loss", "accuracy"])
def test_a_functional_model_has_no_further_metrics(toy_model, name):
    """TFF adds its loss to those of Keras models alone."""
    from tff_pmc.clients.model_metrics import build_aggregation

    kind = tf.keras.metrics.SparseCategoricalAccuracy
    fns = tff.learning.metrics.create_functional_metric_fns(
        lambda: collections.OrderedDict([(name, kind())])
    )
    model = tff.learning.models.FunctionalModel(
        initial_weights=toy_model.initial_weights,
        predict_on_batch_fn=toy_model.predict_on_batch,
        loss_fn=toy_model.loss,
        input_spec=toy_model.input_spec,
        metrics_fns=fns,
    )
    result = build_aggregation(model).type_signature.result.member
    assert tff.structure.name_list(result) == [name]
