"""The same CNN in Keras, with the weights of `cnn.npz`, and a round of training.

PyTorch keeps a convolution's kernel as [out, in, height, width] and a dense layer's as
[out, in], and flattens channels first. Keras keeps [height, width, in, out] and
[in, out], and flattens channels last.
"""

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
import tff_pmc


def keras_model():
    layers = [
        tf.keras.layers.Conv2D(8, 5, activation="relu", input_shape=(28, 28, 1)),
        tf.keras.layers.MaxPool2D(2),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(10),
    ]
    return tf.keras.Sequential(layers)


state = np.load("cnn.npz")
dense = state["4.weight"].reshape(10, 8, 12, 12)  # [out, channel, height, width]
weights = [
    state["0.weight"].transpose(2, 3, 1, 0),
    state["0.bias"],
    dense.transpose(2, 3, 1, 0).reshape(12 * 12 * 8, 10),
    state["4.bias"],
]
model = keras_model()
model.set_weights(weights)
scores = model(state["images"].transpose(0, 2, 3, 1))
print("largest difference", np.abs(scores - state["scores"]).max())

data = leaf_data.load("digits5k", partition="noniid")
batched = data.train.preprocess(
    lambda d: d.batch(10).map(
        lambda e: (tf.cast(e["x"][..., None], tf.float32) / 255, e["y"])
    )
)


def model_fn():
    return tff.learning.models.from_keras_model(
        keras_model(),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=batched.element_type_structure,
    )


process = tff_pmc.build_prioritized_fed_avg(
    model_fn,
    priority=("LD", "DS", "MD"),
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.05),
    local_epochs=1,
)
start = tff.learning.models.ModelWeights(weights, [])
clients = [batched.create_tf_dataset_for_client(k) for k in data.client_ids[:10]]
with tff_pmc.Runtime():
    state = process.set_model_weights(process.initialize(), start)
    state, metrics = process.next(state, clients)
print("loss", metrics["client_work"]["train"]["loss"])
