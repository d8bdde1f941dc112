"""FEMNIST, read from LEAF's files or TFF's database; registers itself on import."""

from leaf_data.datasets.femnist import femnist  # noqa: F401
