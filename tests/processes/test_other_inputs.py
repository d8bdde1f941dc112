"""Rounds on numbers and on ids of words, in both forms of client data."""

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc._lazy import tf, tff

SIZES = (4, 7, 5)
SPLITS = np.cumsum((0, *SIZES))
NAMES = ("a", "b", "c")
WORDS, DEPTH = 6, 2


@pytest.fixture(scope="module")
def numbers():
    """Three clients with pairs of numbers, and two values to be predicted of each."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(SPLITS[-1], 2)).astype(np.float32)
    y = generator.normal(size=(SPLITS[-1], 2)).astype(np.float32)
    return leaf_data.Examples(x, y, SPLITS, NAMES)


@pytest.fixture(scope="module", params=["int32", "int64"])
def words(request):
    """Three clients with three words each time, and the word that follows."""
    generator = np.random.default_rng(6)
    x = generator.integers(0, WORDS, (SPLITS[-1], 3)).astype(request.param)
    y = generator.integers(0, WORDS, SPLITS[-1]).astype(np.int32)
    return leaf_data.Examples(x, y, SPLITS, NAMES)


@pytest.fixture(scope="module")
def linear():
    """A linear function to two values, and the mean squared error."""

    @tf.function
    def predict(weights, x, training=True):
        (kernel,), _ = weights
        return x @ kernel

    return tff.learning.models.FunctionalModel(
        initial_weights=((np.ones((2, 2), np.float32),), ()),
        predict_on_batch_fn=predict,
        loss_fn=tf.function(lambda a, b, w=None: tf.reduce_mean(tf.square(a - b))),
        input_spec=(
            tf.TensorSpec([None, 2], tf.float32),
            tf.TensorSpec([None, 2], tf.float32),
        ),
    )


@pytest.fixture(scope="module")
def next_word():
    """An embedding and a linear layer, for words of either type."""
    from tff_pmc.models.functional import classifier

    generator = np.random.default_rng(8)
    shapes = [(WORDS, DEPTH), (3 * DEPTH, WORDS)]
    weights = [generator.normal(size=shape).astype(np.float32) for shape in shapes]

    @tf.function
    def predict(model_weights, x, training=True):
        (embedding, kernel), _ = model_weights
        return tf.reshape(tf.gather(embedding, x), [-1, 3 * DEPTH]) @ kernel

    return lambda dtype: classifier(weights, predict, (3,), element_dtype=dtype)


@pytest.fixture(scope="module")
def both_forms(build_prioritized, datasets):
    """The weights after two rounds, of packed clients and of datasets."""

    def run(model, examples, **options):
        weights = []
        for packed in (True, False):
            process = build_prioritized(model, packed=packed, **options)
            clients = datasets(examples, range(3), 100)
            if packed:
                clients = tff_pmc.pack(examples, range(3))
            state = process.initialize()
            for _ in range(2):
                state, _ = process.next(state, clients)
            weights.append(process.get_model_weights(state))
        return weights

    return run


def test_a_regression_equals_numpy(runtime, numbers, linear, both_forms):
    packed, batches = both_forms(
        linear, numbers, criteria=("DS",), priority=("DS",), local_epochs=3
    )
    kernel = np.ones((2, 2))
    for _ in range(2):
        total = np.zeros((2, 2))
        for k, size in enumerate(SIZES):
            client, trained = numbers.client(k), kernel.copy()
            for _ in range(3):
                error = client["x"] @ trained - client["y"]
                trained -= 0.1 * 2 * client["x"].T @ error / error.size
            total += size * trained
        kernel = total / sum(SIZES)
    np.testing.assert_allclose(packed.trainable[0], kernel, rtol=1e-5)
    np.testing.assert_allclose(batches.trainable[0], kernel, rtol=1e-5)


def test_every_clients_loss_equals_numpy(runtime, numbers, linear):
    """A client lies in two packs, and its examples in several batches."""
    losses = tff_pmc.processes.build_loss_sums(linear, 3, batch_size=2)
    weights = tff.learning.models.ModelWeights(*linear.initial_weights)
    packs = tff_pmc.evaluation_packs(numbers, num_packs=2)
    squares = ((numbers.x @ np.ones((2, 2)) - numbers.y) ** 2).mean(axis=1)
    expected = np.add.reduceat(squares, SPLITS[:-1])
    np.testing.assert_allclose(losses(weights, packs), expected, rtol=1e-5)


def test_both_forms_of_next_words_give_the_same_model(
    runtime, words, next_word, both_forms, datasets
):
    model = next_word(words.x.dtype)
    packed, batches = both_forms(
        model, words, priority=("MD", "LD", "DS"), local_epochs=2
    )
    moved = np.abs(packed.trainable[0] - model.initial_weights[0][0]).max()
    assert moved > 1e-3  # The embedding is trained, too.
    for a, b in zip(packed.trainable, batches.trainable):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    evaluate = tff_pmc.build_federated_evaluation(model, 3)
    counts = evaluate(packed, tff_pmc.evaluation_packs(words))
    embedding, kernel = packed.trainable
    scores = embedding[words.x].reshape(-1, 3 * DEPTH) @ kernel
    hits = (scores.argmax(axis=1) == words.y).astype(int)
    np.testing.assert_array_equal(counts, np.add.reduceat(hits, SPLITS[:-1]))
    whole = tff_pmc.build_federated_evaluation(model, packed=False)
    figures = whole(packed, datasets(words, range(3), 4))
    assert (figures["correct"], figures["examples"]) == (hits.sum(), 16)


KINDS = {
    "pair": lambda a, b: (a, b),
    "uneven": lambda a, b: (a, np.hstack([b, b])),
    "vectors": lambda a, b: (a[:, 0], b[:, 0]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_two_outputs_weigh_by_examples(
    runtime, build_prioritized, sgd, assert_close, kind
):
    """10 and 90 examples: the model is the mean of the two alone, 1 to 9."""
    generator = np.random.default_rng(3)
    clients = []
    for size in (10, 90):
        x = generator.normal(size=(size, 3)).astype(np.float32)
        y = KINDS[kind](x[:, :1] + size, x[:, 1:2] - size)
        clients.append(tf.data.Dataset.from_tensor_slices((x, y)).batch(100))
    input_spec = clients[0].element_spec

    def model_fn():
        inputs = tf.keras.Input((3,))
        outputs = [
            tf.keras.layers.Dense(spec.shape[1:].num_elements(), "linear", False)
            for spec in input_spec[1]
        ]
        keras_model = tf.keras.Model(inputs, [layer(inputs) for layer in outputs])
        keras_model.set_weights([np.ones(w.shape) for w in keras_model.get_weights()])
        losses = [tf.keras.losses.MeanSquaredError()] * 2
        return tff.learning.models.from_keras_model(
            keras_model, losses, input_spec=input_spec
        )

    criteria = {"criteria": ("DS", "MD"), "priority": ("DS",)}
    process = build_prioritized(model_fn, **criteria)
    alone = []
    for cohort in ([clients[0]], [clients[1]], clients):
        state, metrics = process.next(process.initialize(), cohort)
        weights = process.get_model_weights(state).trainable
        alone.append([np.asarray(w, float) for w in weights])
    assert metrics["aggregator"]["totals"][0] == 100
    few, many, both = alone
    expected = [0.1 * a + 0.9 * b for a, b in zip(few, many)]
    assert np.abs(few[0] - many[0]).max() > 1e-2
    assert_close(both, expected, 1e-5)


@pytest.mark.parametrize("packed", [True, False])
def test_labels_of_sequences_cover_all_steps(
    runtime, build_prioritized, datasets, packed
):
    """Sequences of three steps: LD counts distinct words, DS the sequences."""
    generator = np.random.default_rng(6)
    x = generator.integers(0, WORDS, (SPLITS[-1], 3)).astype(np.int32)
    examples = leaf_data.Examples(x, x[:, 0], SPLITS, NAMES)
    model = tff.learning.models.FunctionalModel(
        initial_weights=((np.ones((WORDS, WORDS), np.float32),), ()),
        predict_on_batch_fn=tf.function(
            lambda weights, x, training=True: tf.gather(weights[0][0], x)
        ),
        loss_fn=tf.function(
            lambda output, y, w=None: tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(y, output)
            )
        ),
        input_spec=(tf.TensorSpec([None, 3], tf.int32),) * 2,
    )
    process = build_prioritized(
        model, criteria=("DS", "LD"), priority=("LD",), packed=packed
    )
    if packed:
        clients = [
            pack.map(lambda element: {**element, "y": element["x"]})
            for pack in tff_pmc.pack(examples, range(3))
        ]
    else:
        clients = [d.map(lambda x, _: (x, x)) for d in datasets(examples, range(3), 2)]
    _, metrics = process.next(process.initialize(), clients)
    distinct = [len(np.unique(examples.client(k)["x"])) for k in range(3)]
    expected = [SPLITS[-1], sum(distinct)]
    np.testing.assert_array_equal(metrics["aggregator"]["totals"], expected)
