"""Declared settings and registries, which `leaf_data` and `tff_pmc` are built on.

A setting is declared once, as a field of a `Settings` dataclass; its flag, its check
and its record follow. A `Registry` finds what modules register by name. The package
imports neither of the other two.
"""

from declared_settings.declaration import (
    ABOVE_0,
    ABOVE_0_TO_1,
    AT_LEAST_0,
    AT_LEAST_1,
    BELOW_1,
    FROM_0_TO_1,
    SEED,
    Declared,
    Needs,
    Range,
    Setting,
    SettingError,
    Settings,
    check_value,
    require_sequence,
    setting,
)
from declared_settings.registry import Registry, UnknownNameError, unknown_name_message

__all__ = [
    "ABOVE_0",
    "ABOVE_0_TO_1",
    "AT_LEAST_0",
    "AT_LEAST_1",
    "BELOW_1",
    "FROM_0_TO_1",
    "Declared",
    "Needs",
    "Range",
    "Registry",
    "Setting",
    "SEED",
    "SettingError",
    "Settings",
    "UnknownNameError",
    "check_value",
    "require_sequence",
    "setting",
    "unknown_name_message",
]
