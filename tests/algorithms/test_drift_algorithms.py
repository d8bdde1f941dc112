"""The algorithms against client drift, as a command builds them."""

import pytest

from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.experiments.experiment import settings

SAMPLE = {"clients_per_round": 3, "local_epochs": 2}


@pytest.fixture
def train(federation, small, runtime):
    """Trains some rounds of an algorithm; returns its trainer and its states."""

    def run(algorithm, num_rounds=2, **changes):
        own = settings(
            "quickstart", {**small, **SAMPLE, "algorithm": algorithm, **changes}
        )
        context = RunContext.from_settings(own, federation)
        trainer = own.algorithm.build_trainer(context)
        states = [trainer.initialize()]
        for round_num in range(1, num_rounds + 1):
            cohort = context.cohort_sampler.draw(round_num, context.cohort_size)
            packs = context.pack(cohort.clients)
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
