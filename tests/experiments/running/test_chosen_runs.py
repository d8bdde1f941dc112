"""Runs with clients, optimizers and losses of choice, also resumed."""

import functools
import hashlib
import json

import numpy as np
import pytest
from cli import MODEL, QUICK, SHORT, records, refusal, table
from cli import run as command_line

import leaf_data
from declared_settings import SettingError
from tff_pmc.experiments import experiment as experiments
from tff_pmc.experiments.callbacks import CALLBACKS, Callback

CASES = {
    "momentum": {
        **{"selection": "by_size", "server_optimizer": "momentum"},
        "evaluate_every": 3,  # It resumes in a round without a test.
        "client_rate_decay": 0.5,
    },
    "adam": {
        **{"selection": "power_of_choice", "choice_candidates": 25},
        **{"server_optimizer": "adam", "prox_mu": 0.1},
    },
    "yogi": {
        **{"selection": "power_of_choice", "server_optimizer": "yogi"},
        **{"adjustment": "best_of_all", "priority": ("LD", "DS")},
        **{"counterfactuals": ("orderings",), "counterfactual_rates": (0.5,)},
    },
}


def settings(**changes):
    rate = {"server_learning_rate": 0.1} if "server_optimizer" in changes else {}
    changes = {**SHORT, "batch_size": 10, **rate, **changes}
    return experiments.settings("quickstart", changes)


@pytest.fixture(scope="module")
def data():
    return leaf_data.load("digits5k", partition="noniid")


@pytest.fixture(scope="module")
def run(data, runtime):
    """Runs or resumes into a folder."""

    def run_into(folder, **changes):
        from tff_pmc.experiments.running import loop

        how = {"resume": folder.exists(), "title": None}
        loop.run(settings(**changes), data, str(folder), **how)
        return folder

    return run_into


@pytest.fixture(scope="module")
def uninterrupted_run(tmp_path_factory, run):
    """The run of a case without interruption, made when it is first asked for."""
    root = tmp_path_factory.mktemp("whole")
    return functools.cache(lambda name: run(root / name, **CASES[name]))


def cohorts(folder):
    """The clients of each round."""
    clients_by_round = {}
    for row in table(folder / "cohort.csv"):
        clients_by_round.setdefault(row["round"], []).append(row["client"])
    return list(clients_by_round.values())


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] if n == "yogi" else []) for n in CASES],
)
def test_a_run_that_is_resumed_is_the_same_to_the_bit(
    run, uninterrupted_run, tmp_path, name
):
    run(tmp_path / "cut", **{**CASES[name], "rounds": 1})
    cut = run(tmp_path / "cut", **CASES[name])
    assert records(cut, states=True) == records(uninterrupted_run(name), states=True)
    assert len({*map(tuple, cohorts(cut))}) == 3


def test_the_clients_rate_decays_after_some_rounds(data, tf):
    from tff_pmc.algorithms.run_context import RunContext

    decay = {"client_rate_decay": 0.5, "client_rate_decay_every": 2}
    context = RunContext.from_settings(settings(learning_rate=0.4, **decay), data)
    rate = context.training.client_learning_rate_fn
    rates = [float(rate(tf.constant(n))) for n in range(5)]
    np.testing.assert_allclose(rates, [0.4, 0.4, 0.2, 0.2, 0.1])
    context = RunContext.from_settings(settings(learning_rate=0.4), data)
    assert context.training.client_learning_rate_fn is None


def test_a_run_starts_from_the_weights_of_a_file(tmp_path, monkeypatch):
    """Wherever the file is when it is resumed; another file is another run."""
    from tff_pmc.models import MODELS

    model = MODELS[MODEL]().build()
    arrays = [w + np.float32(0.01) for w in model.initial_weights[0]]
    file, out = tmp_path / "start.npz", tmp_path / "out"
    np.savez(file, *arrays)
    words = [*QUICK, "--rounds=1", "--priority=DS", f"--output_dir={out}"]
    weights = []

    class Begun(Callback):
        def on_start(self, run):
            weights.extend(run.weights.trainable)

    monkeypatch.setitem(CALLBACKS._things, "begun", Begun)
    command_line(*words, f"--initial_weights={file}", "--callbacks=begun")
    assert all(map(np.array_equal, weights, arrays)) and len(weights) == len(arrays)
    folder = out / "DS_from_start_npz"
    recorded = json.loads((folder / "run.json").read_text())["settings"]["training"]
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert recorded["initial_weights"] == [str(file), sha256]
    (tmp_path / "sub").mkdir()
    file = file.rename(tmp_path / "sub" / "start.npz")
    command_line(*words, f"--initial_weights={file}", "--resume")
    assert "initial_weights" in refusal(*words, "--resume")
    for wrong in ([*arrays[:-1], arrays[-1][:2]], arrays[:-1]):
        np.savez(file, *wrong)
        says = refusal(*words[:-1], f"--initial_weights={file}")
        assert f"--initial_weights: {file}" in says
    assert f"--initial_weights={file}" in refusal(*words, f"--initial_weights={file}x")


def test_the_losses_are_those_of_the_model_on_each_clients_examples(
    uninterrupted_run, data
):
    """The first cohort, from the initial model's losses by NumPy; and what is sent."""
    from tff_pmc.models import MODELS

    run_settings = settings(**CASES["adam"])
    model = MODELS[MODEL].from_flag_values(run_settings.by_flag()).build()
    generator = np.random.default_rng([run_settings.training.cohort_seed, 1])
    drawn = generator.choice(100, 25, replace=False, p=np.full(100, 0.01))
    losses = {}
    for k in drawn:
        part = data.train_examples.client(int(k))
        output = np.asarray(
            model.predict_on_batch(model.initial_weights, part["x"], False), float
        )
        output -= output.max(axis=1, keepdims=True)
        right = output[np.arange(len(part["y"])), part["y"]]
        losses[k] = np.mean(np.log(np.exp(output).sum(axis=1)) - right)
    worst = sorted(losses, key=lambda k: -losses[k])[:10]
    named = sorted(data.client_ids[k] for k in worst)
    assert cohorts(uninterrupted_run("adam"))[0] == named
    row = table(uninterrupted_run("adam") / "rounds.csv")[0]
    size = sum(np.size(w) for w in model.initial_weights[0])
    # The model to each of the 25, and a number back.
    assert int(row["test_bytes"]) == 25 * (4 * size + 4)


def test_selections_that_need_the_client_table_are_rejected_without_it(
    data, monkeypatch
):
    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.selections import SELECTIONS

    class Charged(SELECTIONS["uniform"]):
        needs = ("battery",)

    monkeypatch.setattr(SELECTIONS, "_things", dict(SELECTIONS))
    SELECTIONS.register("charged", Charged)
    says = "--selection=charged needs 'battery' of each client, which is unknown"
    with pytest.raises(SettingError, match=says):
        RunContext.from_settings(settings(selection="charged"), data)


def test_inspect_shows_the_clients_of_a_run_or_why_it_cannot(uninterrupted_run, data):
    from tff_pmc.experiments.running.inspection import inspect

    quick = {"criteria": ("DS", "LD"), "selection": "by_size"}
    shown = inspect([settings(**quick)], data, {})
    (line,) = [line for line in shown.splitlines() if "First cohort" in line]
    assert line == "First cohort: " + ", ".join(
        cohorts(uninterrupted_run("momentum"))[0]
    )
    asks = settings(**{**quick, "selection": "power_of_choice"})
    assert "--selection=power_of_choice needs the model" in inspect([asks], data, {})
