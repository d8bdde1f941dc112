"""A label for each position: models and data are checked against one another."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest

import leaf_data
from declared_settings import SettingError
from tff_pmc import models
from tff_pmc._lazy import tf
from tff_pmc.models.functional import classifier

LENGTH, CLASSES = 3, 4
SPLITS = np.array([0, 3, 5])


def data(y, num_classes=CLASSES):
    """Two clients with three tokens per example."""
    x = np.random.default_rng(2).integers(0, CLASSES, (5, LENGTH)).astype(np.int32)
    examples = leaf_data.Examples(x, y, SPLITS, ("a", "b"))
    return leaf_data.FederatedDataset(
        name="made_up",
        train_examples=examples,
        test_examples=examples,
        num_classes=num_classes,
        pixel_convention=leaf_data.pixels.NO_PIXELS,
        origin=leaf_data.Origin("made up", (), ""),
        options={},
    )


@dataclasses.dataclass(frozen=True)
class Table(models.ModelSettings):
    """A table of scores for each position, or for the first one."""

    element_shape: ClassVar[tuple[int, ...]] = (LENGTH,)
    element_dtype: ClassVar[str] = "int32"
    label_shape: ClassVar[tuple[int, ...]] = (LENGTH,)
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


@pytest.mark.parametrize(
    ("changes", "y", "message"),
    [
        ({}, POSITIONS, ""),
        ({"label_shape": ()}, np.maximum(POSITIONS[:, 0], 0), ""),
        (
            {},
            np.maximum(POSITIONS[:, 0], 0),
            "expects labels of (None, 3) int32, and made_up provides int32",
        ),
        (
            {"label_shape": ()},
            POSITIONS,
            "expects labels of (None,) int32, and made_up provides [n, 3] int32",
        ),
        (
            {"label_shape": (2,)},
            POSITIONS,
            "expects labels of (None, 2) int32, and made_up provides [n, 3] int32",
        ),
        (
            {"has_scores": False},
            POSITIONS,
            "must return scores [n, 3, classes] for made_up, whose labels are one for",
        ),
        (
            {"counts_masked": True},
            POSITIONS,
            "its loss must be the mean over the positions whose label is not -1: call",
        ),
        ({"counts_masked": True}, np.maximum(POSITIONS, 0), ""),
        (
            {},
            np.full_like(POSITIONS, -1),
            "no client of made_up has a train label that counts: all are -1",
        ),
    ],
)
def test_a_mismatch_of_model_and_labels_is_named(monkeypatch, changes, y, message):
    from tff_pmc.algorithms.run_context import RunContext
    from tff_pmc.experiments.experiment import experiment_values
    from tff_pmc.settings import RunSettings

    kind = type("Changed", (Table,), changes)
    monkeypatch.setitem(models.MODELS._things, "table", kind)
    settings = RunSettings.from_flag_values(
        {"priority": ("DS",), "model": "table"},
        inherited=experiment_values("quickstart"),
    )
    if not message:
        assert RunContext.from_settings(settings, data(y)).cohort_sampler
        return
    with pytest.raises(SettingError) as error:
        RunContext.from_settings(settings, data(y))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_client_without_a_position_that_counts_is_not_drawn():
    from tff_pmc.algorithms.run_checks import build_cohort_sampler
    from tff_pmc.experiments.experiment import settings

    y = np.array(POSITIONS)
    y[3:] = -1
    sampler = build_cohort_sampler(settings("quickstart", {}), data(y))
    assert sampler.trainable.tolist() == [0]
