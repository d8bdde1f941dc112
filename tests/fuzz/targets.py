"""All readers that are fuzzed, by name: import `TARGETS` from here."""

from __future__ import annotations

# Each registers its targets when it is imported; a module more is a line more.
import client_targets  # noqa: F401
import file_targets  # noqa: F401
import run_folder_targets  # noqa: F401
import text_targets  # noqa: F401
from fuzzing import TARGETS

__all__ = ["TARGETS"]
