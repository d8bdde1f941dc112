"""A regression that counts: pictures of blobs, a model that sums a heat map."""

import dataclasses

import numpy as np

import leaf_data
from leaf_data.pixels import WHITE_ON_BLACK
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment, Variant
from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.models.functional import initial_weights

SIDE = 20
SIZES = (320, 160, 80, 40, 20, 160)
MISCOUNTS = 5  # This client counts every blob twice.


def pictures(random, count):
    """Draws pictures of 1 to 8 blobs, of unequal width and brightness, with noise."""
    blobs = random.integers(1, 9, count)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    x = random.normal(20, 8, (count, SIDE, SIDE))
    for picture, number in zip(x, blobs):
        for row, column in random.uniform(2, SIDE - 3, (number, 2)):
            distance = (rows - row) ** 2 + (columns - column) ** 2
            width, light = random.uniform(1.5, 4), random.uniform(80, 160)
            picture += light * np.exp(-distance / width)
    return x.clip(0, 255).astype(np.uint8), blobs.astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Blobs(leaf_data.Dataset):
    """Made-up pictures at six clients of unequal size, one of which miscounts."""

    def load(self, data_dir=None, cache_dir=None):
        random = np.random.default_rng(self.seed)
        names = tuple(f"client_{k}" for k in range(len(SIZES)))

        def drawn(sizes, names):
            splits = np.concatenate([[0], np.cumsum(sizes)])
            return leaf_data.Examples(*pictures(random, sum(sizes)), splits, names)

        train = drawn(SIZES, names)
        y = train.y.copy()
        y[train.row_splits[MISCOUNTS] : train.row_splits[MISCOUNTS + 1]] *= 2
        return leaf_data.FederatedDataset(
            name="blobs",
            train_examples=dataclasses.replace(train, y=y),
            test_examples=drawn([50] * len(SIZES), names),  # Counted right.
            server_examples=drawn([100], ("server",)),
            num_classes=0,  # Its labels are numbers.
            pixel_convention=WHITE_ON_BLACK,
            origin=leaf_data.Origin("random numbers", (), ""),
            options={"seed": self.seed},
        )


@dataclasses.dataclass(frozen=True)
class HeatMap(ModelSettings):
    """Two convolutions that make a heat map; its sum is the count."""

    element_shape = (SIDE, SIDE)

    def build(self):
        # TensorFlow takes seconds to import: flags are read without it.
        import tensorflow as tf

        from tff_pmc.models import PackedModel

        shapes = [(5, 5, 1, 8), (8,), (3, 3, 8, 1), (1,)]

        @tf.function
        def predict(model_weights, x, training=True):
            (kernel, bias, last_kernel, last_bias), _ = model_weights
            x = tf.cast(x, tf.float32)[..., tf.newaxis] / 255
            hidden = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + bias)
            heat = tf.nn.conv2d(hidden, last_kernel, 1, "SAME") + last_bias
            return tf.reduce_sum(heat, [1, 2, 3]) / SIDE

        @tf.function
        def loss(output, y, sample_weight=None):
            return tf.reduce_mean(tf.square(output - y))

        weights = initial_weights(shapes, self.initializer, self.seed)
        return PackedModel(
            initial_weights=(tuple(weights), ()),
            predict_on_batch_fn=predict,
            loss_fn=loss,
            input_spec=(
                tf.TensorSpec([None, SIDE, SIDE], tf.uint8),
                tf.TensorSpec([None], tf.float32),
            ),
        )


leaf_data.register("blobs", Blobs)
MODELS.register("heat_map", HeatMap)
EXPERIMENTS.register(
    "blobs",
    Experiment(
        "Counting blobs, a regression: AdaFed and FedAvg.",
        settings={
            "dataset": "blobs",
            "model": "heat_map",
            "criteria": ("MAPE", "DS"),
            "rounds": 15,
            "clients_per_round": 0,
            "local_epochs": 2,
            "batch_size": 10,
            "client_optimizer": "adam",
            "learning_rate": 0.01,
        },
        rows=[Variant("fedavg"), Variant("adafed")],
        baseline="FedAvg",
        reports=("algorithm_effect",),
    ),
)
