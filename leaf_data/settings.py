"""The settings of `leaf_data.declare`, by the path that the documents name."""

from leaf_data.declare import (
    A_SEED,
    A_SHARE,
    ABOVE_0,
    AT_LEAST_0,
    AT_LEAST_1,
    BELOW_1,
    FROM_0_TO_1,
    Range,
    Setting,
    SettingError,
    Settings,
    setting,
)

__all__ = [
    "ABOVE_0",
    "AT_LEAST_0",
    "AT_LEAST_1",
    "A_SEED",
    "A_SHARE",
    "BELOW_1",
    "FROM_0_TO_1",
    "Range",
    "Setting",
    "SettingError",
    "Settings",
    "setting",
]
