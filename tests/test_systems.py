"""AdaFed's and Dual's experiments: their rows, records, resuming and reports."""

import dataclasses
import os

import numpy as np
import pandas as pd
import pytest

import leaf_data
from tff_pmc.experiments import config as config_lib
from tff_pmc.experiments import named, parsing, systems
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


def configs_of(experiment, wanted=None, **changes):
    return [
        named.settings(experiment, {**row, "rounds": 2, "local_epochs": 1, **changes})
        for row in systems.rows_of(experiment, wanted)
    ]


class TestRows:
    def test_every_row_is_a_run_with_a_name_and_folder_of_its_own(self):
        for experiment in systems.SYSTEMS:
            configs = configs_of(experiment)
            for name in ("label", "folder"):
                values = [getattr(config, name) for config in configs]
                assert len(set(values)) == len(values) == len(configs)

    def test_adafed_2_has_the_three_curves_of_the_paper(self):
        labels = [config.label for config in configs_of("adafed_2")]
        assert labels == ["FedAvg", "AdaFed, weights only", "AdaFed"]

    def test_adafed_3_mislabels_half_and_all(self):
        shares = [config.mislabeled_fraction for config in configs_of("adafed_3")]
        assert shares == [0.5, 0.5, 1.0, 1.0]

    def test_dual_has_eight_algorithms_with_three_and_four_clients(self):
        rows = [systems.dual_row(c) for c in configs_of("dual_criterion")]
        assert len(set(rows)) == 16
        assert {clients for _, clients in rows} == {"C1&C2&C3", "C1&C2&C3&C4"}

    def test_systems_are_named_as_people_type_them(self):
        rows = systems.rows_of("adafed_2", ["fedavg", "AdaFed weights-only"])
        assert [row["system"] for row in rows] == ["FedAvg", "AdaFed, weights only"]
        with pytest.raises(config_lib.ConfigError, match=r"--systems=fedprox: adafed"):
            systems.rows_of("adafed_1", ["fedprox"])

    def test_what_runs_on_demand_is_not_among_all(self):
        names = [row["system"] for row in systems.rows_of("adafed_1", None)]
        assert names == ["FedAvg", "AdaFed"]
        (row,) = systems.rows_of("adafed_1", ["adafed_times_samples"])
        score = named.settings("adafed_1", row).resolve_score()
        assert score((0.5, 0.4)) == pytest.approx(0.2)


def run_both(configs, data, folder, resume=False):
    from tff_pmc.experiments import suite

    return suite.run_all(configs, lambda config: data, str(folder), resume=resume)


def test_adafed_records_reports_and_resumes(runtime, federation, tmp_path):
    """Cut after a round and resumed: every record and every bit of the model."""
    from tff_pmc.experiments import loop

    changes = {"images_per_client": 10, "batch_size": 10, "keep_own_model": True}
    configs = configs_of("adafed_3", **changes)[:2]
    text = run_both(configs, federation, tmp_path / "whole")
    assert "FedAvg" in text and "Its numbers are not at hand" in text
    for name in ("adafed.csv", "adafed.md", "figure.png", "accuracy.png"):
        assert (tmp_path / "whole" / name).stat().st_size > 0
    folder = tmp_path / "whole" / configs[1].folder
    rounds = pd.read_csv(folder / "rounds.csv")
    assert rounds["validation_correct"].between(0, 60).all()
    f1 = pd.read_csv(folder / "class_f1.csv")
    assert len(f1) == 2 * 10 and f1["f1"].between(0, 1).all()
    assert not (tmp_path / "whole" / configs[0].folder / "class_f1.csv").exists()
    cohort = pd.read_csv(folder / "cohort.csv")
    weights = cohort[cohort["round"] == 2]
    expected = weights["ACC"] / weights["ACC"].sum()
    np.testing.assert_allclose(weights["weight"], expected, rtol=1e-5)

    cut = str(tmp_path / "cut")
    loop.run(configs[1], federation, cut, until=lambda correct: True)
    os.rename(os.path.join(cut, "run.json"), os.path.join(cut, "done.json"))
    text = (tmp_path / "cut" / "done.json").read_text()
    (tmp_path / "cut" / "run.json").write_text(text.replace("finished", "interrupted"))
    os.remove(os.path.join(cut, "done.json"))
    loop.run(configs[1], federation, cut, resume=True)
    for name in ("rounds", "clients", "cohort", "weights"):
        one, other = (open(f"{path}/{name}.csv").read() for path in (folder, cut))
        assert one == other


def test_several_seeds_end_in_a_page_of_effects(runtime, federation, tmp_path):
    """And the partition, the initial weights and the batches are the seed's."""
    from tff_pmc.experiments import suite

    asked, folder = [], tmp_path / "seeds"

    def load(config):
        asked.append((config.partition_seed, config.model_seed, config.batch_seed))
        return federation

    configs = configs_of("adafed_2", rounds=1, batch_size=10)[:2]
    text = suite.run_seeds(configs, [4, 5], load, str(folder))
    assert {(4, 4, 4), (5, 5, 5)} <= set(asked)
    assert "Under 5 seeds nothing is claimed" in text
    rows = pd.read_csv(folder / "effect.csv")
    assert set(rows["system"]) == {"AdaFed, weights only"}
    accuracy = {
        (seed, config.system): pd.read_csv(
            folder / f"seed_{seed}" / config.folder / "rounds.csv"
        )["accuracy"][0]
        for seed in (4, 5)
        for config in configs
    }
    by_hand = [
        accuracy[seed, "AdaFed, weights only"] - accuracy[seed, "FedAvg"]
        for seed in (4, 5)
    ]
    np.testing.assert_allclose(rows["mean"], np.mean(by_hand), atol=1e-6)
    system = "AdaFed, weights only"
    assert accuracy[4, system] != accuracy[5, system]
    again = suite.run_seeds(configs, [4, 5], load, str(folder), resume=True)
    assert again == text


def test_titles_say_how_many_clients_there_are():
    from tff_pmc.experiments import suite

    (config, *_) = configs_of("dual_criterion", ["median"])
    three, four = (made_up_run("", "Median", 0.0, [0.1]) for _ in range(2))
    three.info["data"]["clients"], four.info["data"]["clients"] = 3, 4
    assert ": m, 3 or 4 clients, E" in suite._title(config, [three, four])
    assert ": m, 4 clients, E" in suite._title(config, [four])


def test_settings_reach_adafeds_process(federation, monkeypatch):
    from tff_pmc.experiments import builders

    given = {}
    monkeypatch.setattr(
        builders.processes, "build_adafed", lambda model, **kw: given.update(kw)
    )
    for config in configs_of("adafed_3", accuracy_power=2.5)[:2]:
        builders.build_fixed(config, federation)
        assert given["adapt_loss"] == (config.system == "AdaFed")
        assert given["keep_own_model"] == [3]
        assert given["power"] == 2.5
        assert [c.code for c in given["criteria"]] == ["DS"]
        assert given["score"].label == ("ACC" if config.system == "AdaFed" else "DS")
    (config, *_) = configs_of("adafed_1")
    builders.build_fixed(config, federation)
    assert given["keep_own_model"] == []


@pytest.mark.parametrize(
    ("system", "settings", "expected"),
    [
        ("momentum", {"beta": 0.3, "eta": 0.7}, {"beta": 0.3, "eta": 0.7}),
        ("personalized", {"alpha": 0.2}, {"alpha": 0.2, "form": "formula"}),
        ("laplace", {"epsilon": 9.0, "batch_seed": 4}, {"epsilon": 9.0, "seed": 4}),
        ("quantized", {"quantization_levels": 4}, {"levels": 4}),
        ("median", {}, {}),
    ],
)
def test_settings_reach_the_baselines(
    federation, monkeypatch, system, settings, expected
):
    from tff_pmc.aggregation import baselines
    from tff_pmc.experiments import builders

    given = {}

    def make(**options):
        given.update(options)
        return baselines.weighted_mean()

    monkeypatch.setitem(builders.BASELINES, system, make)
    row = {"model": "keras_mnist_cnn", "dropout": 0.0, **settings}
    builders.build_fixed(configs_of("dual_criterion", [system], **row)[0], federation)
    assert given == expected


def made_up_run(folder, system, share, accuracy):
    """What `reports.adafed` reads of a run."""
    settings = {"system": system, "mislabeled_fraction": share, "model": "cnn"}
    settings.update(client_optimizer="adam", learning_rate=0.001, local_epochs=5)
    settings.update(batch_size=100, rounds=len(accuracy), batch_seed=0)
    info = {"settings": settings, "data": {"name": "m", "clients": 8, "options": {}}}
    rounds = pd.DataFrame({"round": range(1, len(accuracy) + 1), "accuracy": accuracy})
    return read.Run(system, info, rounds, rounds, None, None)


def test_adafeds_page_by_hand(tmp_path):
    from tff_pmc.reports import adafed

    runs = [
        made_up_run(tmp_path, "FedAvg", 0.5, [0.1, 0.5, 0.7, 0.81, 0.8, 0.9]),
        made_up_run(tmp_path, "AdaFed", 0.5, [0.3, 0.6, 0.8, 0.81, 0.9, 0.9]),
        made_up_run(tmp_path, "FedAvg", 1.0, [0.1, 0.2]),
    ]
    adafed.write(runs, str(tmp_path), "adafed_3")
    rows = pd.read_csv(tmp_path / "adafed.csv").set_index(["system", "mislabeled"])
    row = rows.loc["AdaFed", 0.5]
    # (20 + 10 + 10 + 0 + 10) / 5, and the same five over six rounds.
    assert (row["lead 1-5"], row["lead"]) == (10.0, 8.33)
    assert (row["to 80 %"], row["to 90 %"], row["to 95 %"]) == ("3", "5", "-")
    assert row["round 5"] == 0.9
    assert {"figure_50.png", "figure_100.png"} <= set(os.listdir(tmp_path))


def test_dual_chooses_lambda_and_makes_its_table(runtime, federation, tmp_path):
    configs = configs_of(
        "dual_criterion",
        ["dual_criterion", "simple_average", "median", "laplace"],
        model="keras_mnist_cnn",
        num_clients=4,
        batch_size=16,
        lambda_steps=3,
    )[:4]
    text = run_both(configs, federation, tmp_path / "dual")
    assert "Dual-Criterion Weighted" in text and "0.8369" in text
    run = read.read_run(str(tmp_path / "dual" / configs[0].folder))
    assert set(run.candidates["ordering"]) == {
        "lambda=0.00",
        "lambda=0.50",
        "lambda=1.00",
    }
    # Judged on the server's 60 pictures, and the best of all is kept.
    assert set(run.candidates["examples"]) == {60}
    for _, trials in run.candidates.groupby("round"):
        assert trials["correct"].max() == trials["correct"][trials["kept"] == 1].item()
    kept = run.candidates[run.candidates["kept"] == 1]
    assert list(run.rounds["ordering"]) == list(kept["ordering"])
    assert list(run.rounds["validation_correct"]) == list(kept["correct"])


def test_dual_under_several_seeds_makes_its_table_over_them(
    runtime, federation, tmp_path
):
    from tff_pmc.experiments import suite

    configs = configs_of(
        "dual_criterion",
        ["median", "weighted_mean"],
        model="keras_mnist_cnn",
        num_clients=4,
        rounds=1,
    )[:2]
    text = suite.run_seeds(configs, [0, 1], lambda _: federation, str(tmp_path))
    assert "# Is there an effect? dual_criterion" in text
    table = pd.read_csv(tmp_path / "dual_table4.csv")
    own = [pd.read_csv(tmp_path / f"seed_{s}" / "dual_table4.csv") for s in (0, 1)]
    mean = (own[0]["ours_best_epoch"] + own[1]["ours_best_epoch"]) / 2
    np.testing.assert_allclose(table["mean"], mean, atol=1e-6)
    assert "Dual Table IV (CIFAR-10), seeds" in text


def test_personalized_by_its_text_tests_the_clients_own_models(
    runtime, federation, tmp_path
):
    from tff_pmc.experiments import loop

    (config,) = configs_of(
        "dual_criterion",
        ["personalized"],
        model="keras_mnist_cnn",
        num_clients=4,
        batch_size=16,
        dropout=0.0,
    )[:1]
    found = {}
    for form in ("formula", "text"):
        own = dataclasses.replace(config, personalized_form=form, alpha=1.0)
        loop.run(own, federation, str(tmp_path / form))
        found[form] = pd.read_csv(tmp_path / form / "rounds.csv")
    # With alpha 1 both train the same model; only what is tested differs.
    same = ["train_loss", "validation_correct"]
    pd.testing.assert_frame_equal(found["formula"][same], found["text"][same])
    assert list(found["formula"]["correct"]) != list(found["text"]["correct"])


def test_each_client_answers_its_own_part_with_its_own_model(runtime, federation):
    """Against each client tuned by itself, one after another."""
    import tensorflow as tf
    import tensorflow_federated as tff

    from tff_pmc import models
    from tff_pmc.clients.packed import train_locally
    from tff_pmc.experiments import builders, test_sets

    (config,) = configs_of(
        "dual_criterion",
        ["personalized"],
        model="keras_mnist_cnn",
        num_clients=4,
        dropout=0.0,
        batch_size=0,
        learning_rate=0.01,
        personalized_form="text",
    )[:1]
    model = models.keras_mnist_cnn(dropout=0.0, seed=1)
    trainable = tuple(map(tf.constant, model.initial_weights[0]))
    weights = tff.learning.models.ModelWeights(trainable, ())
    expected = []
    for client in federation.client_ids:
        own = federation.train_examples.client(client)
        tuned, _ = train_locally(
            model,
            builders.client_optimizer(config),
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
    found = test_sets.OwnAnswers(config, federation, model).answer(weights)
    np.testing.assert_array_equal(found, np.concatenate(expected))
    assert len({part.tobytes() for part in expected}) > 1


def test_a_data_set_without_examples_of_the_server_is_refused(federation):
    from tff_pmc.experiments import loop

    (config, *_) = configs_of("adafed_1")
    without = dataclasses.replace(federation, server_examples=None)
    with pytest.raises(config_lib.ConfigError, match="server's own"):
        loop.check(config, without)


def test_criteria_can_name_acc():
    assert parsing.parse_codes("criteria", "ACC,DS") == ("ACC", "DS")
