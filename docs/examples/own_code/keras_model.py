"""A Keras model of one's own, on datasets of batches."""

import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
import tff_pmc

data = leaf_data.load("digits5k", partition="noniid")
train = data.train.preprocess(lambda d: d.batch(10).map(lambda e: (e["x"], e["y"])))
datasets = [train.create_tf_dataset_for_client(k) for k in data.client_ids[:10]]


def model_fn():
    layers = [
        tf.keras.layers.Rescaling(1 / 255, input_shape=(28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10),
    ]
    return tff.learning.models.from_keras_model(
        tf.keras.Sequential(layers),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=datasets[0].element_spec,
    )


process = tff_pmc.build_prioritized_fed_avg(
    model_fn,
    priority=("DS", "LD", "MD"),
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
    local_epochs=1,
)
with tff_pmc.Runtime():
    state, metrics = process.next(process.initialize(), datasets)
train = metrics["client_work"]["train"]  # By these names for packed clients, too.
print(train["loss_sum"] / train["examples"])
