"""The published code's formulas, from NumPy alone, against our processes."""

import dataclasses

import numpy as np
import pytest
from cli import federation

import leaf_data
import tff_pmc
from tff_pmc import scores
from tff_pmc.experiments.experiment import settings
from tff_pmc.record import reference_code

RATE, EPOCHS = 0.5, 3
# Index -> places of the criteria, most important first.
ROWS = [(0,), (1,), (2,)]
ROWS += [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)]
COHORT = [4, 0, 3, 1]
CRITERIA = {"mnist_noniid": ("DS", "LD", "MD"), "celeba": ("DS", "CB", "IS")}


# --- The published code's round, in float64 ----------------------------------


def local_sgd(initial, x, y):
    """Full-batch SGD of two linear layers and a softmax."""
    k1, b1, k2, b2 = (w.astype(float) for w in initial)
    x = x.reshape(len(x), -1) / 255.0
    for _ in range(EPOCHS):
        hidden = x @ k1 + b1
        logits = hidden @ k2 + b2
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        error = (p - np.eye(p.shape[1])[y]) / len(y)
        back = error @ k2.T
        k2, b2 = k2 - RATE * hidden.T @ error, b2 - RATE * error.sum(axis=0)
        k1, b1 = k1 - RATE * x.T @ back, b1 - RATE * back.sum(axis=0)
    return [k1, b1, k2, b2]


def mnist_criteria(part, initial, trained):
    """Size; ten times the labels; divergence of the kernels, layer by layer."""
    norms = [np.sqrt(((trained[i] - initial[i]) ** 2).sum()) for i in (0, 2)]
    divergence = 1 / np.sqrt(np.mean(norms) + 1)
    return [len(part["y"]), 10 * len(set(part["y"].tolist())), divergence]


def celeba_criteria(part, initial, trained):
    """Size; rarer over commoner class; share of images that are not blurry."""
    counts = [(part["y"] == label).sum() for label in (0, 1)]
    blurry = 1 - part["sharp"]
    return [len(part["y"]), min(counts) / max(counts), (blurry == 0).mean()]


def expected(examples, initial, criteria_of):
    """Normalized criteria [clients, 3] and the clients' trained models."""
    parts = [examples.client(k) for k in COHORT]
    trained = [local_sgd(initial, part["x"], part["y"]) for part in parts]
    raw = np.array([criteria_of(p, initial, t) for p, t in zip(parts, trained)])
    return raw / raw.sum(axis=0), trained


def weights_of_row(c, row):
    s = np.array([np.cumprod(client[list(row)]).sum() for client in c])
    return s / s.sum()


# --- Our process --------------------------------------------------------------


@pytest.fixture(scope="module")
def faces():
    """Five clients of 3 to 9 tiny images: two labels each, and some blur."""
    generator = np.random.default_rng(5)
    sizes = [9, 4, 6, 3, 7]
    y = np.concatenate([np.arange(n) % (k + 2) == 0 for k, n in enumerate(sizes)])
    return leaf_data.Examples(
        generator.integers(0, 256, (sum(sizes), 4, 4), dtype=np.uint8),
        y.astype(np.int32),
        np.cumsum([0, *sizes], dtype=np.int64),
        tuple("abcde"),
        {"sharp": (generator.uniform(size=sum(sizes)) < 0.6).astype(np.int64)},
    )


@pytest.fixture(scope="module")
def digits(faces):
    """The same images with one to three labels a client, and no attributes."""
    y = np.concatenate([np.arange(n) % (1 + k % 3) for k, n in enumerate(faces.sizes)])
    return dataclasses.replace(faces, y=y.astype(np.int32), attributes={})


@pytest.fixture(scope="module")
def two_layers():
    """Two linear layers: the published convolutions are linear too."""
    import tensorflow as tf

    from tff_pmc.models.functional import classifier

    generator = np.random.default_rng(8)
    shapes = [(16, 5), (5,), (5, 3), (3,)]
    weights = [generator.normal(size=s, scale=0.4).astype(np.float32) for s in shapes]

    @tf.function
    def predict(model_weights, x, training=True):
        del training
        (k1, b1, k2, b2), _ = model_weights
        x = tf.cast(tf.reshape(x, [-1, 16]), tf.float32) / 255.0
        return (x @ k1 + b1) @ k2 + b2

    return classifier(weights, predict, (4, 4))


@pytest.mark.parametrize(
    ("experiment", "data", "criteria_of"),
    [("mnist_noniid", "digits", mnist_criteria), ("celeba", "faces", celeba_criteria)],
)
def test_all_nine_rows_match_the_published_code(
    runtime, request, two_layers, experiment, data, criteria_of
):
    """Criteria, weights and model of a round, under the settings of a real run."""
    from tff_pmc.algorithms.run_context import RunContext

    examples = request.getfixturevalue(data)
    run_settings = settings(
        experiment,
        {
            "learning_rate": RATE,
            "local_epochs": EPOCHS,
            "clients_per_round": len(COHORT),
        },
        protocol="reference_code",
    )
    # Not its model's.
    context = RunContext(run_settings, federation(experiment, examples, 3), examples)
    vars(context)["model"] = two_layers
    codes = CRITERIA[experiment]
    basis = scores.Basis.all_subsets(codes)
    process = run_settings.algorithm.build_process(context, basis)
    initial = [np.asarray(w) for w in two_layers.initial_weights[0]]
    c, trained = expected(examples, initial, criteria_of)
    packs = tff_pmc.pack(
        examples, COHORT, example_attributes=tuple(examples.attributes)
    )
    orders = reference_code.orderings(experiment.split("_")[0])
    models = []
    for row, order in zip(ROWS, orders):
        assert order == tuple(codes[place] for place in row)
        score = scores.prioritized(order, codes)
        state = tff_pmc.processes.with_score(process.initialize(), basis, score)
        state, metrics = process.next(state, packs)
        raw = metrics["client_work"]["train"]["criteria_by_client"]
        np.testing.assert_allclose(scores.normalize(raw), c, rtol=1e-5)
        p = weights_of_row(c, row)
        np.testing.assert_allclose(
            scores.participant_weights(raw, score), p, rtol=0, atol=1e-6
        )
        tensors = [np.asarray(w) for w in process.get_model_weights(state).trainable]
        models.append(np.concatenate([w.ravel() for w in tensors]))
        for place, tensor in enumerate(tensors):
            mean = sum(share * t[place] for share, t in zip(p, trained))
            error = np.linalg.norm(tensor - mean)
            assert error <= 1e-5 * np.linalg.norm(mean)
    # Rows that cannot be told apart would make this say little.
    for k, model in enumerate(models):
        for other in models[:k]:
            assert np.linalg.norm(model - other) > 1e-4 * np.linalg.norm(model)


# --- The protocol's settings --------------------------------------------------

BOTH = {
    "protocol": "reference_code",
    "initializer": "glorot_normal",
    "model_divergence": "by_layer",  # Norms of kernels, their mean.
    "cohort_rounding": "nearest",  # max(round(C K), 1).
    "reach": "above",  # Strictly above the target.
}
FACES = {"model": "celeba_reference_cnn", "client_rule": "reference_code"}


@pytest.mark.parametrize(
    ("experiment", "changed", "rate"),
    [
        ("mnist_iid", BOTH, 0.215),
        ("mnist_noniid", BOTH, 0.1),
        ("celeba", {**BOTH, **FACES}, 0.1),
    ],
)
def test_the_protocol_changes_what_the_published_code_does_differently(
    experiment, changed, rate
):
    paper = settings(experiment).by_flag()
    theirs = settings(experiment, {}, "reference_code").by_flag()
    differing = {k: v for k, v in theirs.items() if v != paper.get(k, v)}
    assert differing == changed
    # What both have: one in ten clients, five epochs, full batch.
    assert (theirs["clients_per_round"], theirs["local_epochs"]) == (0.1, 5)
    assert (theirs["batch_size"], theirs["learning_rate"]) == (0, rate)
    # Of the published CelebA model alone.
    added = {k: theirs[k] for k in theirs if k not in paper}
    is_celeba = experiment == "celeba"
    assert added == ({"batch_norm": "frozen", "dropout": 0.3} if is_celeba else {})


def test_an_override_wins_over_the_protocol():
    run_settings = settings("celeba", {"reach": "at_least"}, "reference_code")
    assert run_settings.record.reach == "at_least"
    assert run_settings.model_name == "celeba_reference_cnn"
