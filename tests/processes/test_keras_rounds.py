"""Rounds of Keras models in both forms of client data take the steps of Keras."""

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc._lazy import tf, tff

STEPS, RATE, EXAMPLES = 3, 0.1, 12
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(EXAMPLES, 3)).astype(np.float32)
Y = GENERATOR.integers(0, 2, EXAMPLES).astype(np.int32)


def squares(always):
    class Squares(tf.keras.layers.Layer):
        """Its penalty is a tenth of the mean square of its inputs."""

        def __init__(self, always, **options):
            super().__init__(**options)
            self.always = always

        def get_config(self):
            return {**super().get_config(), "always": self.always}

        def call(self, x, training=None):
            if self.always or training:
                self.add_loss(0.1 * tf.reduce_mean(tf.square(x)))
            return x

    return Squares(always)


def dense(units, seed, **options):
    initializer = tf.keras.initializers.GlorotUniform(seed=seed)
    return tf.keras.layers.Dense(units, kernel_initializer=initializer, **options)


def with_penalties():
    """All kinds of penalties; of the nested model a layer is frozen."""
    layers, l1, l2 = tf.keras.layers, tf.keras.regularizers.L1, tf.keras.regularizers.L2
    frozen = dense(4, 3, kernel_regularizer=l2(0.1), trainable=False)
    inner = [layers.Input((4,)), dense(4, 2, activity_regularizer=l2(0.2)), frozen]
    return tf.keras.Sequential(
        [
            layers.Input((3,)),
            dense(4, 1, kernel_regularizer=l2(0.3), bias_regularizer=l1(0.01)),
            tf.keras.Sequential(inner),
            squares(always=True),
            squares(always=False),
            dense(2, 4),
        ]
    )


def with_float64():
    """A layer in float64 and one in float32."""
    return tf.keras.Sequential(
        [tf.keras.layers.Input((3,)), dense(4, 1, dtype="float64"), dense(2, 2)]
    )


def with_bfloat16():
    """Outputs and losses in bfloat16."""
    layer = dense(2, 1, dtype="mixed_bfloat16")
    return tf.keras.Sequential([tf.keras.layers.Input((3,)), layer])


def cross_entropy():
    return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@pytest.mark.parametrize("name", ["client_optimizer_fn", "server_optimizer_fn"])
def test_an_optimizer_that_cannot_step_is_named(name, sgd, assert_one_line):
    """TFF's SGD with momentum multiplies by a momentum in float32."""
    spec = (tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None], tf.int32))
    optimizers = {"client_optimizer_fn": sgd(), name: sgd(RATE, 0.9)}
    assert_one_line(
        ValueError,
        lambda: tff_pmc.build_prioritized_fed_avg(
            lambda: tff.learning.models.from_keras_model(
                with_float64(), cross_entropy(), spec
            ),
            **optimizers,
        ),
        name,
        "float32, float64",
        "momentum",
    )


@pytest.mark.parametrize(
    ("make", "packed", "tolerance"),
    [
        (with_penalties, True, 1e-6),
        (with_penalties, False, 1e-6),
        (with_float64, True, 1e-6),
        (with_float64, False, 1e-6),
        (with_bfloat16, False, 1e-2),
    ],
)
def test_a_client_trains_as_keras_does(runtime, sgd, make, packed, tolerance):
    """Weights and loss are those of `fit`; judged is the loss of the examples alone."""
    from tff_pmc.models.tff_types.keras_models import as_functional

    keras_model = make()
    keras_model.compile(tf.keras.optimizers.SGD(RATE), cross_entropy())
    history = keras_model.fit(
        X, Y, batch_size=EXAMPLES, epochs=STEPS, shuffle=False, verbose=0
    )
    scores = keras_model(X).numpy().astype(float)
    spec = (tf.TensorSpec([None, 3], tf.float32), tf.TensorSpec([None], tf.int32))

    def model_fn():
        return tff.learning.models.from_keras_model(make(), cross_entropy(), spec)

    model = as_functional(model_fn) if packed else model_fn
    process = tff_pmc.build_prioritized_fed_avg(
        model,
        criteria=("DS", "MD", "LOSS"),
        priority=("DS",),
        client_optimizer_fn=sgd(RATE),
        local_epochs=STEPS,
        sums=tff_pmc.SumOptions(clip_norm=1e6),
        report_cohort=1,
    )
    examples = leaf_data.Examples(X, Y, np.array([0, EXAMPLES]), ("a",))
    clients = [tf.data.Dataset.from_tensor_slices((X, Y)).batch(EXAMPLES)]
    if packed:
        clients = tff_pmc.pack(examples, [0])
    state, metrics = process.next(process.initialize(), clients)
    weights = process.get_model_weights(state)
    variables = keras_model.trainable_variables
    for weight, variable in zip(weights.trainable, variables, strict=True):
        assert np.asarray(weight).dtype == variable.dtype.as_numpy_dtype
        np.testing.assert_allclose(weight, variable.numpy(), atol=tolerance)
    measured = metrics["client_work"]["train"]
    assert (measured["excluded"], measured["examples"]) == (0, EXAMPLES)
    loss = measured["loss_sum"] / EXAMPLES
    np.testing.assert_allclose(loss, history.history["loss"][-1], rtol=1e-2)
    logs = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(EXAMPLES), Y]
    if packed:
        judge = tff_pmc.processes.build_loss_sums(model, 1)
        (judged,) = judge(weights, tff_pmc.evaluation_packs(examples))
    else:
        judged = tff_pmc.build_federated_evaluation(model)(weights, clients)["loss_sum"]
    np.testing.assert_allclose(judged / EXAMPLES, logs.mean(), rtol=1e-2)
