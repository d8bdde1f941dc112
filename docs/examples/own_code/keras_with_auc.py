"""A Keras model for `--model`, whose metric is a column of `rounds.csv`."""

import dataclasses

from tff_pmc.models import MODELS, ModelSettings


@dataclasses.dataclass(frozen=True)
class KerasWithAuc(ModelSettings):
    """One dense layer, and the AUC over all pairs of an image and a digit."""

    element_shape = (28, 28)
    num_classes = 10

    def build(self):
        import tensorflow as tf
        import tensorflow_federated as tff

        class Auc(tf.keras.metrics.AUC):
            def __init__(self):
                super().__init__(num_thresholds=1000, name="auc", from_logits=True)

            def update_state(self, y_true, y_pred, sample_weight=None):
                return super().update_state(tf.one_hot(y_true, 10), y_pred)

        def model_fn():
            uniform = tf.keras.initializers.GlorotUniform(seed=self.seed)
            layers = [
                tf.keras.layers.Rescaling(1 / 255, input_shape=(28, 28)),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(10, kernel_initializer=uniform),
            ]
            return tff.learning.models.from_keras_model(
                tf.keras.Sequential(layers),
                tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                input_spec=(
                    tf.TensorSpec([None, 28, 28], tf.uint8),
                    tf.TensorSpec([None], tf.int32),
                ),
                metrics=[Auc],
            )

        return model_fn


MODELS.register("keras_with_auc", KerasWithAuc)
