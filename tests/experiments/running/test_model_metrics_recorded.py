"""The metrics that a model of the command line brings, as columns of `rounds.csv`."""

import collections
import dataclasses
import importlib
import sys
import types

import numpy as np
import pytest
from cli import ROOT, SHORT, mark_as_running, records
from sklearn.metrics import roc_auc_score, top_k_accuracy_score

import leaf_data
from declared_settings import SettingError
from tff_pmc import models
from tff_pmc._lazy import tf, tff
from tff_pmc.experiments.experiment import EXPERIMENTS, settings
from tff_pmc.models import MODELS
from tff_pmc.record.results import read_results

NAME = "keras_with_auc"
WRONG = (
    "",
    "a|b",
    "a>b",
    "a,b",
    "a\nb",
    'a"b',
    "a b",
    "größe",
    "/a",
    "a/../b",
    251 * "a",
)
TAKEN = ("round", "seed", "train_loss", "Accuracy", "weight_largest")
TAKEN += ("criteria_by_client",)


class Weights:
    """A callback that keeps the weights after each round."""

    def __init__(self):
        self.by_round = {}

    def check(self, settings, data):
        pass

    on_start = on_end = lambda self, _: None

    def by_flag(self):
        return {}

    def after_round(self, round):
        self.by_round[round.round_num] = [
            np.asarray(w) for w in round.weights.trainable
        ]
        self.numbers = round.numbers


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The models and data of the documents."""
    for registry in (leaf_data.dataset.DATASETS, MODELS, EXPERIMENTS):
        len(registry)
        monkeypatch.setattr(registry, "_things", dict(registry))
    for folder, name in (("own_code", NAME), ("numbers_and_words", "wells")):
        monkeypatch.syspath_prepend(ROOT / "docs" / "examples" / folder)
        sys.modules.pop(name, None)
        importlib.import_module(name)
        del sys.modules[name]  # The next test registers them again.


def keras_metrics(*metrics):
    """The model of the documents with these metrics, as instances."""
    make = MODELS[NAME].build

    def build(self):
        model = make(self)()
        spec, loss = model.input_spec, model._loss_fns[0]
        inner = model._keras_model
        return lambda: tff.learning.models.from_keras_model(
            inner, loss, input_spec=spec, metrics=[make() for make in metrics]
        )

    return types.new_class(
        "Model", (MODELS[NAME],), exec_body=lambda space: space.update(build=build)
    )


def functional(finalize):
    """The same with the functions of a metric, a sum of labels and a count."""

    def zero():
        return tf.zeros([]), tf.zeros([])

    def update(state, labels, batch_output, sample_weight=None):
        total = tf.reduce_sum(tf.cast(labels, tf.float32))
        return state[0] + total, state[1] + tf.cast(tf.size(labels), tf.float32)

    @dataclasses.dataclass(frozen=True)
    class Model(MODELS[NAME]):
        def build(self):
            from tff_pmc.models.tff_types.keras_models import as_functional

            base = as_functional(MODELS[NAME].build(self))
            return models.PackedModel(
                initial_weights=base.initial_weights,
                predict_on_batch_fn=base._predict_on_batch_fn,
                loss_fn=base._loss_fn,
                input_spec=base.input_spec,
                metrics_fns=tuple(map(tf.function, (zero, update, finalize))),
            )

    return Model


def test_metrics_equal_scikit_learns_over_all_test_examples(runtime, tmp_path):
    """Also where a search has counted already; a resume and a second model are alike.

    The scores are NumPy's. A round without a test has those of the test before.
    """
    from tff_pmc.experiments.running import loop

    changes = {**SHORT, "model": NAME, "evaluate_every": 2, "clients_per_round": 5.0}
    changes.update(adjustment="backtracking", priority=("LD", "DS"), rounds=4)
    run_settings, data = settings("quickstart", changes), leaf_data.load("digits5k")
    weights, folder = Weights(), tmp_path / "whole"
    loop.run(run_settings, data, str(folder), title=None, callbacks=[weights])
    rows = read_results(str(folder)).rounds.set_index("round")
    x, y = np.asarray(data.test_examples.x), data.test_examples.y
    for number in (1, 2, 4):
        kernel, bias = weights.by_round[number]
        scores = x.reshape(len(x), -1) / 255 @ kernel + bias
        auc = roc_auc_score(np.eye(10)[y], scores, average="micro")
        np.testing.assert_allclose(rows["auc"][number], auc, atol=2e-3)
    assert rows["auc"][3] == rows["auc"][2] != rows["auc"][4]
    assert weights.numbers["auc"] == rows["auc"][4]
    again = tmp_path / "cut"
    two = run_settings.with_changes(rounds=2)
    loop.run(two, data, str(again), title=None, callbacks=[Weights()])
    mark_as_running(again)
    loop.run(
        run_settings, data, str(again), title=None, resume=True, callbacks=[Weights()]
    )
    assert records(again) == records(folder)


def test_metrics_of_keras_have_the_same_names_in_every_model(runtime, monkeypatch):
    """Given as objects; Keras would name the second model's `auc_1`."""
    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.experiments.running.evaluator import TestEvaluator

    def top_3():
        return tf.keras.metrics.SparseTopKCategoricalAccuracy(3, name="top_3")

    class Nameless(tf.keras.metrics.Metric):
        def __init__(self, name=None, dtype=None):
            super().__init__(name, dtype)
            self.total = self.add_weight("total", initializer="zeros")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.total.assign_add(tf.reduce_sum(tf.cast(y_true, tf.float32)))

        def result(self):
            return tf.identity(self.total)

    monkeypatch.setitem(MODELS._things, "mine", keras_metrics(top_3, Nameless))
    data = leaf_data.load("digits5k")
    x, y = np.asarray(data.test_examples.x), data.test_examples.y
    for seed in (0, 1):
        run_settings = settings(
            "quickstart", {**SHORT, "model": "mine", "model_seed": seed}
        )
        context = RunContext.from_settings(run_settings, data)
        weights = tff.learning.models.ModelWeights(*context.model.initial_weights)
        evaluator = TestEvaluator(context)
        metric_values = evaluator.model_metrics(weights, True)
        kernel, bias = weights.trainable
        scores = x.reshape(len(x), -1) / 255 @ kernel + bias
        expected = top_k_accuracy_score(y, scores, k=3, labels=range(10))
        np.testing.assert_allclose(metric_values["top_3"], expected, atol=2e-3)
        assert metric_values["nameless"] == y.sum()
        assert {*metric_values} == {*evaluator.model_metrics(weights, False)}
        assert len(metric_values) == 2


def test_metrics_of_a_regression_equal_numpys(runtime, tmp_path, monkeypatch):
    from tff_pmc.experiments.running import loop

    plane = MODELS["plane"]

    @dataclasses.dataclass(frozen=True)
    class WithError(plane):
        def build(self):
            packed, metric = plane.build(self), tf.keras.metrics.MeanAbsoluteError
            return models.PackedModel(
                initial_weights=packed.initial_weights,
                predict_on_batch_fn=packed._predict_on_batch_fn,
                loss_fn=packed._loss_fn,
                input_spec=packed.input_spec,
                metrics_fns=tff.learning.metrics.create_functional_metric_fns(
                    collections.OrderedDict(mae=metric)
                ),
            )

    monkeypatch.setitem(MODELS._things, "mine", WithError)
    run_settings = settings("wells", {"rounds": 2, "model": "mine"})
    data, weights = leaf_data.load("wells"), Weights()
    loop.run(run_settings, data, str(tmp_path), title=None, callbacks=[weights])
    x, y = data.test_examples.x, data.test_examples.y
    rows = read_results(str(tmp_path)).rounds
    for number, measured in zip(rows["round"], rows["mae"]):
        slope, offset = weights.by_round[number]
        np.testing.assert_allclose(
            measured, np.abs(x @ slope + offset - y).mean(), 1e-5
        )


def without_config():
    class Scaled(tf.keras.metrics.Mean):
        def __init__(self, factor=2.0, name="scaled", dtype=None):
            super().__init__(name, dtype)

    return Scaled


def named(*names):
    """The model with accuracies of these names."""
    kind = tf.keras.metrics.SparseCategoricalAccuracy
    return keras_metrics(*(lambda name=name: kind(name=name) for name in names))


def of_two_numbers():
    """The model with a metric whose result is a dict."""

    class Both(tf.keras.metrics.Mean):
        def __init__(self):
            super().__init__("both")

        def update_state(self, y_true, y_pred, sample_weight=None):
            return super().update_state(y_pred)

        def result(self):
            return {"low": tf.identity(self.total), "high": tf.identity(self.count)}

        def get_config(self):
            return {}

    return keras_metrics(Both)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (lambda: keras_metrics(tf.keras.metrics.CategoricalHinge), "are 32 and 10"),
        (lambda: keras_metrics(tf.keras.metrics.AUC), "are incompatible"),
        (lambda: keras_metrics(without_config()), "get_config lacks factor"),
        (
            lambda: keras_metrics(
                lambda: tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")
            ),
            "rounds.csv already has a column 'accuracy'",
        ),
        (
            lambda: functional(lambda state: {"both": tf.stack(state)}),
            "metric 'both' returns an array",
        ),
        (lambda: functional(lambda state: state[0] / state[1]), "have no names"),
        (
            lambda: functional(lambda state: {"auc@1000": state[0]}),
            "metric 'auc@1000' must have a name of",
        ),
        (lambda: functional(lambda state: {"mean": state[0]}), "cannot be aggregated"),
        (of_two_numbers, "metric 'both' returns an array"),
        (lambda: named("recall (macro)"), "name it 'recall_macro'"),
        *((lambda name=name: named(name), "must have a name of") for name in WRONG),
        (lambda: named("top", "Top"), "'top' and 'Top' differ only in case"),
        (lambda: named("top", "top"), "two metrics named 'top'"),
        (lambda: named("loss"), "two metrics named 'loss', and TFF adds one"),
        *(
            (lambda name=name: named(name), f"already has a column {name!r}")
            for name in TAKEN
        ),
    ],
)
def test_metrics_that_no_column_can_hold_are_one_line_before_the_first_round(
    tmp_path, monkeypatch, assert_one_line, model, says
):
    from tff_pmc.experiments.running import loop

    monkeypatch.setitem(MODELS._things, "mine", model())
    run_settings = settings("quickstart", {**SHORT, "model": "mine"})
    data, folder = leaf_data.load("digits5k"), tmp_path / "out"
    start = lambda: loop.run(run_settings, data, str(folder), title=None)  # noqa: E731
    assert_one_line(SettingError, start, "--model=mine: ", "metric", says)
    assert not folder.exists()
