"""A federated least-squares problem whose answers NumPy computes."""

import numpy as np

import leaf_data
import tff_pmc
from tff_pmc import models

SIZES = (4, 7, 3, 0, 6, 5)
TRAINABLE = tuple(np.flatnonzero(SIZES).tolist())
COHORTS = ((0, 1), (4,), (1, 2, 4, 5), (0, 5), (4, 1))


def clients_of(num_features=2, seed=5):
    """Clients whose losses differ in curvature and in optimum: (x, y) of each."""
    generator = np.random.default_rng(seed)
    return [
        (
            generator.normal(size=(n, num_features)) * (0.5 + k % 3 / 2),
            generator.normal(size=n) + 3 * (k - 2),
        )
        for k, n in enumerate(SIZES)
    ]


def examples_of(clients):
    """The clients' examples, of which the fourth client has none."""
    splits = np.concatenate([[0], np.cumsum([len(y) for _, y in clients])])
    return leaf_data.Examples(
        np.concatenate([x for x, _ in clients]).astype(np.float32),
        np.concatenate([y for _, y in clients]).astype(np.float32),
        splits.astype(np.int64),
        tuple(f"client_{k}" for k in range(len(clients))),
    )


def linear_model(tf, num_features=2):
    """`x @ kernel + bias`, with half of the mean squared error as its loss."""

    @tf.function
    def predict(weights, x, training):
        (kernel, bias), _ = weights
        return tf.linalg.matvec(x, kernel) + bias

    @tf.function
    def loss(output, y, sample_weight=None):
        return tf.reduce_mean((output - y) ** 2) / 2

    start = np.linspace(-1, 1, num_features, dtype=np.float32), np.float32(0.5)
    return models.PackedModel(
        initial_weights=(start, ()),
        predict_on_batch_fn=predict,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec([None, num_features]),
            tf.TensorSpec([None], tf.float32),
        ),
    )


def flat(weights):
    """Kernel and bias as one vector, in float64."""
    return np.concatenate([np.ravel(np.asarray(w, float)) for w in weights])


def with_ones(x):
    return np.column_stack([x, np.ones(len(x))])


def gradient(client, w, rows=slice(None)):
    """The gradient of a client's loss on some of its examples."""
    x, y = with_ones(client[0])[rows], client[1][rows]
    return x.T @ (x @ w - y) / len(y)


def quadratic(client):
    """H and b of a client's loss, w^T H w / 2 - b^T w."""
    x, y = with_ones(client[0]), client[1]
    return x.T @ x / len(y), x.T @ y / len(y)


def optimum(clients):
    """Where the plain mean of the clients' losses is least."""
    hessians, slopes = zip(*map(quadratic, clients))
    return np.linalg.solve(np.mean(hessians, axis=0), np.mean(slopes, axis=0))


def train(process, examples, cohorts):
    """The vector of the model after a round with each of the cohorts."""
    state = process.initialize()
    for cohort in cohorts:
        state = process.next(state, tff_pmc.pack(examples, cohort)).state
    return flat(process.get_model_weights(state).trainable)


def assert_reaches_the_optimum(process, rate, steps):
    """Trains with all clients, and then with two per round: both end at the optimum.

    Returns the examples, and the point at which FedAvg ends with all clients.
    """
    clients = clients_of()
    training = [clients[k] for k in TRAINABLE]
    best, fedavg_point = optimum(training), fixed_point_of_fedavg(training, rate, steps)
    assert np.abs(best - fedavg_point).max() > 0.5
    generator = np.random.default_rng(0)
    pairs = [generator.choice(TRAINABLE, 2, replace=False).tolist() for _ in range(120)]
    examples = examples_of(clients)
    for cohorts in ([TRAINABLE] * 60, pairs):
        np.testing.assert_allclose(train(process, examples, cohorts), best, atol=1e-4)
    return examples, fedavg_point


def fixed_point_of_fedavg(clients, rate, steps):
    """The model that a round of FedAvg with all clients leaves unchanged."""
    moved, pulled = [], []
    for client in clients:
        h, b = quadratic(client)
        # w - w_steps = (I - (I - rate H)^steps) (w - H^-1 b)
        left = np.linalg.matrix_power(np.eye(len(h)) - rate * h, steps)
        gone = np.eye(len(h)) - left
        moved.append(gone)
        pulled.append(gone @ np.linalg.pinv(h) @ b)
    return np.linalg.solve(np.mean(moved, axis=0), np.mean(pulled, axis=0))
