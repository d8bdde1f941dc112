"""q-FedAvg (Li et al. 2020, Algorithm 2) of two criteria that use the received loss."""

import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
import tff_pmc
from tff_pmc import scores

data = leaf_data.load("digits5k", partition="noniid")
q, rate = 1.0, 0.1


def received_loss(client):  # One function, so that both share one pass.
    return client.mean_on_received(loss_of) + 1e-10


def loss_of(output, y):
    return output.loss


def weight(client):  # L F^q, where L is 1 / rate
    return tf.pow(received_loss(client), q) / rate


def h(client):  # q F^(q-1) (L ||w - w_k||)^2 + L F^q
    before, after = client.initial_weights.trainable, client.trained_weights.trainable
    length = tf.linalg.global_norm([b - a for b, a in zip(before, after)]) / rate
    return q * tf.pow(received_loss(client), q - 1) * length**2 + weight(client)


process = tff_pmc.build_prioritized_fed_avg(
    tff_pmc.models.mnist_cnn(),
    criteria=[
        tff_pmc.Criterion(code, code, "Algorithm 2", value=value, needs_model=True)
        for code, value in {"W": weight, "H": h}.items()
    ],
    # The mean weighted by W, times the total of W over that of H.
    score=dataclasses.replace(
        scores.single("W", ("W", "H")), step_powers={0: 1.0, 1: -1.0}
    ),
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(rate),
    local_epochs=1,
)
clients = tff_pmc.pack(data.train_examples, range(10))
with tff_pmc.Runtime():
    state, metrics = process.next(process.initialize(), clients)
print(metrics["aggregator"]["totals"])  # Of W and H.
