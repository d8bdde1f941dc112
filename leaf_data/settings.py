"""The names of `declared_settings`, for modules written before it was a package."""

from declared_settings import *  # noqa: F403
from declared_settings import ABOVE_0_TO_1, SEED
from declared_settings import __all__ as __all__

A_SEED, A_SHARE = SEED, ABOVE_0_TO_1  # Earlier names.
