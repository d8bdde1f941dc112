"""The settings of a run, in groups; each setting is declared once, in its group."""

from declared_settings import SettingError, Settings, setting
from tff_pmc.settings.adjustment_settings import AdjustmentSettings
from tff_pmc.settings.aggregation_settings import AggregationSettings
from tff_pmc.settings.record_settings import RecordSettings
from tff_pmc.settings.run_settings import RunSettings
from tff_pmc.settings.training_settings import TrainingSettings

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
