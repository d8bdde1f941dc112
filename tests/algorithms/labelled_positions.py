"""A model and data with a label for each position, as several tests use them."""

import dataclasses
from typing import ClassVar

import numpy as np
from cli import federation

import leaf_data
from tff_pmc import models
from tff_pmc._lazy import tf
from tff_pmc.models.functional import classifier

LENGTH, CLASSES = 3, 4
SPLITS = np.array([0, 3, 5])


def label_positions(y, x=None, **parts):
    """Two clients with three tokens per example, and these labels."""
    if x is None:
        x = np.random.default_rng(2).integers(0, CLASSES, (5, LENGTH)).astype(np.int32)
    examples = leaf_data.Examples(x, y, SPLITS, ("a", "b"))
    parts = {"pixel_convention": leaf_data.pixels.NO_PIXELS, **parts}
    return federation("made_up", examples, CLASSES, **parts)


@dataclasses.dataclass(frozen=True)
class Table(models.ModelSettings):
    """A table of scores for each position, or for the first one."""

    element_shape: ClassVar[tuple[int, ...]] = (LENGTH,)
    element_dtype: ClassVar[str] = "int32"
    label_shape: ClassVar[tuple[int, ...]] = (LENGTH,)
    num_ids: ClassVar[int] = CLASSES
    has_scores: ClassVar[bool] = True
    counts_masked: ClassVar[bool] = False

    def build(self):
        from tff_pmc.models import PackedModel

        @tf.function(autograph=False)
        def predict(weights, x, training=True):
            scores = tf.gather(weights[0][0], x)
            return scores if self.label_shape and self.has_scores else scores[:, 0]

        shape = self.label_shape
        kernel = [np.eye(CLASSES, dtype=np.float32)]
        model = classifier(
            kernel, predict, (LENGTH,), element_dtype="int32", label_shape=shape
        )
        if not self.counts_masked:
            return model

        def loss(output, labels, sample_weight=None):
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                tf.maximum(labels, 0), output
            )
            return tf.reduce_mean(losses)

        return PackedModel(
            initial_weights=model.initial_weights,
            predict_on_batch_fn=predict,
            loss_fn=loss,
            input_spec=model.input_spec,
        )


POSITIONS = np.array(
    [[0, 1, -1], [2, -1, -1], [3, 1, 0], [-1, -1, -1], [1, 1, 2]], np.int32
)
