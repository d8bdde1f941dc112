"""A next-word model: data set, model and experiment."""

import dataclasses

import numpy as np

import leaf_data
from leaf_data.pixels import NO_PIXELS
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.models.functional import classifier

WORDS = "the cat sat on a mat and then it ate my fish".split()


@dataclasses.dataclass(frozen=True)
class NextWord(leaf_data.Dataset):
    """Four clients, each of whom begins the same sentence at another word."""

    def load(self, data_dir=None, cache_dir=None):
        x, y = [], []
        for client in range(4):
            text = (np.arange(24) + 3 * client) % len(WORDS)
            x += [text[i : i + 3] for i in range(20)]
            y += [text[i + 3] for i in range(20)]
        examples = leaf_data.Examples(
            np.array(x, np.int32),
            np.array(y, np.int32),
            np.arange(0, 81, 20),
            ("ann", "bob", "cleo", "dan"),
        )
        return leaf_data.FederatedDataset(
            name="next_word",
            train_examples=examples,
            test_examples=examples.take(12),
            num_classes=len(WORDS),
            pixel_convention=NO_PIXELS,
            origin=leaf_data.Origin("a made-up sentence", (), ""),
            options={"seed": self.seed},
        )


@dataclasses.dataclass(frozen=True)
class Words(ModelSettings):
    """An embedding of each of three words, and one linear layer."""

    element_shape = (3,)
    element_dtype = "int32"
    num_ids = len(WORDS)

    def build(self):
        import tensorflow as tf

        random = np.random.default_rng(self.seed)
        sizes = [(len(WORDS), 8), (3 * 8, len(WORDS))]
        weights = [random.normal(0, 0.3, size).astype(np.float32) for size in sizes]

        @tf.function
        def predict(model_weights, x, training=True):
            (embedding, kernel), _ = model_weights
            return tf.reshape(tf.gather(embedding, x), [-1, 3 * 8]) @ kernel

        return classifier(
            weights, predict, self.element_shape, element_dtype=self.element_dtype
        )


leaf_data.register("next_word", NextWord)
MODELS.register("words", Words)
EXPERIMENTS.register(
    "next_word",
    Experiment(
        "The next word of a sentence.",
        settings={
            "dataset": "next_word",
            "model": "words",
            "rounds": 8,
            "clients_per_round": 0,
            "learning_rate": 1.0,
            "targets": (50, 90),
        },
    ),
)
