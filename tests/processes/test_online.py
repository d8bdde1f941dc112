"""Online adjustment: both forms, against NumPy and against fixed orderings."""

import collections

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc import scores, search
from tff_pmc._lazy import tf, tff
from tff_pmc.criteria import Criterion

COHORT = [0, 2, 3, 5]
ORDERINGS = search.orderings(("DS", "LD", "MD"))


def options(rate=0.3, **arguments):
    sgd = tff.learning.optimizers.build_sgdm(rate)
    return dict(
        client_optimizer_fn=sgd, local_epochs=2, batch_size=3, seed=4, **arguments
    )


def online(model, **arguments):
    return tff_pmc.build_online_adjusted_fed_avg(model, **options(**arguments))


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


def test_each_candidate_equals_the_model_of_its_ordering_alone(
    runtime, toy_examples, toy_model
):
    """Trained once and combined six times; two are compared with their processes."""
    judge = Scripted(range(6, 0, -1))
    process = online(toy_model, policy="best_of_all", judge=judge)
    packs = tff_pmc.pack(toy_examples, COHORT)
    process.next(process.initialize(), packs, [])
    assert len(judge.seen) == len(ORDERINGS) == 6
    for place in (1, 4):
        order, model = ORDERINGS[place], judge.seen[place]
        alone = tff_pmc.build_prioritized_fed_avg(
            toy_model, priority=order, **options()
        )
        state, _ = alone.next(alone.initialize(), packs)
        for weight, expected in zip(model, arrays(alone.get_model_weights(state))):
            np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-7)


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
        for weight, expected in zip(
            arrays(counted.get_model_weights(state)), judge.seen[shown + kept_place]
        ):
            np.testing.assert_array_equal(weight, expected)
        shown += len(output.trials)
    # In force first, then in the list's order. Round 2 needs 5: the third has 6.
    # Round 3 needs 6, and none has it: the first of the two with 5 is kept.
    assert tested == [[2], [2, 0, 1], [1, 0, 2, 3, 4, 5]]
    assert (int(state.index), int(state.correct)) == (1, 5)


def test_candidates_are_judged_on_every_clients_examples(
    runtime, toy_examples, toy_model
):
    process = online(toy_model, num_clients=toy_examples.num_clients)
    tests = tff_pmc.processes.evaluation_packs(toy_examples)
    output = process.next(
        process.initialize(), tff_pmc.pack(toy_examples, COHORT), tests
    )
    model = arrays(process.get_model_weights(output.state))
    assert int(output.state.correct) == correct_by_hand(model, toy_examples)
    assert output.counts.shape == (toy_examples.num_clients,)
    assert output.counts.sum() == output.trials[-1].correct


@pytest.fixture(scope="module")
def digits():
    """Training and test examples of eight clients of real digits."""
    data = leaf_data.load("digits5k", partition="noniid")
    train, test = data.train_examples, data.test_examples
    return train.subset(range(8)), test.subset(range(8))


def softmax_of(examples):
    """A linear softmax model of images, which begins with zeros."""

    @tf.function
    def predict(weights, x, training=True):
        (kernel, bias), _ = weights
        pixels = tf.reshape(tf.cast(x, tf.float32) / 255, [-1, kernel.shape[0]])
        return pixels @ kernel + bias

    @tf.function
    def loss(output, y, sample_weight=None):
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
        return tf.reduce_mean(entropy(y, output))

    shape = examples.x.shape[1:]
    zeros = np.zeros((np.prod(shape), 10), np.float32), np.zeros(10, np.float32)
    return tff.learning.models.FunctionalModel(
        initial_weights=(zeros, ()),
        predict_on_batch_fn=predict,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec([None, *shape], examples.x.dtype),
            tf.TensorSpec([None], examples.y.dtype),
        ),
    )


@pytest.mark.parametrize("policy", ["backtracking", "best_of_all"])
def test_both_forms_choose_the_same_over_many_rounds(runtime, digits, policy):
    """Trial by trial; the pure form tests all, and so has the driven one's trials."""
    train, test = digits
    sgd, server = (tff.learning.optimizers.build_sgdm(r) for r in (0.3, 1.0))
    how = dict(client_optimizer_fn=sgd, server_optimizer_fn=server, local_epochs=2)
    driven, pure = (
        build(softmax_of(train), policy=policy, **how)
        for build in (
            tff_pmc.build_online_adjusted_fed_avg,
            tff_pmc.build_online_adjusted_iterative_process,
        )
    )
    tests = tff_pmc.evaluation_packs(test, num_packs=1)
    state, pure_state = driven.initialize(), pure.initialize()
    kept, tested = [], []
    for round_num in range(24):
        cohort = [(round_num + k) % 8 for k in (0, 2, 3)]
        packs = tff_pmc.pack(train, cohort, num_packs=1)
        output = driven.next(state, packs, tests)
        pairs = tff_pmc.pair_packs(packs, tests)
        pure_state, metrics = pure.next(pure_state, pairs)
        correct = [metrics["search"]["correct"][trial.index] for trial in output.trials]
        assert correct == [trial.correct for trial in output.trials]
        state = output.state
        chosen = int(pure_state.index), int(pure_state.correct)
        assert chosen == (int(state.index), int(state.correct))
        assert metrics["search"]["chosen"] == chosen[0]
        assert int(metrics["finalizer"]["update_rejected"]) == 0
        kept.append(chosen[0])
        tested.append(len(output.trials))
    # The ordering changes, and backtracking is content early, late, and never.
    assert len(set(kept)) > 1
    assert {1, 6} < set(tested) if policy == "backtracking" else set(tested) == {6}


def test_the_search_orders_the_criteria_of_priority(toy_model):
    process = online(toy_model, priority=("MD", "DS"))
    assert [score.label for score in process.candidates] == ["DS,MD", "MD,DS"]


def test_first_determines_the_first_candidate(toy_model):
    """Without candidates, too: all orderings are."""
    for first in (scores.prioritized(("MD", "DS")), scores.prioritized((0, 1))):
        process = online(toy_model, criteria=("MD", "DS"), first=first)
        assert process.candidates[process.parts.first].label == "MD,DS"
    process = online(toy_model, first=scores.prioritized(("LD", "MD", "DS")))
    assert process.candidates[process.parts.first].label == "LD,MD,DS"


def test_another_model_is_not_compared_with_the_replaced_one(
    runtime, toy_examples, toy_model
):
    """Its number of correct examples is not known: the search begins anew."""
    process = online(toy_model, judge=Scripted([40, 3, 3]))
    packs = tff_pmc.pack(toy_examples, COHORT)
    state = process.next(process.initialize(), packs, []).state
    model = process.get_model_weights(process.initialize())
    state = process.set_model_weights(state, model)
    assert (int(state.index), int(state.correct)) == (0, -1)
    output = process.next(state, packs, [])
    assert [(t.index, t.correct) for t in output.trials] == [(0, 3)]


def test_pairs_are_padded_with_empty_packs(toy_examples):
    packs = tff_pmc.pack(toy_examples, COHORT, num_packs=2)
    tests = tff_pmc.processes.evaluation_packs(toy_examples, num_packs=1)
    pairs = tff_pmc.processes.pair_packs(packs, tests)
    assert [len(pair["test"]["y"]) for pair in pairs] == [len(toy_examples.y), 0]
    pairs = tff_pmc.processes.pair_packs(packs[:1], [*tests, *tests])
    counted = [sum(1 for _ in pair["train"]) for pair in pairs]
    assert counted[0] > 0 and counted[1] == 0
    assert isinstance(pairs[0], collections.OrderedDict)


def test_a_judge_without_data_is_rejected(runtime, toy_examples, toy_model):
    process = online(toy_model)
    with pytest.raises(ValueError, match="judges is empty"):
        process.next(process.initialize(), tff_pmc.pack(toy_examples, COHORT), [])


def test_the_best_lambda_of_the_grid_without_retraining(
    runtime, toy_examples, toy_model, trained_alone, sgd, assert_equal
):
    """The judge prefers the kernel nearest to that of lambda = .7, in NumPy."""
    models = [trained_alone(toy_model, toy_examples, k) for k in range(4)]
    sizes = np.array([8, 3, 5, 6])
    # Made-up accuracies, .9 of the client of 3 examples and .2 of the others.
    quality = np.where(sizes == 3, 0.9, 0.2)

    def candidate(lambda_):
        p = lambda_ * quality / quality.sum() + (1 - lambda_) * sizes / sizes.sum()
        return [np.average(np.stack(w), axis=0, weights=p) for w in zip(*models)]

    candidates = [candidate(step / 10) for step in range(11)]
    target = candidates[7][0].astype(np.float32)

    def judge(weights, unused_clients):
        distance = np.linalg.norm(weights.trainable[0] - target)
        return np.int32(1e6 / (1 + 1e4 * distance))

    accuracy = Criterion(
        "ACC",
        "made-up accuracy",
        "a test",
        lambda client: tf.where(tf.equal(tf.size(client.y), 3), 0.9, 0.2),
    )
    process = tff_pmc.build_online_adjusted_fed_avg(
        toy_model,
        candidates=scores.dual_grid(),
        criteria=(accuracy, "DS"),
        policy="best_of_all",
        judge=judge,
        client_optimizer_fn=sgd(),
        local_epochs=1,
    )
    packs = tff_pmc.pack(toy_examples, range(4))
    output = process.next(process.initialize(), packs, [0])
    assert sorted(t.index for t in output.trials) == list(range(11))
    for trial in output.trials:  # Each candidate's model is NumPy's.
        distance = np.linalg.norm(candidates[trial.index][0] - candidates[7][0])
        expected = 1e6 / (1 + 1e4 * distance)
        assert trial.correct == pytest.approx(expected, rel=0.01)
    assert process.candidates[output.state.index].label == "lambda=0.70"
    assert len(output.metrics["aggregator"]["monomials"]) == 2
    trainable = process.get_model_weights(output.state).trainable
    assert_equal(trainable, candidates[7], 1e-6)


IN_LISTS = {
    "set": lambda process, state, weights: process.set_model_weights(state, weights),
    "replaced": lambda process, state, weights: state._replace(
        learning=state.learning._replace(global_model_weights=weights)
    ),
}


@pytest.mark.parametrize("how", IN_LISTS)
def test_set_model_weights_replaces_the_model_as_in_tff(
    runtime, toy_examples, toy_model, trained_alone, sgd, assert_equal, how
):
    """In lists, as Keras gives its weights; of wrong shapes one line says which."""
    process = tff_pmc.build_online_adjusted_fed_avg(
        toy_model,
        criteria=("DS",),
        judge=Scripted([1]),
        client_optimizer_fn=sgd(),
        server_optimizer_fn=sgd(1.0, 0.9),
        local_epochs=1,
    )
    model = [np.full((16, 3), 0.5, np.float32), np.arange(3, dtype=np.float32)]
    weights = tff.learning.models.ModelWeights(model, [])
    state = IN_LISTS[how](process, process.initialize(), weights)
    output = process.next(state, tff_pmc.pack(toy_examples, [2]), [])
    trainable = process.get_model_weights(output.state).trainable
    assert_equal(trainable, trained_alone(toy_model, toy_examples, 2, model), 1e-6)
    with pytest.raises(
        TypeError, match=r"trainable.1 is not of type float32\[3\]: its shape"
    ):
        weights = tff.learning.models.ModelWeights([model[0], model[1][:2]], [])
        process.set_model_weights(state, weights)
