"""The experiments that compare systems: their rows, records, resuming and reports."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import leaf_data
from leaf_data.settings import SettingError
from tff_pmc.experiments.experiment import EXPERIMENTS, settings
from tff_pmc.reports import read


@pytest.fixture(scope="module")
def federation():
    """Four clients of real digits, the last an adversary, and a set of the server's."""
    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    train, test = data.train_examples, data.test_examples

    def of(examples, parts, names):
        return leaf_data.Examples.from_parts(examples.x, examples.y, parts, names)

    names = ("a", "b", "c", "d")
    rows = np.arange(train.num_examples)
    parts = [rows[start : start + 30 + 5 * start % 7] for start in (0, 900, 1800, 2700)]
    table = leaf_data.ClientTable(
        names, {"adversary": np.array([0, 0, 0, 1], np.float32)}, "made up"
    )
    return dataclasses.replace(
        data,
        name="four",
        train_examples=of(train, parts, names),
        test_examples=of(test, np.split(np.arange(80), 4), names),
        server_examples=of(test, [np.arange(100, 160)], ("server",)),
        client_table=table,
    )


def runs_of(experiment, *wanted, **changes):
    """The settings of an experiment's rows, or of those of the systems named."""
    found = EXPERIMENTS[experiment]
    rows = [r for r in (*found.rows, *found.on_demand) if r.system in wanted]
    short = {"rounds": 2, "local_epochs": 1, **changes}
    return [settings(experiment, {**row.values, **short}) for row in rows or found.rows]


def run_all(runs, data, folder, resume=False):
    from tff_pmc.experiments.running import suite

    return suite.run_all(runs, lambda settings: data, str(folder), resume=resume)


def test_adafed_records_reports_and_resumes(runtime, federation, tmp_path):
    """Cut after a round and resumed: every record and every bit of the model."""
    from tff_pmc.experiments.running import loop

    changes = {"batch_size": 10, "model": "keras_simple_convnet"}
    runs = runs_of("adafed_3", **changes)
    text = run_all(runs, federation, tmp_path / "whole")
    assert "FedAvg" in text and "AdaFed's simulation 3" in text
    for name in ("adafed.csv", "adafed.md", "figure5.png", "figure6.png"):
        assert (tmp_path / "whole" / name).stat().st_size > 0
    folder = tmp_path / "whole" / runs[1].folder
    rounds = pd.read_csv(folder / "rounds.csv")
    assert rounds["validation_correct"].between(0, 60).all()
    for one in runs:  # FedAvg has F1 on record, too.
        path = tmp_path / "whole" / one.folder
        f1 = pd.read_csv(path / "class_f1.csv")
        assert len(f1) == 2 * 10 and f1["f1"].between(0, 1).all()
        macro = f1.groupby("round")["f1"].mean()
        on_record = pd.read_csv(path / "rounds.csv")["macro_f1"]
        np.testing.assert_allclose(on_record, macro, atol=1e-6)
    cohort = pd.read_csv(folder / "cohort.csv")
    weights = cohort[cohort["round"] == 2]
    expected = weights["ACC"] / weights["ACC"].sum()
    np.testing.assert_allclose(weights["weight"], expected, rtol=1e-5)

    cut = tmp_path / "cut"
    loop.run(runs[1], federation, str(cut), until=lambda correct: True)
    text = (cut / "run.json").read_text()
    (cut / "run.json").write_text(text.replace("finished", "interrupted"))
    loop.run(runs[1], federation, str(cut), resume=True)
    for name in ("rounds", "clients", "cohort", "weights", "class_f1"):
        one, other = ((path / f"{name}.csv").read_text() for path in (folder, cut))
        assert one == other


def test_several_seeds_end_in_a_page_of_effects(runtime, federation, tmp_path):
    """And the partition, the initial weights and the batches are the seed's."""
    from tff_pmc.experiments.running import suite

    asked, folder = [], tmp_path / "seeds"

    def load(one):
        seeds = (one.data.seed, one.model.seed, one.training.batch_seed)
        asked.append(seeds)
        return federation

    small = {"rounds": 1, "batch_size": 10, "model": "keras_simple_convnet"}
    runs = runs_of("adafed_2", client_optimizer="adam", learning_rate=0.001, **small)
    runs = runs[:2]
    text = suite.run_seeds(runs, [4, 5], load, str(folder))
    assert {(4, 4, 4), (5, 5, 5)} <= set(asked)
    assert "Under 5 seeds nothing is claimed" in text
    rows = pd.read_csv(folder / "effect.csv")
    assert set(rows["system"]) == {"AdaFed, weights only"}
    accuracy = {
        (seed, one.label): pd.read_csv(
            folder / f"seed_{seed}" / one.folder / "rounds.csv"
        )["accuracy"][0]
        for seed in (4, 5)
        for one in runs
    }
    by_hand = [
        accuracy[seed, "AdaFed, weights only"] - accuracy[seed, "FedAvg"]
        for seed in (4, 5)
    ]
    np.testing.assert_allclose(rows["mean"], np.mean(by_hand), atol=1e-6)
    system = "AdaFed, weights only"
    assert accuracy[4, system] != accuracy[5, system]
    again = suite.run_seeds(runs, [4, 5], load, str(folder), resume=True)
    assert again == text


def built(one, federation):
    """Builds the rounds of a run's system."""
    from tff_pmc.systems.setup import Setup

    return one.system.build(Setup.of(one, federation))


def test_settings_reach_adafeds_process(federation, monkeypatch):
    from tff_pmc import processes
    from tff_pmc.systems import adafed, scored

    given = {}

    def build(model, **options):
        given.clear()
        given.update(options)

    monkeypatch.setattr(processes, "build_adafed", build)
    monkeypatch.setattr(processes, "build_prioritized_fed_avg", build)
    for module in (adafed, scored):
        monkeypatch.setattr(module, "FixedRounds", lambda *a: None, raising=False)
    (fedavg,) = runs_of("adafed_3", "fedavg")
    own = {"adafed_accuracy_power": 2.5, "adafed_epsilon": 0.3}
    (ours,) = runs_of("adafed_3", "adafed", **own)
    built(fedavg, federation)
    assert given["keep_own_model"] == [3] and given["score"].label == "DS"
    assert [c.code for c in given["criteria"]] == ["ACC", "DS"]
    built(ours, federation)
    assert given["adapt_loss"] and given["keep_own_model"] == [3]
    assert given["power"] == 2.5 and given["score"].label == "ACC"
    assert given["epsilon"] == 0.3
    assert [c.code for c in given["criteria"]] == ["DS"]
    (weights,) = runs_of("adafed_2", "adafed_weights_only")
    built(weights, federation)
    assert not given["adapt_loss"] and given["keep_own_model"] == []
    assert "epsilon" not in given
    (times,) = runs_of("adafed_2", "adafed_times_samples")
    built(times, federation)
    assert given["score"]((0.5, 0.4)) == pytest.approx(0.2) and given["adapt_loss"]
    (printed,) = runs_of("adafed_1", "adafed_weights_only_times_samples")
    built(printed, federation)
    assert given["score"]((0.5, 0.4)) == pytest.approx(0.2)
    assert not given["adapt_loss"]  # Simulation 1 has the weights alone (4.0.1).


@pytest.mark.parametrize(
    ("system", "changes", "expected"),
    [
        (
            "momentum",
            {"momentum_beta": 0.3, "momentum_eta": 0.7},
            {"beta": 0.3, "eta": 0.7},
        ),
        (
            "personalized",
            {"personalized_alpha": 0.2},
            {"alpha": 0.2, "form": "formula"},
        ),
        (
            "laplace",
            {"laplace_epsilon": 9.0, "batch_seed": 4},
            {"epsilon": 9.0, "seed": 4},
        ),
        ("quantized_updates", {"quantized_levels": 4}, {"levels": 4}),
        ("median", {}, {}),
        ("simple_average", {}, {}),
        ("weighted_mean", {}, {}),
    ],
)
def test_settings_reach_the_baselines(monkeypatch, system, changes, expected):
    from tff_pmc.aggregation import baselines

    given = []
    monkeypatch.setattr(baselines, system, lambda **options: given.append(options))
    one, _ = runs_of("dual_criterion", system, **changes)
    one.system.factory(one)
    assert given == [expected]


def test_quantized_is_the_simple_average_of_quantized_models(monkeypatch):
    from tff_pmc.aggregation import baselines, client_steps

    given = []
    monkeypatch.setattr(client_steps, "quantize_parameters", given.append)
    monkeypatch.setattr(baselines, "simple_average", lambda: "simple")
    one, _ = runs_of("dual_criterion", "quantized", quantized_bits=5)
    assert one.system.factory(one) == "simple"
    one.system.client_step(one)
    assert given == [5]


def test_the_client_step_of_a_system_reaches_its_process(federation, monkeypatch):
    from tff_pmc import processes
    from tff_pmc.systems import factory_system

    given = {}

    def build(model, factory, **options):
        given.update(options)

    monkeypatch.setattr(processes, "build_factory_fed_avg", build)
    monkeypatch.setattr(factory_system, "FixedRounds", lambda *a: None)
    small = {"model": "keras_mnist_cnn", "num_clients": 4}
    for name, steps in (("quantized", True), ("simple_average", False)):
        one, _ = runs_of("dual_criterion", name, **small)
        built(one, federation)
        assert (given["client_step"] is not None) == steps


def test_dual_chooses_lambda_and_makes_its_table(runtime, federation, tmp_path):
    small = {"model": "keras_simple_convnet", "num_clients": 4, "batch_size": 16}
    (dual, _), *others = (
        runs_of("dual_criterion", "dual", dual_lambda_steps=3, **small),
        *(
            runs_of("dual_criterion", name, **small)
            for name in ("simple_average", "median", "laplace")
        ),
    )
    runs = [dual, *(one for one, _ in others)]
    text = run_all(runs, federation, tmp_path / "dual")
    assert "Dual-Criterion Weighted" in text and "0.8369" in text
    run = read.read_run(str(tmp_path / "dual" / runs[0].folder))
    assert set(run.candidates["ordering"]) == {
        "lambda=0.00",
        "lambda=0.50",
        "lambda=1.00",
    }
    # Judged on the 80 pictures that are reported, and the best of all is kept.
    assert set(run.candidates["examples"]) == {80}
    for _, trials in run.candidates.groupby("round"):
        assert trials["correct"].max() == trials["correct"][trials["kept"] == 1].item()
    kept = run.candidates[run.candidates["kept"] == 1]
    assert list(run.rounds["ordering"]) == list(kept["ordering"])
    assert list(run.rounds["correct"]) == list(kept["correct"])
    assert "(--judge_on=test)" in text
    table = pd.read_csv(tmp_path / "dual" / "dual_table4_lambda.csv")
    labels = [f"lambda={value:.2f}" for value in table["lambda"]]
    assert labels == list(run.rounds["ordering"])


def test_dual_may_choose_lambda_on_the_evaluation_set(runtime, federation, tmp_path):
    """On the server's 60 pictures, of which each epoch's record has the right ones."""
    dual, _ = runs_of(
        *("dual_criterion", "dual"),
        **{"model": "keras_mnist_cnn", "num_clients": 4, "batch_size": 16},
        **{"dual_lambda_steps": 3, "judge_on": "server", "rounds": 1},
    )
    text = run_all([dual], federation, tmp_path)
    run = read.read_run(str(tmp_path / dual.folder))
    assert set(run.candidates["examples"]) == {60}
    kept = run.candidates[run.candidates["kept"] == 1]
    assert list(run.rounds["validation_correct"]) == list(kept["correct"])
    assert "(--judge_on=server)" in text


def test_dual_under_several_seeds_makes_its_table_over_them(
    runtime, federation, tmp_path
):
    from tff_pmc.experiments.running import suite

    runs = runs_of(
        *("dual_criterion", "median", "weighted_mean"),
        model="keras_simple_convnet",
        num_clients=4,
        rounds=1,
    )[:2]
    text = suite.run_seeds(runs, [0, 1], lambda _: federation, str(tmp_path))
    assert "# Is there an effect? dual_criterion" in text
    table = pd.read_csv(tmp_path / "dual_table4.csv")
    own = [pd.read_csv(tmp_path / f"seed_{s}" / "dual_table4.csv") for s in (0, 1)]
    mean = (own[0]["ours_best_epoch"] + own[1]["ours_best_epoch"]) / 2
    np.testing.assert_allclose(table["mean"], mean, atol=1e-6)
    assert "Dual Table IV (CIFAR-10), seeds" in text


def test_personalized_by_its_text_tests_the_clients_own_models(
    runtime, federation, tmp_path
):
    from tff_pmc.experiments.running import loop

    (config,) = runs_of(
        *("dual_criterion", "personalized"),
        model="keras_simple_convnet",
        num_clients=4,
        batch_size=16,
        dropout=0.0,
    )[:1]
    found = {}
    for form in ("formula", "text"):
        own = config.replaced(personalized_form=form, personalized_alpha=0.0)
        loop.run(own, federation, str(tmp_path / form))
        found[form] = pd.read_csv(tmp_path / form / "rounds.csv")
    # With alpha 0 both train the same model; only what is tested differs.
    same = ["train_loss", "validation_correct"]
    pd.testing.assert_frame_equal(found["formula"][same], found["text"][same])
    assert list(found["formula"]["correct"]) != list(found["text"]["correct"])


def test_each_client_answers_its_own_part_with_its_own_model(runtime, federation):
    """Against each client tuned by itself, one after another."""
    import tensorflow as tf
    import tensorflow_federated as tff

    from tff_pmc.clients.packed_training import train_locally
    from tff_pmc.systems.setup import Setup

    (config,) = runs_of(
        *("dual_criterion", "personalized"),
        model="keras_simple_convnet",
        num_clients=4,
        dropout=0.0,
        batch_size=0,
        learning_rate=0.01,
        personalized_form="text",
    )[:1]
    config = config.replaced(model_seed=1)
    setup = Setup.of(config, federation)
    model = setup.model
    trainable = tuple(map(tf.constant, model.initial_weights[0]))
    weights = tff.learning.models.ModelWeights(trainable, ())
    expected = []
    for client in federation.client_ids:
        own = federation.train_examples.client(client)
        tuned, _ = train_locally(
            model,
            setup.client_optimizer,
            weights,
            own["x"],
            own["y"],
            local_epochs=1,
            batch_size=0,
            seed=[0, 0],
        )
        x = federation.test_examples.client(client)["x"]
        output = model.predict_on_batch((tuned.trainable, ()), x, False)
        expected.append(np.argmax(output, axis=-1))
    found = config.system.own_answers(setup).answer(weights)
    np.testing.assert_array_equal(found, np.concatenate(expected))
    assert len({part.tobytes() for part in expected}) > 1


def test_a_data_set_without_examples_of_the_server_is_refused(federation):
    from tff_pmc.experiments.running import loop

    without = dataclasses.replace(federation, server_examples=None)
    for one in runs_of("adafed_1"):
        with pytest.raises(SettingError, match="server's own"):
            loop.prepare(one, without)
