"""The settings of the criteria that clients measure, and of their aggregation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from declared_settings import (
    ABOVE_0,
    Range,
    SettingError,
    Settings,
    require_sequence,
    setting,
)
from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc.scores.weights import METHODS
from tff_pmc.settings import flag_values
from tff_pmc.settings.flag_values import call_naming_flag


@dataclasses.dataclass(frozen=True)
class SumSettings(Settings):
    """The sums over a round's clients: flags of the command, and `tff_pmc.SumOptions`.

    Each field is a flag and an option; see `LocalTraining`.
    """

    normalization: str = setting(
        "sum",
        "How criteria are normalized: by their sum over the cohort (papers), their "
        "maximum, or a declared range.",
        choices=METHODS,
    )
    criteria_ranges: tuple[tuple[str, float, float], ...] = setting(
        (),
        "For --normalization=range: CODE=LOW:HIGH for each criterion, comma-separated.",
        parse=flag_values.parse_ranges,
    )
    clip_norm: float = setting(
        0.0,
        "The L2 norm to which clients clip their updates; 0 does not clip.",
        within=Range(lambda x: 0 <= x < math.inf, "0 (no clipping) or more, finite"),
    )
    max_update_norm: float = setting(
        1e6,
        "The L2 norm above which a client's update is invalid and the client is "
        "excluded.",
        within=ABOVE_0,
    )

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """(low, high) by code."""
        ranges: Any = self.criteria_ranges or ()  # In Python also a mapping, or None.
        if isinstance(ranges, Mapping):
            return dict(ranges)
        return {code: (low, high) for code, low, high in ranges}


@dataclasses.dataclass(frozen=True)
class AggregationSettings(SumSettings):
    """The criteria that clients measure, and how they enter the aggregation."""

    title: ClassVar[str] = "Criteria and aggregation, of every run"

    criteria: tuple[str, ...] = setting(
        ("DS", "LD", "MD"),
        "The criteria that the clients measure, as DS,LD,MD, or powers, as DS^0.5. A "
        "client whose power is not finite is excluded.",
        parse=flag_values.parse_codes,
    )
    priority: tuple[str, ...] = setting(
        ("DS",),
        "An ordering of criteria, most important first, or several, as 'DS;LD,DS,MD'. "
        "Each is one run; all is each criterion alone and every ordering. DS is "
        "federated averaging. For algorithms without priorities, the criteria that "
        "they combine.",
        parse=flag_values.parse_codes,
        repeated=True,
    )
    model_divergence: str = setting(
        "whole",
        "MD of the whole model (the papers), or the mean over its kernels (the "
        "published code).",
        choices=("whole", "by_layer"),
    )
    client_attributes: tuple[str, ...] = setting(
        (), "The attributes in --client_table.", has_flag=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("criteria", "priority", "client_attributes"):
            require_sequence(f"--{name}", getattr(self, name))
        if self.normalization == "range" and not self.criteria_ranges:
            raise SettingError("--normalization=range needs --criteria_ranges")
        for name in self.client_attributes:
            call_naming_flag("--client_table", criteria_lib.check_attribute_name, name)
        for flag in ("criteria", "priority"):
            codes = getattr(self, flag)
            text = f"--{flag}={','.join(codes)}"
            for code in codes:
                if code.partition("^")[0] in criteria_lib.RESERVED:
                    call_naming_flag(text, criteria_lib.check_code, code)
                call_naming_flag(text, self._criterion, code)
        call_naming_flag("--criteria", self.resolve_criteria)
        call_naming_flag("--priority", scores.prioritized, self.priority, self.criteria)
        call_naming_flag("--criteria_ranges", lambda: self.scores_normalization)

    def resolve_criteria(self) -> tuple[criteria_lib.Criterion, ...]:
        """Resolves the criteria, including those that are attributes of clients."""
        return criteria_lib.resolve([self._criterion(code) for code in self.criteria])

    def _criterion(self, code: str) -> criteria_lib.Criterion:
        base = code.partition("^")[0]
        if base in self.client_attributes:
            criterion = criteria_lib.attribute(base)
        else:
            criterion = criteria_lib.REGISTRY[criteria_lib.canonical(base)]
        if criterion.code == "MD" and self.model_divergence == "by_layer":
            criterion = dataclasses.replace(
                criteria_lib.REGISTRY["MD_layers"], code="MD"
            )
        return criteria_lib.named(code, criterion)

    @property
    def scores_normalization(self) -> scores.Normalization:
        """The normalization of scores; a `ValueError` if a criterion has no range."""
        return scores.Normalization.from_codes(
            self.normalization, self.criteria, self.ranges
        )
