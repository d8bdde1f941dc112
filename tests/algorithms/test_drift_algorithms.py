"""The algorithms against client drift, as a command builds them."""

import numpy as np
import pytest

from declared_settings import SettingError
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.experiments.experiment import settings

SAMPLE = {"clients_per_round": 3, "local_epochs": 2}


@pytest.fixture
def train(federation, small, runtime):
    """Trains some rounds of an algorithm; returns its trainer and its states."""

    def run(algorithm, num_rounds=2, **changes):
        config = settings(
            "quickstart", {**small, **SAMPLE, "algorithm": algorithm, **changes}
        )
        context = RunContext.from_settings(config, federation)
        trainer = config.algorithm.build_trainer(context)
        states = [trainer.initialize()]
        for round_num in range(1, num_rounds + 1):
            cohort = context.cohort_sampler.draw(round_num, context.cohort_size)
            packs = context.pack(cohort.clients, round_num)
            states.append(trainer.next(states[-1], packs).state)
        return trainer, states

    return run


def last_model(trained):
    trainer, states = trained
    return [w.tobytes() for w in trainer.get_model_weights(states[-1]).trainable]


def test_fedprox_is_fedavg_with_prox_mu_bit_for_bit(train):
    fedprox = last_model(train("fedprox", fedprox_mu=0.5))
    assert fedprox == last_model(train("fedavg", prox_mu=0.5))
    assert fedprox != last_model(train("fedavg"))
    assert last_model(train("fedprox", fedprox_mu=0.0)) == last_model(train("fedavg"))


def test_scaffold_keeps_control_variates_of_those_that_trained(train):
    """c is the mean of all c_i, as in the paper; the weights on record are equal."""
    trainer, states = train("scaffold", num_rounds=1)
    memory = states[-1].client_work["memory"]
    for control, rows in zip(memory["control"], memory["rows"]):
        np.testing.assert_allclose(control, np.mean(rows, axis=0), atol=1e-6)
        assert np.count_nonzero(np.abs(rows).reshape(4, -1).sum(axis=1)) == 3
    plain, _ = train("fedavg", num_rounds=0)
    extra_bytes = (
        trainer.traffic.per_client_training - plain.traffic.per_client_training
    )
    size = sum(w.nbytes for w in trainer.get_model_weights(states[0]).trainable)
    assert 2 * size <= extra_bytes < 2 * size + 20  # And a criterion, of equal weights.


def test_feddyn_keeps_gradients_of_those_that_trained(train):
    """h is the mean of all g_k, as in the paper."""
    trainer, states = train("feddyn", feddyn_alpha=0.5)
    rows, h = states[-1].client_work["memory"]["rows"], states[-1].aggregator["h"]
    for part, gradients in zip(h, rows):
        np.testing.assert_allclose(part, np.mean(gradients, axis=0), atol=1e-6)
        assert np.abs(part).max() > 0


@pytest.mark.parametrize(
    ("algorithm", "changes", "says"),
    [
        ("feddyn", {"prox_mu": 0.1}, "whose regularizer has --feddyn_alpha"),
        ("feddyn", {"server_optimizer": "adam"}, "takes the step of its Algorithm 1"),
        ("feddyn", {"server_learning_rate": 0.5}, "whose server has no learning rate"),
        ("feddyn", {"clip_norm": 1.0}, "whose h is computed from whole updates"),
        ("feddyn", {"keep_own_model": True}, "which has a client memory itself"),
        ("feddyn", {"counterfactuals": ("orderings",)}, "do not determine"),
        ("scaffold", {"prox_mu": 0.1}, "--prox_mu=0.1 cannot be combined with the"),
        ("scaffold", {"client_optimizer": "adam"}, "which counts SGD steps"),
        ("scaffold", {"keep_own_model": True}, "which has a client memory itself"),
        (
            "scaffold",
            {"counterfactuals": ("orderings",)},
            "do not determine",
        ),
        ("scaffold", {"adjustment": "best_of_all"}, "searches over orderings"),
        (
            "scaffold",
            {
                "normalization": "range",
                "criteria": ("DS",),
                "priority": ("DS",),
                "criteria_ranges": {"DS": (0, 9)},
            },
            "no declared ranges",
        ),
    ],
)
def test_meaningless_settings_are_rejected(algorithm, changes, says):
    with pytest.raises(SettingError, match=says) as error:
        settings("quickstart", {"algorithm": algorithm, **changes})
    assert "\n" not in str(error.value)
