"""What tests of whole rounds share: SGD, packs and datasets, and what is compared."""

import collections
import functools

import numpy as np
import pytest

import tff_pmc
from tff_pmc import criteria
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
def weights_of():
    """The trainable weights of a process's model in a state."""

    def weights(process, state):
        return [np.asarray(w) for w in process.get_model_weights(state).trainable]

    return weights


@pytest.fixture(scope="session")
def build_prioritized(sgd):
    """Builds a process that sees sums only, with SGD at the clients.

    Equal options give the same process, which holds no state.
    """

    def build(model, **options):
        options = {"local_epochs": 1, **options}
        return tff_pmc.build_prioritized_fed_avg(
            model, client_optimizer_fn=sgd(), **options
        )

    once = functools.lru_cache(maxsize=8)(build)

    def built(model, **options):
        try:
            hash((model, *options.values()))
        except TypeError:  # A score's terms, say, are a dictionary.
            return build(model, **options)
        return once(model, **options)

    return built


@pytest.fixture(scope="session")
def build_factory(sgd):
    """Builds a process around an aggregation factory, with SGD at the clients."""

    def build(model, factory, **options):
        return tff_pmc.build_prioritized_fed_avg(
            model,
            client_optimizer_fn=sgd(),
            aggregator=factory,
            local_epochs=1,
            **{"criteria": ("DS",), **options},
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
def numpy_sgd():
    """SGD on the linear softmax model, written with NumPy alone."""

    def train(
        weights,
        client,
        rate=RATE,
        epochs=1,
        batches_of=None,
        class_weights=None,
        mu=0.0,
    ):
        kernel, bias = (np.array(w, float) for w in weights)
        received = kernel, bias
        x, y = client["x"].reshape(len(client["y"]), -1) / 255.0, client["y"]
        for epoch in range(epochs):
            for batch in batches_of(epoch) if batches_of else [np.arange(len(y))]:
                scores = x[batch] @ kernel + bias
                p = np.exp(scores - scores.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                error = (p - np.eye(3)[y[batch]]) / len(batch)
                if class_weights is not None:
                    error *= class_weights[y[batch]][:, None]
                pull = [mu * (w - w_0) for w, w_0 in zip((kernel, bias), received)]
                kernel = kernel - rate * (x[batch].T @ error + pull[0])
                bias = bias - rate * (error.sum(axis=0) + pull[1])
        return [kernel, bias]

    return train


@pytest.fixture(scope="session")
def batch_order():
    """The documented order of a packed client's examples in one epoch."""

    def batches(seed, round_num, client, epoch, size, batch_size):
        fold = tf.random.experimental.stateless_fold_in
        key = fold(fold([seed, round_num], client), epoch)
        order = tf.random.experimental.stateless_shuffle(tf.range(size), key).numpy()
        return [order[i : i + batch_size] for i in range(0, size, batch_size)]

    return batches


@pytest.fixture(scope="session")
def numpy_criteria():
    """DS, LD and MD of a client, in NumPy."""

    def measure(client, before, after):
        norm = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(after, before)))
        return [len(client["y"]), len(set(client["y"])), 1 / np.sqrt(norm + 1)]

    return measure


@pytest.fixture(scope="session")
def trained_alone(numpy_sgd):
    """One full-batch step on client k, from the initial weights or others."""

    def train(model, examples, k, weights=None):
        first = model.initial_weights[0] if weights is None else weights
        return numpy_sgd(first, examples.client(k))

    return train


@pytest.fixture(scope="session")
def sent_shapes():
    """The shapes of what a client sends, sorted: in the clear, and in secret.

    They are those of the MapReduceForm that a process compiles to.
    """

    def shapes(type_):
        return sorted(tuple(tensor.shape) for tensor in tff.structure.flatten(type_))

    def sent(process):
        form = tff.backends.mapreduce.get_map_reduce_form_for_computation(process.next)
        clear, *secret = form.work.type_signature.result
        return shapes(clear), shapes(tff.to_type(secret))

    return sent


@pytest.fixture(scope="session")
def nan_for():
    """Makes a criterion that is NaN for the client of a size, else 1."""

    def make(size, value=np.nan):
        return criteria.Criterion(
            "BR",
            "broken",
            "a test",
            lambda client: tf.where(tf.equal(tf.size(client.y), size), value, 1.0),
        )

    return make


def keras_metrics():
    return [
        tf.keras.metrics.SparseCategoricalAccuracy(),
        tf.keras.metrics.SparseTopKCategoricalAccuracy(2, name="top_2"),
    ]


@pytest.fixture(scope="session")
def keras_model_fn():
    """Makes a `model_fn` of a Keras model with metrics, whose inputs are float32."""

    def make(metrics=keras_metrics):
        def model_fn():
            dense = tf.keras.layers.Dense(
                3, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=4)
            )
            layers = [tf.keras.layers.Flatten(input_shape=(4, 4)), dense]
            return tff.learning.models.from_keras_model(
                tf.keras.Sequential(layers),
                tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                input_spec=(
                    tf.TensorSpec([None, 4, 4], tf.float32),
                    tf.TensorSpec([None], tf.int32),
                ),
                metrics=metrics(),
            )

        return model_fn

    return make


@pytest.fixture(scope="session")
def float_datasets(datasets):
    """Makes datasets of batches with pixels between 0 and 1."""

    def make(*args):
        return [
            d.map(lambda x, y: (tf.cast(x, tf.float32) / 255, y))
            for d in datasets(*args)
        ]

    return make


@pytest.fixture(scope="session")
def metric_model(toy_model):
    """The toy model with Keras metrics as functions."""
    fns = tff.learning.metrics.create_functional_metric_fns(
        lambda: collections.OrderedDict((m.name, m) for m in keras_metrics())
    )
    return tff.learning.models.FunctionalModel(
        initial_weights=toy_model.initial_weights,
        predict_on_batch_fn=toy_model.predict_on_batch,
        loss_fn=toy_model.loss,
        input_spec=toy_model.input_spec,
        metrics_fns=fns,
    )
