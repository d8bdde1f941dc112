"""Rounds of the algorithms with criteria of their own, against NumPy."""

import types

import numpy as np
import pytest

import tff_pmc
from tff_pmc import criteria, scores
from tff_pmc._lazy import tff
from tff_pmc.experiments.experiment import settings
from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.round_record import RoundRecord

COHORT, EPOCHS, RATE = (0, 1, 4, 5), 2, 0.1
WHAT = {"criteria": ("MD", "LD"), "priority": ("MD",), "learning_rate": RATE}


def shares(s):
    return s / s.sum()


def q_fedavg(q, bound):
    def factors(n, f, a, steps, moved):
        denominators = q * f ** (q - 1) * (bound * moved) ** 2 + bound * f**q
        return bound * f**q / denominators.sum()

    return factors


# The factor of each client's update: of their sizes, losses and accuracies of the
# received model, steps, and how far their models moved.
CASES = {
    "qffl": ({"qffl_q": 2.0}, lambda n, f, *_: shares(n * f**2)),
    "term": ({"term_t": -1.5}, lambda n, f, *_: shares(n * np.exp(-1.5 * f))),
    "propfair": (
        {"propfair_bound": 4.0, "propfair_epsilon": 2.0},  # Some are below it.
        lambda n, f, *_: shares(n / np.maximum(4 - f, 2)),
    ),
    "inverse_accuracy": (
        {"inverse_accuracy_epsilon": 0.2},
        lambda n, f, a, *_: shares(n / (a + 0.2)),
    ),
    "q_fedavg": ({"q_fedavg_q": 0.5}, q_fedavg(0.5, 1 / RATE)),
    "fednova": (
        {},
        lambda n, f, a, steps, *_: shares(n) / steps * (shares(n) @ steps),
    ),
    "product": (
        {"criteria": ("DS^0.5", "LOSS^-2"), "priority": ("DS^0.5", "LOSS^-2")},
        lambda n, f, *_: shares(n**0.5 * f**-2),
    ),
}


@pytest.fixture(scope="module")
def build(sgd, toy_model, toy_examples):
    """The settings of an algorithm, and its process with the toy model."""

    def build_algorithm(algorithm, changes, **options):
        from tff_pmc.clients.training_options import Training

        config = settings("quickstart", {**WHAT, "algorithm": algorithm, **changes})
        context = types.SimpleNamespace(
            settings=config,
            model=toy_model,
            criteria=config.measured_criteria,
            data=toy_examples,
            client_optimizer=sgd(RATE),
            server_optimizer=sgd(1.0),
            sums=tff_pmc.SumOptions(),
        )
        context.training = Training(
            local_epochs=EPOCHS,
            memory=config.algorithm.build_client_memory(context),
            **options,
        )
        return config, config.algorithm.build_process(context)

    return build_algorithm


@pytest.fixture(scope="module")
def numpy_round(toy_examples, numpy_sgd):
    """What is known of each client of a cohort, and its update."""

    def measure(weights, batches_of, cohort=COHORT):
        first = [np.asarray(w, float) for w in weights]
        measured, updates = [], []
        for k in cohort:
            part = toy_examples.client(k)
            n = len(part["y"])
            output = part["x"].reshape(n, -1) / 255.0 @ first[0] + first[1]
            of_label = output[np.arange(n), part["y"]]
            loss = np.mean(np.log(np.exp(output).sum(axis=1)) - of_label)
            accuracy = np.mean(output.argmax(axis=1) == part["y"])
            batches = [batches_of(k, epoch, n) for epoch in range(EPOCHS)]
            trained = numpy_sgd(first, part, RATE, EPOCHS, batches.__getitem__)
            updates.append([a - b for a, b in zip(first, trained)])
            moved = np.sqrt(sum(np.square(d).sum() for d in updates[-1]))
            measured.append((n, loss, accuracy, sum(map(len, batches)), moved))
        return first, [np.array(column, float) for column in zip(*measured)], updates

    return measure


@pytest.mark.parametrize(
    ("algorithm", "packed"),
    [
        *((name, True) for name in CASES),
        ("inverse_accuracy", False),
        ("fednova", False),
    ],
)
def test_a_round_equals_numpy(
    runtime, toy_examples, toy_model, datasets, build, numpy_round, batch_order,
    weights_of, assert_close, algorithm, packed,
):  # fmt: skip
    """Clients of different sizes take different numbers of steps."""
    changes, factors_of = CASES[algorithm]
    options = {"batch_size": 2, "report_cohort": len(COHORT)} if packed else {}
    config, process = build(algorithm, changes, packed=packed, **options)

    def batches_of(client, epoch, n):
        if packed:
            return batch_order(0, 0, client, epoch, n, 2)
        return [np.arange(i, min(i + 2, n)) for i in range(0, n, 2)]

    weights = toy_model.initial_weights[0]
    first, measured, updates = numpy_round(weights, batches_of)
    factors = factors_of(*measured)
    data = datasets(toy_examples, COHORT, 2)
    if packed:
        data = tff_pmc.pack(toy_examples, COHORT)
    output = process.next(process.initialize(), data)
    expected = [
        w - np.tensordot(factors, np.stack(d), 1) for w, d in zip(first, zip(*updates))
    ]
    new_weights = weights_of(process, output.state)
    assert_close(new_weights, expected, 1e-5)
    # And what it is away from the plain mean is not lost in the tolerance.
    mean = [
        w - np.tensordot(shares(measured[0]), np.stack(d), 1)
        for w, d in zip(first, zip(*updates))
    ]
    assert max(np.abs(a - b).max() for a, b in zip(new_weights, mean)) > 1e-3
    if packed:  # The record has the same factors.
        train = output.metrics["client_work"]["train"]
        recorded = weights_on_record(config, train["criteria_by_client"])
        np.testing.assert_allclose(recorded, factors, rtol=1e-5)


def weights_on_record(settings, raw, left_out=False):
    """The weights that are recorded of a round with these criteria."""
    train = {
        "criteria_by_client": raw,
        "excluded_by_client": np.full(len(raw), left_out),
    }
    outcome = types.SimpleNamespace(
        metrics={"client_work": {"train": train}},
        in_force=settings.algorithm.score(settings),
    )
    return RoundRecord(
        round_num=1,
        settings=settings,
        outcome=outcome,
        cohort=(),
        clients=(),
        sizes=np.zeros(0, int),
        metric=ACCURACY,
    ).weights


def projection(v):
    """The nearest point of the simplex, by bisection."""
    low, high = v.min() - 1, v.max()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
        )
    return np.maximum(v - high, 0)


def test_afl_learns_the_weights_of_clients(
    runtime, toy_examples, toy_model, build, numpy_round, weights_of, assert_close
):
    """Three rounds of different cohorts; one client ends with no weight."""
    rate = 0.07
    _, process = build("afl", {"afl_rate": rate})
    weights, learned = toy_model.initial_weights[0], np.full(6, 1 / 6)
    state = process.initialize()
    for cohort in ((0, 1, 4), (2, 5), (4, 1, 2)):
        first, (_, losses, *_), updates = numpy_round(
            weights, lambda k, epoch, n: [np.arange(n)], cohort
        )
        factors = shares(learned[[*cohort]])
        weights = [
            w - np.tensordot(factors, np.stack(d), 1)
            for w, d in zip(first, zip(*updates))
        ]
        stepped = learned.copy()
        stepped[[*cohort]] += rate * losses
        learned = projection(stepped)
        state = process.next(state, tff_pmc.pack(toy_examples, cohort)).state
        assert_close(weights_of(process, state), weights, 1e-5)
        np.testing.assert_allclose(state.client_work["memory"], learned, atol=1e-6)
    assert learned.min() == 0 < np.sort(learned)[1] < learned.max()


@pytest.mark.parametrize("algorithm", ["qffl", "q_fedavg", "fednova", "afl"])
def test_a_client_sends_one_sum_of_updates(build, sent_shapes, algorithm):
    _, process = build(algorithm, {})
    clear, _ = sent_shapes(process)  # It compiles to the MapReduceForm.
    assert [shape for shape in clear if len(shape) == 2] == [(16, 3)]


def test_a_step_scaling_score_and_a_mean_are_candidates_of_one_process(
    runtime, toy_examples, toy_model, build, build_prioritized, weights_of, assert_equal
):
    """Each of two is the other's counterfactual: no other process is needed."""
    config, alone = build("fednova", {}, batch_size=2)
    nova, size = (
        config.algorithm.score(config),
        scores.single("DS", config.criterion_codes),
    )
    basis = scores.Basis.of(config.criterion_codes, [nova, size])
    options = dict(criteria=config.measured_criteria, local_epochs=EPOCHS, batch_size=2)
    joint = build_prioritized(toy_model, score=nova, basis=basis, **options)
    mean = build_prioritized(toy_model, score=size, **options)
    packs = tff_pmc.pack(toy_examples, COHORT)
    for score, process in ((nova, alone), (size, mean)):
        state = tff_pmc.with_score(joint.initialize(), basis, score)
        weights = weights_of(joint, joint.next(state, packs).state)
        expected = weights_of(process, process.next(process.initialize(), packs).state)
        assert_equal(weights, expected, 1e-6)
    with pytest.raises(ValueError, match="'FedNova' sets the length of its step"):
        tff_pmc.with_score(mean.initialize(), scores.Basis.singles(5), nova)
    with pytest.raises(ValueError, match="the normalization 'sum', not 'max'"):
        sums = tff_pmc.SumOptions(normalization="max")
        build_prioritized(toy_model, score=nova, sums=sums, **options)


def test_non_trainable_weights_become_the_mean_for_any_step_length(tf):
    """Statistics are averages, and no directions."""
    from tff_pmc.aggregation import combine

    weights = tff.learning.models.ModelWeights
    score = scores.PolynomialScore("s", {(0,): 1.0}, (0,), {0: 1.0, 1: -1.0})
    basis = scores.Basis.of(2, [score])
    update, _ = combine(
        *(basis, tf.constant(basis.coefficients(score)), tf.constant([2.0, 8.0])),
        *(tf.constant([2.0]), [weights((tf.constant([6.0]),), (tf.constant([6.0]),))]),
    )
    assert float(update.trainable[0]) == 6 / 2 * 2 / 8
    assert float(update.non_trainable[0]) == 6 / 2


@pytest.mark.parametrize("form", ["packed", "datasets", "model_fn"])
def test_the_received_model_runs_once_and_only_for_criteria_that_need_it(
    runtime, toy_examples, datasets, float_datasets, build_prioritized, metric_model,
    keras_model_fn, form,
):  # fmt: skip
    """Who asks for the same shares a pass; the model's own metrics are untouched."""
    calls = []

    def of_batch(output, y):
        calls.append(y)
        return output.loss

    twice = [
        criteria.Criterion(
            code, "", "", lambda client: client.mean_on_received(of_batch), True
        )
        for code in ("A", "B")
    ]
    model = keras_model_fn() if form == "model_fn" else metric_model
    asking, plain = (
        build_prioritized(model, criteria=declared, packed=form == "packed")
        for declared in (("DS", *twice), ("DS",))
    )
    # Of a made-up client twice, and in a graph, for each of the two; and in training.
    assert len(calls) == 6 + 1
    data = (float_datasets if form == "model_fn" else datasets)(toy_examples, COHORT, 3)
    if form == "packed":
        data = tff_pmc.pack(toy_examples, COHORT)
    train_metrics, expected = (
        process.next(process.initialize(), data).metrics["client_work"]["train"]
        for process in (asking, plain)
    )
    assert dict(train_metrics) == dict(expected)


@pytest.mark.parametrize("algorithm", ["q_fedavg", "fednova"])
def test_a_round_of_excluded_clients_has_no_weights(build, algorithm):
    config, _ = build(algorithm, {})
    raw = np.full((2, len(config.criterion_codes)), np.nan)
    assert weights_on_record(config, raw, left_out=True).tolist() == [0, 0]
