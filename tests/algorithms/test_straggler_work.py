"""`--stragglers` as a command runs it: who is dropped, and what is kept."""

import numpy as np
import pytest

from declared_settings import SettingError
from tff_pmc.algorithms.algorithm import ALGORITHMS
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.experiments.experiment import settings
from tff_pmc.selections import draw_local_epochs

E = 3
SHARED = {"clients_per_round": 0, "local_epochs": E, "rounds": 3, "cohort_seed": 4}


@pytest.fixture
def train_round(federation, small, runtime):
    """Trains one round; returns trainable weights before and after, and the metrics.

    `cohort` replaces the drawn clients.
    """

    def run(algorithm, cohort=None, round_num=1, **changes):
        values = {**small, **SHARED, "algorithm": algorithm, **changes}
        config = settings("quickstart", values)
        context = RunContext.from_settings(config, federation)
        trainer = config.algorithm.build_trainer(context)
        if cohort is None:
            drawn = context.cohort_sampler.draw(round_num, context.cohort_size)
            cohort = drawn.clients
        state = trainer.initialize()
        after = trainer.next(state, context.pack(cohort, round_num))
        models = [
            np.concatenate([np.ravel(w) for w in weights.trainable])
            for weights in map(trainer.get_model_weights, (state, after.state))
        ]
        return *models, after.metrics

    return run


def epochs_of(share, keeps_work):
    return draw_local_epochs(4, 1, 4, E, share, keeps_work=keeps_work).tolist()


def alone(train_round, client, epochs):
    """A client's model after so many epochs, from a run without stragglers."""
    return train_round("fedavg", [client], local_epochs=epochs)[1]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_fedprox_keeps_what_fedavg_drops(federation, train_round, share):
    sizes = federation.train_examples.sizes
    kept, dropped = epochs_of(share, True), epochs_of(share, False)
    models = [alone(train_round, k, x) for k, x in enumerate(kept)]
    expected = np.average(models, axis=0, weights=sizes)
    kept_by = [
        ("fedprox", {"fedprox_mu": 0.0}),
        ("fedavg", {"straggler_work": "keep"}),
    ]
    for algorithm, changes in kept_by:
        _, after, metrics = train_round(algorithm, stragglers=share, **changes)
        np.testing.assert_allclose(after, expected, atol=2e-6)
        assert metrics["client_work"]["train"]["excluded"] == 0
    dropped_by = [
        ("fedavg", {}),
        ("prioritized", {"priority": ("DS",)}),
        ("fedprox", {"fedprox_mu": 0.0, "straggler_work": "drop"}),
    ]
    for algorithm, changes in dropped_by if share < 1 else ():
        _, after, metrics = train_round(algorithm, stragglers=share, **changes)
        active = [k for k, x in enumerate(dropped) if x]
        whole = [alone(train_round, k, E) for k in active]
        expected = np.average(whole, axis=0, weights=sizes[active])
        np.testing.assert_allclose(after, expected, atol=2e-6)
        assert metrics["client_work"]["train"]["excluded"] == 4 - len(active)
        assert not metrics["finalizer"]["update_rejected"]


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        ("fedavg", {"stragglers": 1.0}),
        ("prioritized", {"stragglers": 0.8, "clients_per_round": 2}),
        ("fedprox", {"stragglers": 1.0, "straggler_work": "drop"}),
    ],
)
def test_a_round_in_which_nobody_trains_is_refused(train_round, algorithm, changes):
    share, size = changes["stragglers"], changes.get("clients_per_round", 4)
    words = f"--stragglers={share:g} excludes all clients of a round, {size}, with --a"
    with pytest.raises(SettingError, match=words):
        train_round(algorithm, **changes)
    train_round(algorithm, [0, 1], **{**changes, "straggler_work": "keep"})


def test_fednova_normalizes_by_the_steps_of_partial_work(federation, train_round):
    sizes = federation.train_examples.sizes
    epochs = epochs_of(1.0, True)
    assert len({*epochs}) > 1
    before, after, _ = train_round("fednova", stragglers=1.0)
    steps = np.array(epochs) * -(-sizes // 16)
    moved = [before - alone(train_round, k, x) for k, x in enumerate(epochs)]
    p = sizes / sizes.sum()
    expected = before - (p @ steps) * ((p / steps) @ np.array(moved))
    np.testing.assert_allclose(after, expected, atol=5e-6)


def test_a_factory_gets_the_weight_0_of_a_dropped_client(federation, train_round):
    _, after, metrics = train_round("weighted_mean", stragglers=0.5)
    active = [k for k, x in enumerate(epochs_of(0.5, False)) if x]
    whole = [alone(train_round, k, E) for k in active]
    sizes = federation.train_examples.sizes[active]
    np.testing.assert_allclose(
        after, np.average(whole, axis=0, weights=sizes), atol=2e-6
    )
    assert metrics["aggregator"]["excluded"] == 2


def test_only_algorithms_made_for_it_keep_partial_work():
    keep = {name for name, kind in ALGORITHMS.items() if kind.keeps_stragglers}
    assert keep == {"fedprox", "fednova"}


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "FedAvg"),
        ({"stragglers": 0.9}, "FedAvg, stragglers 0.9"),
        (
            {"stragglers": 0.5, "straggler_work": "keep", "prox_mu": 0.1},
            "FedAvg, stragglers 0.5 kept, prox 0.1",
        ),
    ],
)
def test_stragglers_are_part_of_the_label(changes, label):
    config = settings("quickstart", {"algorithm": "fedavg", **changes})
    assert config.label == label
    assert ("stragglers" in config.to_record()["training"]) == bool(changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"stragglers": 1.5}, "--stragglers must be from 0 to 1, got 1.5"),
        ({"straggler_work": "keep"}, "--stragglers"),
        ({"stragglers": 0.5, "straggler_work": "half"}, "--straggler_work"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, says):
    with pytest.raises(SettingError, match=says) as error:
        settings("quickstart", {"algorithm": "fedavg", **changes})
    assert "\n" not in str(error.value)
