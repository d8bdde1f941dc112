"""Online adjustment: both forms, against NumPy and against fixed orderings."""

import collections

import numpy as np
import pytest

import tff_pmc
from tff_pmc import search
from tff_pmc._lazy import tf, tff

COHORT = [0, 2, 3, 5]
ORDERINGS = search.orderings(("DS", "LD", "MD"))


def options(rate=0.3, **more):
    sgd = tff.learning.optimizers.build_sgdm(rate)
    return dict(client_optimizer_fn=sgd, local_epochs=2, batch_size=3, seed=4, **more)


def online(model, **more):
    return tff_pmc.build_online_adjusted_fed_avg(model, **options(**more))


def arrays(weights):
    return [np.asarray(w) for w in weights.trainable]


def correct_by_hand(weights, examples):
    """How many of all clients' examples the toy model gets right, in NumPy."""
    kernel, bias = weights
    x = examples.x.reshape(len(examples.y), -1) / np.float32(255)
    return int(((x @ kernel + bias).argmax(1) == examples.y).sum())


def cohort_of(round_num, examples):
    return [(k + round_num) % examples.num_clients for k in COHORT]


class Scripted:
    """A judge that answers from a script, and keeps the models it was shown."""

    def __init__(self, answers):
        self.answers, self.seen = list(answers), []

    def __call__(self, weights, unused_data):
        self.seen.append(arrays(weights))
        return np.int32(self.answers.pop(0))


def test_every_candidate_is_the_model_its_ordering_alone_gives(
    runtime, toy_examples, toy_model
):
    """Trained once, combined six times, against six processes of their own sums."""
    judge = Scripted(range(6, 0, -1))
    process = online(toy_model, policy="best_of_all", judge=judge)
    packs = tff_pmc.pack(toy_examples, COHORT)
    process.next(process.initialize(), packs, [])
    for order, model in zip(ORDERINGS, judge.seen):
        alone = tff_pmc.build_prioritized_fed_avg(
            toy_model, priority=order, **options()
        )
        state, _ = alone.next(alone.initialize(), packs)
        for found, expected in zip(model, arrays(alone.get_model_weights(state))):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_rounds_follow_the_judge_and_keep_its_model(runtime, toy_examples, toy_model):
    """Backtracking on scripted accuracies: what is tested, kept and trained."""
    judge = Scripted([5, 4, 3, 6, 5, 4, 3, 2, 1, 5])
    process = online(toy_model, priority=("LD", "DS", "MD"), judge=judge)
    trainings = []

    def train(*arguments):
        trainings.append(process.parts.train(*arguments))
        return trainings[-1]

    counted = tff_pmc.processes.OnlineAdjustedFedAvg(
        process.parts._replace(train=train), process.policy, judge
    )
    state, tested, shown = counted.initialize(), [], 0
    for round_num, kept_place in enumerate([0, 2, 0]):
        output = counted.next(state, tff_pmc.pack(toy_examples, COHORT), [])
        state = output.state
        tested.append([trial.index for trial in output.trials])
        assert len(trainings) == round_num + 1  # However many were tested.
        for found, expected in zip(
            arrays(counted.get_model_weights(state)), judge.seen[shown + kept_place]
        ):
            np.testing.assert_array_equal(found, expected)
        shown += len(output.trials)
    # In force first, then in the list's order. Round 2 needs 5: the third has 6.
    # Round 3 needs 6, and none has it: the first of the two with 5 is kept.
    assert tested == [[2], [2, 0, 1], [1, 0, 2, 3, 4, 5]]
    assert (int(state.index), int(state.correct)) == (1, 5)


def test_candidates_are_judged_on_every_clients_examples(
    runtime, toy_examples, toy_model
):
    process = online(toy_model, report_num_clients=toy_examples.num_clients)
    tests = tff_pmc.processes.evaluation_packs(toy_examples)
    output = process.next(
        process.initialize(), tff_pmc.pack(toy_examples, COHORT), tests
    )
    model = arrays(process.get_model_weights(output.state))
    assert int(output.state.correct) == correct_by_hand(model, toy_examples)
    assert output.counts.shape == (toy_examples.num_clients,)
    assert output.counts.sum() == output.trials[-1].correct


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_both_forms_choose_the_same(runtime, toy_examples, toy_model, momentum):
    """`best_of_all`, driven and pure, over rounds in which the ordering changes."""
    server = tff.learning.optimizers.build_sgdm(0.8, momentum)
    chosen = dict(rate=2.0, server_optimizer_fn=server)  # So wild that models differ.
    driven = online(toy_model, policy="best_of_all", **chosen)
    pure = tff_pmc.build_online_adjusted_iterative_process(
        toy_model, **options(**chosen)
    )
    tests = tff_pmc.processes.evaluation_packs(toy_examples, num_packs=3)
    state, pure_state, kept = driven.initialize(), pure.initialize(), []
    for round_num in range(8):
        packs = tff_pmc.pack(toy_examples, cohort_of(round_num, toy_examples))
        output = driven.next(state, packs, tests)
        pairs = tff_pmc.processes.pair_packs(packs, tests)
        assert len(pairs) == 3
        pure_state, metrics = pure.next(pure_state, pairs)
        by_candidate = {t.index: t.correct for t in output.trials}
        np.testing.assert_array_equal(
            metrics["search"]["correct"], [by_candidate[n] for n in range(6)]
        )
        assert int(metrics["finalizer"]["update_rejected"]) == 0
        state = output.state
        assert int(pure_state.index) == int(state.index)
        assert int(pure_state.correct) == int(state.correct)
        for a, b in zip(
            arrays(state.learning.global_model_weights),
            arrays(pure_state.learning.global_model_weights),
        ):
            # The pure form runs in the worker, whose kernels round otherwise.
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6)
        kept.append(int(state.index))
    assert len(set(kept)) > 1, "the rounds never changed the ordering"


def test_the_orderings_searched_are_of_the_criteria_named(toy_model):
    process = online(toy_model, priority=("MD", "DS"))
    assert [score.label for score in process.candidates] == ["DS,MD", "MD,DS"]


def test_traffic_is_that_of_the_types(toy_model):
    """51 float32 parameters, 7 sums, 3 criteria; 4 integers and floats measured."""
    from tff_pmc.processes.communication import traffic

    train = online(toy_model, report_num_clients=6).parts.train.type_signature
    state = train.parameter[0].member
    found = traffic(
        state.global_model_weights, state.client_work, train.result.metrics.member
    )
    model, seed_and_round = 51 * 4, 2 * 4
    up = 7 * model + 7 * 4 + 3 * 4 + 4 * 4
    assert found.per_client_training == model + seed_and_round + up
    assert found.per_client_testing == model + 4


def test_the_state_survives_a_checkpoint(runtime, toy_examples, toy_model, tmp_path):
    from tff_pmc.record.checkpoints import Checkpoints

    process = online(toy_model)
    tests = tff_pmc.processes.evaluation_packs(toy_examples)
    packs = tff_pmc.pack(toy_examples, COHORT)
    state = process.next(process.initialize(), packs, tests).state
    folder = str(tmp_path / "checkpoints")
    Checkpoints(folder, process.initialize()).save(state, 1, {})
    found = Checkpoints(folder, process.initialize()).load_last(len, True)
    loaded = found.state
    assert found.round_num == 1
    for a, b in zip(tf.nest.flatten(state), tf.nest.flatten(loaded)):
        np.testing.assert_array_equal(a, b)
    again = [process.next(s, packs, tests) for s in (state, loaded)]
    assert again[0].trials == again[1].trials
    for a, b in zip(*(tf.nest.flatten(output.state) for output in again)):
        np.testing.assert_array_equal(a, b)


def test_pairs_are_filled_up_with_empty_packs(toy_examples):
    packs = tff_pmc.pack(toy_examples, COHORT, num_packs=2)
    tests = tff_pmc.processes.evaluation_packs(toy_examples, num_packs=1)
    pairs = tff_pmc.processes.pair_packs(packs, tests)
    assert [len(pair["test"]["y"]) for pair in pairs] == [len(toy_examples.y), 0]
    pairs = tff_pmc.processes.pair_packs(packs[:1], [*tests, *tests])
    counted = [sum(1 for _ in pair["train"]) for pair in pairs]
    assert counted[0] > 0 and counted[1] == 0
    assert isinstance(pairs[0], collections.OrderedDict)


def test_a_judge_without_data_is_refused(runtime, toy_examples, toy_model):
    process = online(toy_model)
    with pytest.raises(ValueError, match="judges is empty"):
        process.next(process.initialize(), tff_pmc.pack(toy_examples, COHORT), [])
