"""A model_fn of one's own, whose metrics TFF aggregates."""

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import tff_pmc

x = np.random.default_rng(1).normal(size=(40, 2)).astype(np.float32)
y = (x[:, :1] - x[:, 1:]).astype(np.float32)
clients = [
    tf.data.Dataset.from_tensor_slices((x[k : k + 10], y[k : k + 10])).batch(5)
    for k in range(0, 40, 10)
]


def model_fn():
    return tff.learning.models.from_keras_model(
        tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))]),
        tf.keras.losses.MeanSquaredError(),
        input_spec=clients[0].element_spec,
        metrics=[tf.keras.metrics.MeanAbsoluteError()],
    )


process = tff_pmc.build_prioritized_fed_avg(
    model_fn,
    criteria=("DS", "MD"),
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
    local_epochs=1,
)
evaluate = tff_pmc.build_federated_evaluation(model_fn)
with tff_pmc.Runtime():
    state = process.initialize()
    for _ in range(5):
        state, metrics = process.next(state, clients)
        print(metrics["client_work"]["train"]["mean_absolute_error"])
    evaluation = evaluate(process.get_model_weights(state), clients)
    print(evaluation["metrics"]["mean_absolute_error"], evaluation["examples"])
