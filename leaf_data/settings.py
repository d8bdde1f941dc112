"""The names of `declared_settings`, for modules written before it was a package."""

from declared_settings import *  # noqa: F403
from declared_settings import ABOVE_0_TO_1, SEED, require_sequence
from declared_settings import __all__ as __all__

# Earlier names.
A_SEED, A_SHARE, ordered = SEED, ABOVE_0_TO_1, require_sequence
