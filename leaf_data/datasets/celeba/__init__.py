"""CelebA, read from its own files, LEAF's or TFF's; registers itself on import."""

from leaf_data.datasets.celeba import celeba  # noqa: F401
