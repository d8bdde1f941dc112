"""The names of `declared_settings`, for modules written before it was a package."""

from declared_settings import *  # noqa: F403
from declared_settings import __all__ as __all__
