"""A model."""

import dataclasses

import numpy as np

from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.models.functional import classifier


@dataclasses.dataclass(frozen=True)
class Linear(ModelSettings):
    """One linear layer."""

    element_shape = (8, 8)

    def build(self):
        import tensorflow as tf

        random = np.random.default_rng(self.seed)
        weights = [
            random.normal(0, 0.1, (64, 8)).astype(np.float32),
            np.zeros(8, np.float32),
        ]

        @tf.function
        def predict(model_weights, x, training=True):
            (kernel, bias), _ = model_weights
            return tf.cast(tf.reshape(x, [-1, 64]), tf.float32) / 255 @ kernel + bias

        return classifier(weights, predict, self.element_shape)


MODELS.register("linear", Linear)
