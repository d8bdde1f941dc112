"""AdaFed's experiments: records, resuming, seeds, and settings of the process."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from short_runs import built, run_all, runs_of

import leaf_data
from declared_settings import SettingError
from tff_pmc.experiments.callbacks import Callback


class Interrupt(Callback):
    """Interrupts a run when its second round is trained, before it is kept."""

    def after_round(self, round):
        if round.record.round_num == 2:
            raise KeyboardInterrupt
        return None


def test_adafed_records_reports_and_resumes(runtime, federation, small, tmp_path):
    """Cut after a round and resumed: every record and every bit of the model."""
    from tff_pmc.experiments.running import loop

    runs = runs_of("adafed_3", **small)
    text = run_all(runs, federation, tmp_path / "whole")
    assert "FedAvg" in text and "AdaFed's simulation 3" in text
    for name in ("adafed.csv", "adafed.md", "figure5.png", "figure6.png"):
        assert (tmp_path / "whole" / name).stat().st_size > 0
    folder = tmp_path / "whole" / runs[1].folder_name
    rounds = pd.read_csv(folder / "rounds.csv")
    assert rounds["validation_correct"].between(0, 60).all()
    for config in runs:  # FedAvg has F1 on record, too.
        path = tmp_path / "whole" / config.folder_name
        f1 = pd.read_csv(path / "class_f1.csv")
        assert [*f1["class"]] == 2 * [*range(10)] and f1["f1"].between(0, 1).all()
        macro = f1.groupby("round")["f1"].mean()
        on_record = pd.read_csv(path / "rounds.csv")["macro_f1"]
        np.testing.assert_allclose(on_record, macro, atol=1e-6)
    cohort = pd.read_csv(folder / "cohort.csv")
    weights = cohort[cohort["round"] == 2]
    expected = weights["ACC"] / weights["ACC"].sum()
    np.testing.assert_allclose(weights["weight"], expected, rtol=1e-5)

    cut = tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        loop.run(runs[1], federation, str(cut), callbacks=[Interrupt()])
    loop.run(runs[1], federation, str(cut), resume=True)
    for name in ("rounds", "clients", "cohort", "class_f1"):
        whole, other = ((path / f"{name}.csv").read_text() for path in (folder, cut))
        assert whole == other


def test_settings_reach_adafeds_process(federation, monkeypatch):
    from tff_pmc import processes
    from tff_pmc.algorithms import adafed, scored_algorithms

    arguments = {}

    def build(model, **options):
        arguments.clear()
        arguments.update(options)

    monkeypatch.setattr(processes, "build_adafed", build)
    monkeypatch.setattr(processes, "build_prioritized_fed_avg", build)
    for module in (adafed, scored_algorithms):
        monkeypatch.setattr(module, "FixedTrainer", lambda *a: None, raising=False)
    (fedavg,) = runs_of("adafed_3", "fedavg")
    changes = {"adafed_accuracy_power": 2.5, "adafed_epsilon": 0.3}
    (ours,) = runs_of("adafed_3", "adafed", **changes)
    built(fedavg, federation)
    assert arguments["keep_own_model"] == [3] and arguments["score"].label == "DS"
    assert [c.code for c in arguments["criteria"]] == ["ACC", "DS"]
    built(ours, federation)
    assert arguments["adapt_loss"] and arguments["keep_own_model"] == [3]
    assert arguments["power"] == 2.5 and arguments["score"].label == "ACC"
    assert arguments["epsilon"] == 0.3
    assert [c.code for c in arguments["criteria"]] == ["DS"]
    (weights,) = runs_of("adafed_2", "adafed_weights_only")
    built(weights, federation)
    assert not arguments["adapt_loss"] and arguments["keep_own_model"] == []
    assert "epsilon" not in arguments
    (times,) = runs_of("adafed_2", "adafed_times_samples")
    built(times, federation)
    assert (
        arguments["score"]((0.5, 0.4)) == pytest.approx(0.2) and arguments["adapt_loss"]
    )
    (printed,) = runs_of("adafed_1", "adafed_weights_only_times_samples")
    built(printed, federation)
    assert arguments["score"]((0.5, 0.4)) == pytest.approx(0.2)
    assert not arguments["adapt_loss"]  # Simulation 1 has the weights alone (4.0.1).


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: {"server_examples": None}, "evaluates models on server examples"),
        (
            lambda data: {"server_examples": data.server_examples.take(0)},
            "evaluates models on server examples",
        ),
        (lambda data: {"train_examples": data.train_examples.take(0)}, "train exampl"),
        (lambda data: {"num_classes": 11}, "has 10 classes, and .* has 11"),
    ],
)
def test_an_unsuitable_data_set_is_rejected(federation, change, says):
    from tff_pmc.algorithms.run_context import RunContext

    other = dataclasses.replace(federation, **change(federation))
    for config in runs_of("adafed_1"):
        with pytest.raises(SettingError, match=says):
            RunContext.from_settings(config, other)


def test_a_percentage_error_needs_numeric_labels(federation):
    metric = {"criteria": ("MAPE", "DS"), "priority": ("MAPE",)}
    (config,) = runs_of("adafed_3", "adafed", **metric)
    with pytest.raises(SettingError, match="--criteria: MAPE: the server's targets"):
        built(config, federation)
    with pytest.raises(SettingError, match=r"ACC only: .*write --criteria=MAPE\^2$"):
        runs_of("adafed_3", "adafed", adafed_accuracy_power=2.0, **metric)


def test_a_client_too_large_for_a_pack_is_rejected_at_the_start(federation):
    from tff_pmc.algorithms.run_context import RunContext

    config = runs_of("adafed_1", max_pack_bytes=5000)[0]
    size = federation.train_examples.client(0)["x"].nbytes
    with pytest.raises(SettingError, match=f"has {size} bytes .* raise --max_pack_byt"):
        RunContext.from_settings(config, federation)


def test_clients_that_keep_their_model_must_be_named(federation):
    from tff_pmc.algorithms.run_context import RunContext

    other = dataclasses.replace(federation, client_table=leaf_data.ClientTable())
    with pytest.raises(SettingError, match="keep_own_model needs the client attribute"):
        RunContext.from_settings(runs_of("adafed_3")[0], other)


def test_the_classes_of_a_model_that_names_none_are_its_scores(federation):
    """Labels from 1 on, for example, of a user's data and model."""
    from tff_pmc.algorithms.run_context import RunContext

    other = dataclasses.replace(federation, num_classes=11)
    config = runs_of("adafed_1")[0]
    kind = type(config.model)
    silent = type(kind.__name__, (kind,), {"num_classes": 0})
    model = silent(**dataclasses.asdict(config.model))
    with pytest.raises(SettingError, match="has 10 classes, .* 11, 0 to 10"):
        RunContext.from_settings(dataclasses.replace(config, model=model), other)

    def build(self):
        import tensorflow as tf
        import tensorflow_federated as tff

        functional = kind.build(self)

        @tf.function
        def logit(weights, x, training):
            return functional.predict_on_batch(weights, x, training)[:, :1]

        return tff.learning.models.FunctionalModel(
            initial_weights=functional.initial_weights,
            predict_on_batch_fn=logit,
            loss_fn=tf.function(functional.loss),
            input_spec=functional.input_spec,
        )

    single = type(kind.__name__, (silent,), {"build": build})
    model = single(**dataclasses.asdict(config.model))
    with pytest.raises(SettingError, match="--model=.* a score for each class: build"):
        RunContext.from_settings(dataclasses.replace(config, model=model), other)
    wide = type(kind.__name__, (kind,), {"num_classes": 300})
    model = wide(**dataclasses.asdict(config.model))
    record = dataclasses.replace(config.record, predictions=True)
    with pytest.raises(SettingError, match="at most 255 classes, .* has 300"):
        RunContext.from_settings(
            dataclasses.replace(config, model=model, record=record), federation
        )


def test_labels_must_be_of_the_models_kind():
    """Numbers for classes; the reverse is that of a model without any."""
    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.experiments.experiment import experiment_values
    from tff_pmc.settings import RunSettings

    data = leaf_data.load("digits5k", partition="noniid")
    numbers = {
        part: dataclasses.replace(examples, y=examples.y.astype(np.float32))
        for part, examples in (
            ("train_examples", data.train_examples),
            ("test_examples", data.test_examples),
        )
    }
    other = dataclasses.replace(data, num_classes=0, server_examples=None, **numbers)
    values = {"priority": ("DS",), "criteria": ("DS", "MD")}
    settings = RunSettings.from_flag_values(
        values, inherited=experiment_values("quickstart")
    )
    with pytest.raises(
        SettingError, match="expects labels of .* int32, and .* float32"
    ):
        RunContext.from_settings(settings, other)
