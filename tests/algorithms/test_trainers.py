"""The trainers: which one a run has, and what a round of it reports."""

import numpy as np
import pytest
from short_runs import built, runs_of

from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.experiments.experiment import settings

ORDERING = {"priority": ("LD", "DS"), "criteria": ("DS", "LD"), "clients_per_round": 0}
SEARCH = {"adjustment": "best_of_all"}
COUNTERFACTUALS = {"counterfactuals": ("orderings",)}
SAMPLE = {"counterfactual_clients": 2}


@pytest.fixture
def train(federation, small, runtime):
    """Trains one round, to the trainer and the round's result."""

    def run(**changes):
        config = settings("quickstart", {**small, **ORDERING, "rounds": 1, **changes})
        context = RunContext.from_settings(config, federation)
        trainer = config.algorithm.build_trainer(context)
        cohort = context.cohort_sampler.draw(1, context.cohort_size)
        state = trainer.initialize()
        return trainer, trainer.next(state, context.pack(cohort.clients, 1))

    return run


@pytest.mark.parametrize(
    ("changes", "kind", "num_judges", "tested", "judged", "has_counts"),
    [
        ({}, "FixedTrainer", 0, [], None, False),
        (SEARCH, "SearchTrainer", 4, ["LD,DS", "DS,LD"], 80, True),
        (COUNTERFACTUALS, "SearchTrainer", 0, [], 80, True),
        # The models of all clients are judged by two of them, and counted by none.
        ({**COUNTERFACTUALS, **SAMPLE}, "SearchTrainer", 0, [], 40, False),
        (
            {**SEARCH, "judge_on": "local_validation"},
            *("SearchTrainer", 4, ["LD,DS", "DS,LD"]),
            *(None, False),
        ),
    ],
    ids=["fixed", "search", "counterfactuals", "of a sample", "validation"],
)
def test_a_round_reports_what_was_judged(
    train, changes, kind, num_judges, tested, judged, has_counts
):
    trainer, result = train(**changes)
    assert type(trainer).__name__ == kind
    assert trainer.num_judges == num_judges
    assert [candidate.label for candidate in result.trials] == tested
    assert result.in_force.label in (tested or ["LD,DS"])
    assert (result.correct_by_client is not None) == has_counts
    if judged is not None:
        assert result.counterfactual_examples.num_examples == judged
    if "counterfactuals" in changes:
        labels = [
            counterfactual.score.label for counterfactual in result.counterfactuals
        ]
        assert labels[0] == result.in_force.label and {"DS,LD", "DS"} <= {*labels}
    else:
        assert not result.counterfactuals
    if has_counts and result.counterfactuals:
        np.testing.assert_array_equal(
            result.correct_by_client, result.counterfactuals[0].correct
        )


def test_the_server_judges_a_search_without_clients(federation, small):
    (dual, *_) = runs_of(
        *("dual_criterion", "dual"), num_clients=4, judge_on="server", **small
    )
    trainer = built(dual, federation)
    assert (type(trainer).__name__, trainer.num_judges) == ("SearchTrainer", 0)
