"""What tests of whole rounds share: SGD, packs and datasets, and what is compared."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff

RATE = 0.1


@pytest.fixture(scope="session")
def sgd():
    """Makes TFF's SGD."""

    def make(rate=RATE, momentum=None):
        return tff.learning.optimizers.build_sgdm(rate, momentum)

    return make


@pytest.fixture(scope="session")
def datasets():
    """Makes the datasets of batches of a cohort."""

    def make(examples, cohort, batch_size):
        parts = [examples.client(k) for k in cohort]
        return [
            tf.data.Dataset.from_tensor_slices((p["x"], p["y"])).batch(batch_size)
            for p in parts
        ]

    return make


@pytest.fixture(scope="session")
def assert_close():
    """Checks each tensor by its relative L2: float32 sums in another order."""

    def check(found, expected, tolerance=2e-4):
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            a, b = np.asarray(a, float), np.asarray(b, float)
            assert np.linalg.norm(a - b) <= tolerance * np.linalg.norm(b)

    return check


@pytest.fixture(scope="session")
def weights_of():
    """The trainable weights of a process's model in a state."""

    def weights(process, state):
        return [np.asarray(w) for w in process.get_model_weights(state).trainable]

    return weights


@pytest.fixture(scope="session")
def build_prioritized(sgd):
    """Builds a process that sees sums only, with SGD at the clients."""

    def build(model, **options):
        return tff_pmc.build_prioritized_fed_avg(
            model, client_optimizer_fn=sgd(), **options
        )

    return build


@pytest.fixture(scope="session")
def build_factory(sgd):
    """Builds a process around an aggregation factory, with SGD at the clients."""

    def build(model, factory, **options):
        return tff_pmc.build_factory_fed_avg(
            model, factory, client_optimizer_fn=sgd(), **options
        )

    return build


@pytest.fixture(scope="session")
def run_rounds():
    """Gives the trainable weights after the rounds, and the last metrics."""

    def run(process, examples, cohorts, num_packs=None):
        state = process.initialize()
        for cohort in cohorts:
            packs = tff_pmc.pack(examples, cohort, num_packs=num_packs or len(cohort))
            output = process.next(state, packs)
            state = output.state
        weights = process.get_model_weights(state).trainable
        return [np.asarray(w, float) for w in weights], output.metrics

    return run


@pytest.fixture(scope="session")
def trained_alone():
    """One full-batch step on client k, in NumPy: a linear softmax model."""

    def train(model, examples, k, weights=None):
        kernel, bias = model.initial_weights[0] if weights is None else weights
        client = examples.client(k)
        x = client["x"].reshape(-1, 16).astype(float) / 255
        scores = x @ kernel.astype(float) + bias
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        error = (p - np.eye(3)[client["y"]]) / len(x)
        return kernel - RATE * x.T @ error, bias - RATE * error.sum(axis=0)

    return train


@pytest.fixture(scope="session")
def flat_tensors():
    """The tensor types within a TFF type, in order."""

    def flat(type_):
        if isinstance(type_, tff.FederatedType):
            return flat(type_.member)
        if isinstance(type_, tff.TensorType):
            return [type_]
        return [tensor for element in type_ for tensor in flat(element)]

    return flat
