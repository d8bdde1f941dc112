"""Modules that are imported when they are first used.

TensorFlow takes seconds to import; the vocabulary (criteria's codes, flags,
errors) must be there at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["LazyModule", "tf", "tff"]


class LazyModule:
    """Stands for a module until one of its attributes is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Whoever only looks the object over, as pytest does, imports nothing.
        if attribute.startswith("__") and attribute not in ("__file__", "__version__"):
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


if TYPE_CHECKING:
    import tensorflow as tf
    import tensorflow_federated as tff
else:
    tf = LazyModule("tensorflow")
    tff = LazyModule("tensorflow_federated")
