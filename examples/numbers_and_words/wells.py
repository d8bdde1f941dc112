"""A regression: data set, model and experiment."""

import dataclasses

import numpy as np

import leaf_data
from leaf_data.pixels import NO_PIXELS
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.models import MODELS, ModelSettings


@dataclasses.dataclass(frozen=True)
class Wells(leaf_data.Dataset):
    """Depths of six wells, of ten measurements each."""

    def load(self, data_dir=None, cache_dir=None):
        random = np.random.default_rng(self.seed)
        x = random.normal(size=(60, 2)).astype(np.float32)
        noise = random.normal(scale=0.1, size=60)
        y = (2 * x[:, 0] - x[:, 1] + 0.5 + noise).astype(np.float32)
        splits = np.arange(0, 61, 10)
        examples = leaf_data.Examples(x, y, splits, tuple("abcdef"))
        return leaf_data.FederatedDataset(
            name="wells",
            train_examples=examples,
            test_examples=examples.take(4),
            num_classes=0,  # Its labels are numbers.
            pixel_convention=NO_PIXELS,
            origin=leaf_data.Origin("random numbers", (), ""),
            options={"seed": self.seed},
        )


@dataclasses.dataclass(frozen=True)
class Plane(ModelSettings):
    """A linear function of two numbers."""

    element_shape = (2,)
    element_dtype = "float32"

    def build(self):
        # TensorFlow takes seconds to import: flags are read without it.
        import tensorflow as tf

        from tff_pmc.models import PackedModel

        @tf.function
        def predict(model_weights, x, training=True):
            (slope, offset), _ = model_weights
            return tf.linalg.matvec(x, slope) + offset

        @tf.function
        def loss(output, y, sample_weight=None):
            return tf.reduce_mean(tf.square(output - y))

        return PackedModel(
            initial_weights=((np.zeros(2, np.float32), np.zeros((), np.float32)), ()),
            predict_on_batch_fn=predict,
            loss_fn=loss,
            input_spec=(
                tf.TensorSpec([None, 2], tf.float32),
                tf.TensorSpec([None], tf.float32),
            ),
        )


leaf_data.register("wells", Wells)
MODELS.register("plane", Plane)
EXPERIMENTS.register(
    "wells",
    Experiment(
        "Depths of wells, a regression.",
        settings={
            "dataset": "wells",
            "model": "plane",
            "criteria": ("DS", "MD"),
            "rounds": 5,
            "clients_per_round": 0,
        },
    ),
)
