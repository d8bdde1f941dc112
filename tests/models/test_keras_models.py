"""Keras models at the door: what is made functional, what is refused in one line."""

import numpy as np
import pytest

from tff_pmc._lazy import tf, tff
from tff_pmc.models.model_folder import order_arrays, save_model
from tff_pmc.models.weights_file import with_initial_weights

INPUTS = 3


def layers():
    return tf.keras.layers


def dense(units, **options):
    return layers().Dense(units, kernel_initializer="he_normal", **options)


def sequential(*parts):
    return tf.keras.Sequential([layers().Input((INPUTS,)), *parts])


def freeze(model, place):
    model.layers[place].trainable = False
    return model


def normalized():
    normalization = layers().Normalization()
    normalization.adapt(np.arange(12.0, dtype=np.float32).reshape(4, 3) ** 2)
    return sequential(dense(3), normalization, dense(2))


def nested(inner):
    return sequential(dense(4), tf.keras.Sequential([layers().Input((4,)), *inner]))


def with_model_penalty(of_function):
    model = sequential(dense(4), dense(2))
    if of_function:
        model.add_loss(lambda: tf.reduce_sum(model.layers[0].kernel ** 2))
    else:
        model.add_loss(tf.reduce_mean(model.layers[0].output))
    return model


def looking_up():
    lookup = layers().IntegerLookup()
    lookup.adapt(np.array([0, 1]))
    return sequential(lookup, layers().Embedding(6, 3), layers().Flatten(), dense(2))


def vector(**options):
    class Vector(tf.keras.layers.Layer):
        """Its penalty is one number per example."""

        def call(self, x):
            self.add_loss(tf.reduce_mean(x**2, axis=1))
            return x

    return Vector(**options)


def counter(always=False):
    class Counter(tf.keras.layers.Layer):
        """It counts batches in training, or always."""

        def build(self, shape):
            self.count = self.add_weight("count", (), "int32", "zeros", trainable=False)

        def call(self, x, training=None):
            if training or always:
                self.count.assign_add(1)
            return x

    return Counter()


def forgetful(factor):
    class Forgetful(tf.keras.layers.Layer):
        """Its `get_config` lacks its argument."""

        def __init__(self, factor=1.0, **options):
            super().__init__(**options)
            self.factor = factor

        def get_config(self):
            return super().get_config()

        def call(self, x):
            return self.factor * x

    return Forgetful(factor)


def model_fn_of(keras_model, loss=None):
    loss = loss or tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    label = tf.TensorSpec([None], tf.int32)
    spec = (tf.TensorSpec([None, INPUTS], tf.float32), label)
    return lambda: tff.learning.models.from_keras_model(keras_model, loss, spec)


COPIED = {
    "plain": lambda: sequential(dense(4), dense(2)),
    "first frozen": lambda: freeze(sequential(dense(3), dense(3), dense(3)), 0),
    "middle frozen": lambda: freeze(sequential(dense(3), dense(3), dense(3)), 1),
    "last frozen": lambda: freeze(sequential(dense(3), dense(3), dense(3)), 2),
    "constraint frozen": lambda: freeze(
        sequential(dense(3, kernel_constraint="unit_norm"), dense(2)), 0
    ),
    "nested": lambda: nested([dense(4), dense(2)]),
    "nested frozen": lambda: freeze(nested([dense(4), dense(2)]), 1),
    "normalization": normalized,
    "batch normalization frozen": lambda: freeze(
        sequential(
            dense(3), layers().BatchNormalization(moving_mean_initializer="ones")
        ),
        1,
    ),
    "dropout": lambda: sequential(dense(4), layers().Dropout(0.5), dense(2)),
    "one name": lambda: sequential(
        dense(4, name="a"),
        tf.keras.Sequential([layers().Input((4,)), dense(2, name="a")]),
    ),
}


@pytest.mark.parametrize("kind", COPIED)
def test_saved_weights_have_the_order_of_set_weights(kind, tmp_path):
    """As docs/start.md describes, for any frozen layers."""
    from tff_pmc.models.tff_types.keras_models import as_functional
    from tff_pmc.models.tff_types.packed_model import evaluate_initial_model

    keras_model = COPIED[kind]()
    x = np.random.default_rng(0).normal(size=(5, INPUTS)).astype(np.float32)
    before = [w.copy() for w in keras_model.get_weights()]
    scores = keras_model(x, training=False).numpy()
    frozen = [
        any(w is v for v in keras_model.non_trainable_weights)
        for w in keras_model.weights
    ]
    model = as_functional(model_fn_of(keras_model))
    np.testing.assert_allclose(
        evaluate_initial_model(model, x)[0], scores, rtol=1e-5, atol=1e-6
    )
    # A step of training: what is not frozen moves.
    trainable, others = model.initial_weights
    trained = tuple(w + np.float32(0.5) for w in trainable)
    weights = tff.learning.models.ModelWeights(trained, others)
    save_model(model, weights, str(tmp_path))
    with np.load(tmp_path / "weights.npz") as file:
        arrays = dict(file)
    another = COPIED[kind]()
    another.set_weights(list(arrays.values()))
    for now, earlier, is_frozen in zip(another.get_weights(), before, frozen):
        np.testing.assert_array_equal(now, earlier if is_frozen else earlier + 0.5)
    served = with_initial_weights(model, [*trained, *others])
    (expected,) = evaluate_initial_model(served, x)
    saved = tf.saved_model.load(str(tmp_path / "saved_model"))
    outputs = saved.signatures["serving_default"](x=tf.constant(x))["scores"]
    np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-6)
    by_position = {f"arr_{n}": array for n, array in enumerate(arrays.values())}
    by_name = dict(sorted(arrays.items()))
    for named in (arrays, by_position, by_name):
        for array, value in zip(
            order_arrays(model, named), [*trained, *others], strict=True
        ):
            np.testing.assert_array_equal(array, value)


REFUSED = {
    "constraint": (
        lambda: sequential(dense(3, bias_constraint="non_neg")),
        ("dense", "bias", "constraint (NonNeg)"),
    ),
    "nested constraint": (
        lambda: nested([layers().LayerNormalization(gamma_constraint="max_norm")]),
        ("gamma has a constraint",),
    ),
    "all frozen": (lambda: freeze(sequential(dense(2)), 0), ("no trainable weight",)),
    "batch normalization": (
        lambda: sequential(dense(3), layers().BatchNormalization()),
        ("training changes batch_normalization", "moving_mean", "trainable=False"),
    ),
    "nested batch normalization": (
        lambda: nested([layers().BatchNormalization(), dense(2)]),
        ("training changes batch_normalization", "moving_mean"),
    ),
    "counter": (lambda: sequential(dense(3), counter()), ("training changes", "count")),
    "float16": (
        lambda: sequential(dense(2, dtype="float16")),
        ("dense", "kernel is float16"),
    ),
    "mixed": (
        lambda: sequential(dense(2, dtype="mixed_bfloat16", name="narrow")),
        ("layer narrow computes in bfloat16", "float32"),
    ),
    "penalty of a model": (lambda: with_model_penalty(False), ("add_loss", "a layer")),
    "function of a model": (lambda: with_model_penalty(True), ("add_loss", "a layer")),
    "penalties": (
        lambda: sequential(dense(3), vector(name="vector")),
        ("penalty 0 of vector has the shape (3,)",),
    ),
    "configuration": (
        lambda: sequential(dense(3), forgetful(2.0)),
        ("other outputs", "get_config"),
    ),
    "table": (looking_up, ("table that adapt() filled", "vocabulary=")),
    "not built": (
        lambda: tf.keras.Sequential([layers().Dense(2)]),
        ("no weights yet", "input_shape"),
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_parts_without_effect_raise_one_line(kind, assert_one_line):
    from tff_pmc.models.tff_types.keras_models import as_functional

    make, words = REFUSED[kind]
    keras_model = make()
    assert_one_line(ValueError, lambda: as_functional(model_fn_of(keras_model)), *words)


def test_parts_that_tffs_functional_models_drop_raise(assert_one_line):
    from tff_pmc.models.tff_types.keras_checks import check_model

    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    spec = (tf.TensorSpec([None, INPUTS]), tf.TensorSpec([None], tf.int32))
    make = tff.learning.models.functional_model_from_keras
    check_model(make(sequential(dense(2)), loss, spec))
    for keras_model, words in (
        (sequential(dense(2, kernel_regularizer="l2", name="d")), "penalties of the"),
        (sequential(dense(2, kernel_constraint="non_neg")), "constraints of dense"),
        (freeze(sequential(dense(3), dense(2)), 0), "frozen weights dense"),
    ):
        model = make(keras_model, loss, spec)
        assert_one_line(ValueError, lambda: check_model(model), words, "from_keras")  # noqa: B023


def summed():
    class Summed(tff.learning.models.VariableModel):
        """A model that is not Keras's, whose loss is a sum over the batch."""

        def __init__(self):
            self._inner = model_fn_of(sequential(dense(2)))()

        trainable_variables = property(lambda self: self._inner.trainable_variables)
        non_trainable_variables = local_variables = property(lambda self: [])
        input_spec = property(lambda self: self._inner.input_spec)

        def predict_on_batch(self, x, training=True):
            return self._inner.predict_on_batch(x, training)

        def forward_pass(self, batch_input, training=True):
            output = self._inner.forward_pass(batch_input, training)
            total = output.loss * tf.cast(output.num_examples, tf.float32)
            return tff.learning.models.BatchOutput(total, output.predictions)

        report_local_unfinalized_metrics = metric_finalizers = reset_metrics = (
            lambda s: {}
        )

    return Summed()


def functional_with(loss):
    @tf.function
    def predict(weights, x, training=True):
        return tf.reduce_sum(x, axis=1) * weights[0][0]

    spec = (tf.TensorSpec([None, INPUTS]), tf.TensorSpec([None]))
    return tff.learning.models.FunctionalModel(
        initial_weights=((np.zeros((), np.float32),), ()),
        predict_on_batch_fn=predict,
        loss_fn=tf.function(lambda output, y, w=None: loss(tf.square(output - y))),
        input_spec=spec,
    )


def keras_with(reduction, **options):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(True, reduction=reduction)
    return model_fn_of(sequential(dense(2, **options)), loss)()


def several(reduction):
    """Returns a model of two outputs; the second's loss has this reduction."""
    x = tf.keras.Input((INPUTS,))
    keras_model = tf.keras.Model(x, [dense(1)(x), dense(1)(x)])
    losses = [
        tf.keras.losses.MeanSquaredError(),
        tf.keras.losses.MeanSquaredError(reduction, name="second"),
    ]
    y = tf.TensorSpec([None, 1])
    spec = (tf.TensorSpec([None, INPUTS]), (y, y))
    return tff.learning.models.from_keras_model(keras_model, losses, spec)


MEANS = {
    "functional": lambda: functional_with(tf.reduce_mean),
    "functional, half": lambda: functional_with(lambda t: 0.5 * tf.reduce_mean(t)),
    "Keras": lambda: keras_with("auto"),
    "Keras, mean": lambda: keras_with("sum_over_batch_size"),
    "Keras, several": lambda: several("auto"),
    "Keras, float16": lambda: keras_with("auto", dtype="mixed_float16"),
}
NO_MEANS = {
    "functional": (lambda: functional_with(tf.reduce_sum), "2 times", "reduce_mean"),
    "functional, root": (
        lambda: functional_with(lambda t: tf.sqrt(tf.reduce_sum(t))),
        "1.41 times",
    ),
    "functional, none": (lambda: functional_with(tf.identity), "the shape (3,)"),
    "Keras": (lambda: keras_with("sum"), "2 times", "SUM_OVER_BATCH_SIZE"),
    "Keras, bfloat16": (lambda: keras_with("sum", dtype="mixed_bfloat16"), "2 times"),
    "Keras, none": (lambda: keras_with("none"), "the shape (3,)"),
    "Keras, several": (lambda: several("sum"), "loss second", "2 times"),
    "TFF": (summed, "2 times", "reduce_mean"),
}


def test_a_loss_is_a_mean_over_the_batch(assert_one_line):
    """The loss of two equal examples is that of one."""
    from tff_pmc.models.tff_types.keras_checks import check_model

    for make in MEANS.values():
        check_model(make())
    for make, *words in NO_MEANS.values():
        model = make()
        assert_one_line(ValueError, lambda: check_model(model), *words)  # noqa: B023


def saturated():
    """Its probabilities are 0 and 1, for which a loss of logits differs."""
    kernel = tf.keras.initializers.Constant(np.eye(INPUTS) * 100)
    return sequential(
        layers().Dense(INPUTS, kernel_initializer=kernel, activation="softmax")
    )


def masked():
    """Two of a batch's examples are zeros, which its mask excludes."""
    return tf.keras.Sequential(
        [layers().Input((INPUTS, 1)), layers().Masking(), dense(INPUTS)]
    )


@pytest.mark.parametrize("build", [saturated, masked])
def test_losses_in_a_program_equal_those_of_tff(build):
    from tff_pmc.models.tff_types.keras_models import with_penalties

    keras_model, loss = build(), tf.keras.losses.MeanSquaredError()
    x = np.array([[1, 0, 0], [0, 0, 0], [0, 0, 0]], np.float32)
    y = np.array([1, 0, 2], np.int32)
    if build is saturated:
        loss = tf.keras.losses.SparseCategoricalCrossentropy()
    else:
        x, y = x[..., None], np.ones((3, INPUTS, INPUTS), np.float32)
    spec = tf.nest.map_structure(
        tf.TensorSpec.from_tensor, (tf.constant(x), tf.constant(y))
    )
    model = tff.learning.models.from_keras_model(keras_model, loss, spec)
    expected = model.forward_pass((x, y)).loss.numpy()
    assert with_penalties(model).forward_pass((x, y)).loss.numpy() == expected


@pytest.mark.parametrize("is_keras", [True, False])
def test_checks_keep_the_values_of_variables(is_keras):
    from tff_pmc.models.tff_types.keras_checks import check_model
    from tff_pmc.models.tff_types.keras_models import with_penalties

    keras_model = sequential(counter(always=True), dense(2))
    model = model_fn_of(keras_model)()
    check_model(model if is_keras else with_penalties(model))
    assert keras_model.layers[0].count.numpy() == 0
    assert all(np.all(v.numpy() == 0) for v in model.local_variables)
