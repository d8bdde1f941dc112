"""The settings of a run, in groups; each setting is declared once, in its group."""

from declared_settings import SettingError, Settings, setting
from tff_pmc.settings.aggregation_settings import AggregationSettings
from tff_pmc.settings.groups import (
    AdjustmentSettings,
    RecordSettings,
    TrainingSettings,
)
from tff_pmc.settings.run_settings import RunSettings

__all__ = [
    "AdjustmentSettings",
    "AggregationSettings",
    "RecordSettings",
    "RunSettings",
    "SettingError",
    "Settings",
    "TrainingSettings",
    "setting",
]
