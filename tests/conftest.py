"""Fixtures of several folders: the engine of TFF, and a small federation."""

import gc
import os
import tracemalloc

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Building a process allocates many objects, most of which stay: with Python's
# threshold of 700, garbage collection takes a third of the time.
gc.set_threshold(50_000)

import numpy as np
import pytest

import leaf_data

# Listed here because importing the package's list imports TensorFlow.
BASELINES = (
    "simple_average",
    "weighted_mean",
    "median",
    "momentum",
    "personalized",
    "laplace",
    "quantized_updates",
)


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def tff():
    return pytest.importorskip("tensorflow_federated")


@pytest.fixture(scope="session")
def assert_one_line():
    """Returns a check that a call raises an error in one line with these parts."""

    def check(kind, call, *parts):
        with pytest.raises(kind) as error:
            call()
        assert "\n" not in str(error.value)
        for part in parts:
            assert str(part) in str(error.value)

    return check


@pytest.fixture(scope="session")
def peak_of():
    """Returns a function that measures the peak of the bytes that a call allocates."""

    def measure(call):
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measure


@pytest.fixture(scope="session")
def assert_equal():
    """Returns a check that lists of tensors are equal within `atol`."""

    def check(actual, expected, atol):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected):
            np.testing.assert_allclose(a, b, rtol=0, atol=atol)

    return check


@pytest.fixture(scope="session")
def assert_close():
    """Returns a check of the relative L2 error, for float32 sums in another order."""

    def check(actual, expected, tolerance=2e-4):
        assert len(actual) == len(expected)
        for a, b in zip(actual, expected):
            a, b = np.asarray(a, float), np.asarray(b, float)
            assert a.shape == b.shape
            assert np.linalg.norm(a - b) <= tolerance * np.linalg.norm(b)

    return check


def pytest_addoption(parser):
    parser.addoption(
        "--engine",
        default="local",
        help="what runs TFF in tests: local, worker or cluster",
    )


@pytest.fixture(scope="session")
def runtime(request):
    """The engine, installed as the default context for the whole session."""
    from tff_pmc.runtime import Runtime

    with Runtime(request.config.getoption("--engine")) as running:
        yield running


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Returns a function that writes a self-signed certificate and its key, by flag."""
    distributed = pytest.importorskip("distributed")

    def make():
        folder = tmp_path_factory.mktemp("tls")
        credentials = distributed.Security.temporary()
        content = (
            credentials.tls_ca_file,
            credentials.tls_client_cert,
            credentials.tls_client_key,
        )
        files = {}
        for flag, text in zip(("tls_ca_file", "tls_cert", "tls_key"), content):
            (folder / f"{flag}.pem").write_text(text)
            files[flag] = str(folder / f"{flag}.pem")
        return files

    return make


@pytest.fixture(scope="session")
def dask_cluster(certificates):
    """Starts two workers with TLS; the value is the `ClusterOptions` to reach them."""
    distributed = pytest.importorskip("distributed")
    import dask

    from tff_pmc.cluster import local_cluster
    from tff_pmc.cluster.options import ClusterOptions

    # No worker restarts this soon: `start` must wait for longer.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "0.1s"})
    files = certificates()
    security = distributed.Security(
        require_encryption=True,
        tls_ca_file=files["tls_ca_file"],
        **{
            f"tls_{role}_{part}": files[f"tls_{part}"]
            for role in ("client", "scheduler", "worker")
            for part in ("cert", "key")
        },
    )
    # On a machine under load a worker may not answer for long.
    cluster = local_cluster.start(2, security, timeout=30)
    yield ClusterOptions(cluster.scheduler_address, **files)
    local_cluster.close(cluster)


@pytest.fixture(scope="session")
def cluster(dask_cluster):
    """The engine of these workers, not installed as a context."""
    from tff_pmc.runtime import Runtime

    running = Runtime("cluster", cluster=dask_cluster)
    yield running
    running.close()


@pytest.fixture(scope="session")
def toy_examples():
    """Six clients of 3 to 8 four-by-four images in three classes."""
    generator = np.random.default_rng(7)
    sizes = [8, 3, 5, 6, 4, 7]
    splits = np.concatenate([[0], np.cumsum(sizes)])
    # Labels of client k are below 1 + k % 3: label diversity differs.
    y = np.concatenate(
        [generator.integers(0, 1 + k % 3, n) for k, n in enumerate(sizes)]
    )
    return leaf_data.Examples(
        generator.integers(0, 256, (len(y), 4, 4), dtype=np.uint8),
        y.astype(np.int32),
        splits.astype(np.int64),
        tuple(f"toy_{k}" for k in range(len(sizes))),
    )


def _toy_parts(tf):
    """Returns a linear softmax model of the toy images, as arguments of TFF's class."""
    generator = np.random.default_rng(3)

    @tf.function
    def predict(weights, x, training=True):
        del training
        (kernel, bias), _ = weights
        x = tf.cast(tf.reshape(x, [-1, 16]), tf.float32) / 255.0
        return x @ kernel + bias

    def example_losses(output, label):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(label, output)

    @tf.function
    def loss(output, label, sample_weight=None):
        del sample_weight
        return tf.reduce_mean(example_losses(output, label))

    parts = dict(
        initial_weights=(
            (
                generator.normal(size=(16, 3)).astype(np.float32),
                np.zeros(3, np.float32),
            ),
            (),
        ),
        predict_on_batch_fn=predict,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec([None, 4, 4], tf.uint8),
            tf.TensorSpec([None], tf.int32),
        ),
    )
    return parts, example_losses


@pytest.fixture(scope="session")
def toy_model(tf, tff):
    """A linear softmax model on the toy images: 51 parameters, TFF's own class."""
    parts, _ = _toy_parts(tf)
    return tff.learning.models.FunctionalModel(**parts)


@pytest.fixture(scope="session")
def toy_packed_model(tf):
    """The same model with the losses of single examples."""
    from tff_pmc.models import PackedModel

    parts, example_losses = _toy_parts(tf)
    return PackedModel(**parts, example_losses=example_losses)


@pytest.fixture(scope="session")
def baseline_names():
    """The names of all of `tff_pmc.BASELINES`, in its order."""
    return list(BASELINES)


# Class scope: each class of tests builds its aggregators once.
@pytest.fixture(scope="class", params=BASELINES)
def baseline_name(request):
    """The name of each of `tff_pmc.BASELINES`."""
    return request.param


@pytest.fixture(scope="session")
def capacity():
    """A capacity on DS, LD and MD that is not additive; the whole is worth 1."""
    return {
        ("DS",): 0.4,
        ("LD",): 0.3,
        ("MD",): 0.2,
        ("DS", "LD"): 0.8,
        ("DS", "MD"): 0.5,
        ("LD", "MD"): 0.4,
    }


@pytest.fixture(scope="session")
def owa_by_sorting():
    """OWA by sorting; the package sums minima instead."""

    def owa(c, weights):
        return sum(w * x for w, x in zip(weights, sorted(c, reverse=True)))

    return owa


@pytest.fixture(scope="session")
def choquet_by_sorting():
    """The Choquet integral by sorting; the capacity is by frozenset of columns."""

    def choquet(c, capacity):
        order = sorted(range(len(c)), key=lambda i: c[i])
        total, before = 0.0, 0.0
        for place, column in enumerate(order):
            total += (c[column] - before) * capacity[frozenset(order[place:])]
            before = c[column]
        return total

    return choquet


@pytest.fixture(scope="session")
def summed(tff):
    """Returns a builder of a federated sum of a computation's result per client."""

    def make(computation):
        type_ = computation.type_signature.parameter

        @tff.federated_computation(tff.FederatedType(type_, tff.CLIENTS))
        def sums(clients):
            return tff.federated_sum(tff.federated_map(computation, clients))

        return sums

    return make


@pytest.fixture(scope="session")
def add(tff):
    """Sums the clients' integers."""

    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def add(x):
        return tff.federated_sum(x)

    return add


@pytest.fixture(scope="session")
def pairs(tf):
    """Returns a function that pairs the arrays of two structures of equal types."""

    def pair_arrays(a, b):
        tf.nest.assert_same_structure(a, b, check_types=True)
        array_pairs = []
        for theirs, ours in zip(tf.nest.flatten(a), tf.nest.flatten(b)):
            assert type(ours) is type(theirs)
            ours, theirs = np.asarray(ours), np.asarray(theirs)
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            array_pairs.append((theirs, ours))
        return array_pairs

    return pair_arrays


@pytest.fixture(scope="module")
def digits():
    """Four clients of real digits, so that training does not diverge."""
    import leaf_data

    data = leaf_data.load("digits5k", partition="noniid").train_examples
    sizes = [9, 4, 6, 5]
    parts = [data.client(k) for k in range(4)]
    return leaf_data.Examples(
        np.concatenate([part["x"][:n] for part, n in zip(parts, sizes)]),
        np.concatenate([part["y"][:n] for part, n in zip(parts, sizes)]),
        np.concatenate([[0], np.cumsum(sizes)]),
        tuple("abcd"),
    )


@pytest.fixture
def assert_same_bits(pairs):
    def check(a, b):
        for theirs, ours in pairs(a, b):
            assert ours.tobytes() == theirs.tobytes()

    return check
