"""The baselines of Dual's experiment: their settings, steps and own models."""

import numpy as np
import pandas as pd
import pytest
from short_runs import built, runs_of

MOMENTUM = {"momentum_beta": 0.3, "momentum_eta": 0.7}
LAPLACE = {"laplace_epsilon": 9.0, "batch_seed": 4}
FORMULA = {"alpha": 0.2, "form": "formula"}


@pytest.mark.parametrize(
    ("algorithm", "changes", "expected"),
    [
        ("momentum", MOMENTUM, {"beta": 0.3, "eta": 0.7}),
        ("personalized", {"personalized_alpha": 0.2}, FORMULA),
        ("laplace", LAPLACE, {"epsilon": 9.0, "seed": 4}),
        ("quantized_updates", {"quantized_levels": 4}, {"levels": 4}),
        *((name, {}, {}) for name in ("median", "simple_average", "weighted_mean")),
    ],
)
def test_settings_reach_the_baselines(monkeypatch, algorithm, changes, expected):
    from tff_pmc.aggregation import baselines

    calls = []
    monkeypatch.setattr(baselines, algorithm, lambda **options: calls.append(options))
    config, _ = runs_of("dual_criterion", algorithm, **changes)
    config.algorithm.factory(config)
    assert calls == [expected]


def test_quantized_is_the_simple_average_of_quantized_models(monkeypatch):
    from tff_pmc.aggregation import baselines

    calls = []
    monkeypatch.setattr(baselines, "quantize_parameters", calls.append)
    monkeypatch.setattr(baselines, "simple_average", lambda: "simple")
    config, _ = runs_of("dual_criterion", "quantized", quantized_bits=5)
    assert config.algorithm.factory(config) == "simple"
    config.algorithm.client_step(config)
    assert calls == [5]


def test_the_client_step_of_an_algorithm_reaches_its_process(federation, monkeypatch):
    from tff_pmc import processes
    from tff_pmc.algorithms import baseline_algorithms

    arguments = {}

    def build(model, **options):
        arguments.update(options)

    monkeypatch.setattr(processes, "build_prioritized_fed_avg", build)
    monkeypatch.setattr(baseline_algorithms, "FixedTrainer", lambda *a: None)
    small = {"model": "keras_mnist_cnn", "num_clients": 4}
    for name, steps in (("quantized", True), ("simple_average", False)):
        config, _ = runs_of("dual_criterion", name, **small)
        built(config, federation)
        assert (arguments["client_step"] is not None) == steps


def test_personalized_as_in_its_text_tests_the_clients_models(
    runtime, federation, small, tmp_path
):
    from tff_pmc.experiments.running import loop

    (config,) = runs_of(
        *("dual_criterion", "personalized"),
        num_clients=4,
        **small,
    )[:1]
    tables = {}
    for form, alpha in (("formula", {"personalized_alpha": 0.0}), ("text", {})):
        form_config = config.with_changes(personalized_form=form, **alpha)
        loop.run(form_config, federation, str(tmp_path / form))
        tables[form] = pd.read_csv(tmp_path / form / "rounds.csv")
    # With alpha 0 both train the same model; only what is tested differs.
    columns = ["train_loss", "validation_correct"]
    pd.testing.assert_frame_equal(tables["formula"][columns], tables["text"][columns])
    assert list(tables["formula"]["correct"]) != list(tables["text"]["correct"])


def test_each_client_predicts_its_part_with_its_model(runtime, federation, small):
    """Against each client tuned by itself, one after another."""
    import tensorflow as tf
    import tensorflow_federated as tff

    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.clients.packed_training import train_locally

    (config,) = runs_of(
        *("dual_criterion", "personalized"),
        **{**small, "batch_size": 0},
        num_clients=4,
        learning_rate=0.01,
        personalized_form="text",
    )[:1]
    config = config.with_changes(model_seed=1)
    context = RunContext.from_settings(config, federation)
    model = context.model
    trainable = tuple(map(tf.constant, model.initial_weights[0]))
    weights = tff.learning.models.ModelWeights(trainable, ())
    expected = []
    for client in federation.client_ids:
        examples = federation.train_examples.client(client)
        tuned, *_ = train_locally(
            model,
            context.client_optimizer,
            weights,
            examples["x"],
            examples["y"],
            training=config.training,
            seed=[0, 0],
        )
        x = federation.test_examples.client(client)["x"]
        output = model.predict_on_batch((tuned.trainable, ()), x, False)
        expected.append(np.argmax(output, axis=-1))
    answers = config.algorithm.build_predictor(context).predict(weights)
    np.testing.assert_array_equal(answers, np.concatenate(expected))
    assert len({part.tobytes() for part in expected}) > 1
