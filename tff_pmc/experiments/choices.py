"""The words that settings choose from, and the settings of each data set."""

from __future__ import annotations

from tff_pmc import models, scores, search

JUDGES = ("test", "local_validation", "server")
"""On what candidates are judged: examples of the clients, or the server's own."""

AGGREGATORS = (
    "criteria",
    *("simple_average", "weighted_mean", "median", "momentum"),
    *("personalized", "laplace", "quantized"),
)
"""Sums weighted by criteria, or one of Dual's baselines."""

UNWEIGHTED = ("simple_average", "median")
"""The baselines to which all clients count alike; the others weigh by their sizes."""

SEEDS = ("partition_seed", "model_seed", "cohort_seed", "batch_seed")
"""The seeds of a run."""

CHOICES: dict[str, tuple[str, ...]] = {
    "score": (*scores.SCORES, "dual"),
    "conv_activation": models.CONV_ACTIVATIONS,
    "initializer": models.INITIALIZERS,
    "model": tuple(models.MODELS),
    "batch_norm": models.BATCH_NORMS,
    "model_divergence": ("whole", "by_layer"),
    "adjustment": search.POLICIES,
    "judge_on": JUDGES,
    "reach": ("at_least", "above"),
    "cohort_rounding": ("up", "nearest"),
    "femnist_source": ("leaf", "tff"),
    "celeba_source": ("raw", "leaf", "tff"),
    "client_rule": ("paper", "reference_code"),
    "missing_images": ("skip", "refuse"),
    "protocol": ("paper", "reference_code"),
    "aggregator": AGGREGATORS,
    "client_optimizer": ("sgd", "adam"),
    "personalized_form": ("formula", "text"),
    "server_set": ("reported", "apart"),
}
"""The settings that are one word of a few."""

RESERVED = ("all", "round", "client", "weight", "excluded")
"""What an attribute cannot be called: a flag's word, or a column of the record."""

_PARTITIONED = {"partition": "partition", "seed": "partition_seed"}
DATA_OPTIONS: dict[str, dict[str, str]] = {
    "digits5k": _PARTITIONED,
    "mnist": _PARTITIONED,
    "femnist": {
        "source": "femnist_source",
        "sample_fraction": "sample_fraction",
        "min_samples": "min_samples",
        "seed": "partition_seed",
    },
    "celeba": {
        "source": "celeba_source",
        "client_rule": "client_rule",
        "missing_images": "missing_images",
        "seed": "partition_seed",
    },
    "drawn_faces": {"client_rule": "client_rule", "seed": "partition_seed"},
    "mnist_adafed": {
        "simulation": "simulation",
        "num_clients": "num_clients",
        "mislabeled_fraction": "mislabeled_fraction",
        "num_adversaries": "num_adversaries",
        "images_per_client": "images_per_client",
        "server_set": "server_set",
        "seed": "partition_seed",
    },
    "cifar10": {
        "num_clients": "num_clients",
        "image_fraction": "image_fraction",
        "seed": "partition_seed",
    },
    "obstacles": {"seed": "partition_seed"},
    "drawn_obstacles": {"seed": "partition_seed"},
}
"""For each data set, its loader's options and the settings that fill them."""


DROPOUT_MODELS = ("celeba_reference_cnn", "keras_mnist_cnn")
"""The models that drop units."""

CACHED = ("femnist", "celeba", "cifar10", "obstacles")
"""The data sets that are converted once, into a cache."""
