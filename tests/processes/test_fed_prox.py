"""FedProx's term in both forms of local training, against NumPy."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import models
from tff_pmc._lazy import tff
from tff_pmc.settings.training_settings import LocalTraining

EPOCHS, RATE = 3, 0.5


@pytest.mark.parametrize("mu", [0.0, 1.5])
@pytest.mark.parametrize("packed", [True, False])
def test_two_rounds_equal_numpy(
    runtime, toy_examples, toy_model, sgd, datasets, numpy_sgd, assert_close, mu, packed
):
    """The start is the model of the round: the second begins where the first ended."""
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        priority=("DS",),
        criteria=("DS",),
        client_optimizer_fn=sgd(RATE),
        local_epochs=EPOCHS,
        packed=packed,
        prox_mu=mu,
    )
    state, cohort = process.initialize(), [0, 2, 3]
    model = toy_model.initial_weights[0]
    for _ in range(2):
        data = datasets(toy_examples, cohort, 2)
        if packed:
            data = tff_pmc.pack(toy_examples, cohort)
        state, _ = process.next(state, data)
        trained, sizes = [], []
        for k in cohort:
            part = toy_examples.client(k)
            size = len(part["y"])
            step = size if packed else 2  # In full batches, or in the dataset's.
            rows = [np.arange(size)[i : i + step] for i in range(0, size, step)]
            how = dict(rate=RATE, epochs=EPOCHS, batches_of=lambda _, rows=rows: rows)
            trained.append(numpy_sgd(model, part, mu=mu, **how))
            sizes.append(size)
        model = [np.average(w, axis=0, weights=sizes) for w in zip(*trained)]
        assert_close(process.get_model_weights(state).trainable, model)


def test_the_proximal_term_holds_slices_but_not_local_weights(tf):
    """A table of which rows are looked up, weights without use, and local ones."""
    generator = np.random.default_rng(5)
    table = generator.normal(size=(3, 2)).astype(np.float32)
    unused, shift = np.ones(1, np.float32), np.zeros(2, np.float32)
    x = np.array([0, 2, 2], np.int32)
    y = generator.normal(size=(3, 2)).astype(np.float32)
    mu, rate, epochs = 0.7, 0.4, 4

    def forward(weights, rest, x, seed):
        return tf.gather(weights[0], x) + weights[2], rest

    def predict(weights, x, training):
        return tf.gather(weights[0][0], x)

    def loss(output, y, sample_weight=None):
        return tf.reduce_sum((output - y) ** 2) / 2

    model = models.PackedModel(
        initial_weights=((table, unused), ()),
        predict_on_batch_fn=tf.function(predict),
        loss_fn=tf.function(loss),
        input_spec=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 2])),
        forward_in_training=forward,
        local_weights=(shift,),
    )
    from tff_pmc.clients.packed_training import train_locally

    start = tff.learning.models.ModelWeights(
        (tf.constant(table), tf.constant(unused)), ()
    )
    trained, *_ = train_locally(
        model,
        tff.learning.optimizers.build_sgdm(rate),
        start,
        tf.constant(x),
        tf.constant(y),
        training=LocalTraining(local_epochs=epochs, prox_mu=mu),
        seed=tf.constant([0, 0]),
    )
    w, s = table.astype(float), shift.astype(float)
    for _ in range(epochs):
        error = w[x] + s - y
        gradient = mu * (w - table)
        np.add.at(gradient, x, error)
        w, s = w - rate * gradient, s - rate * error.sum(axis=0)
    np.testing.assert_allclose(trained.trainable[0], w, rtol=1e-5)
    np.testing.assert_array_equal(trained.trainable[1], unused)
