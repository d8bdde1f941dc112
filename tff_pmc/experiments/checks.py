"""Checks of a run's settings, each by itself; an error names the flag."""

from __future__ import annotations

import math
from typing import Any, Callable

from tff_pmc import criteria as criteria_lib
from tff_pmc import models, search
from tff_pmc.experiments.choices import CHOICES, RESERVED, SEEDS


class ConfigError(ValueError):
    """A setting that cannot be run; the message names the flag."""


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _is_cohort(size: float) -> bool:
    return 0 <= size < 1 or (1 <= size < math.inf and size % 1 == 0)


def _is_power_of_two(value: int) -> bool:
    return 2 <= value <= 65536 and value & (value - 1) == 0


_Range = tuple[Callable[[Any], bool], str]
_AT_LEAST_1: _Range = (lambda n: n >= 1, "at least 1")
_AT_LEAST_0: _Range = (lambda n: n >= 0, "0 or more")
_POSITIVE: _Range = (_is_positive, "above 0")
_A_SHARE: _Range = (lambda x: 0 < x <= 1, "above 0, at most 1")
_BELOW_1: _Range = (lambda x: 0 <= x < 1, "at least 0, below 1")

RANGES: dict[str, _Range] = {
    **dict.fromkeys(("rounds", "local_epochs", "num_shards"), _AT_LEAST_1),
    **dict.fromkeys(("batch_size", "min_samples", "num_clients"), _AT_LEAST_0),
    "clip_norm": (lambda x: 0 <= x < math.inf, "0 (no clipping) or more"),
    **dict.fromkeys(("learning_rate", "server_learning_rate"), _POSITIVE),
    **dict.fromkeys(("accuracy_power", "eta", "epsilon"), _POSITIVE),
    **dict.fromkeys(("alpha", "sample_fraction", "image_fraction"), _A_SHARE),
    **dict.fromkeys(("beta", "dropout"), _BELOW_1),
    **dict.fromkeys(SEEDS, (lambda n: 0 <= n < 2**31, "in [0, 2^31)")),
    "quantization_levels": (_is_power_of_two, "a power of two, 2 to 65536"),
    "lambda_steps": (lambda n: 2 <= n <= 101, "2 to 101"),
    "validation_fraction": (lambda x: 0 < x < 1, "between 0 and 1"),
    "clients_per_round": (
        _is_cohort,
        "a number of clients, a fraction between 0 and 1, or 0 for all",
    ),
}
"""For each setting that is a number, what holds of it, and that in words."""


def check_ranges(config: Any) -> None:
    """Raises a `ConfigError` for a number out of range."""
    for name, (holds, words) in RANGES.items():
        value = getattr(config, name)
        if not holds(value):
            raise ConfigError(f"--{name} must be {words}, got {value}")


def check_words(config: Any) -> None:
    """Raises a `ConfigError` for a word that is none of a setting's choices."""
    if config.normalization == "range" and not config.criteria_ranges:
        raise ConfigError("--normalization=range needs --criteria_ranges")
    taken = {*criteria_lib.REGISTRY, *criteria_lib.ALIASES, *RESERVED}
    for name in config.client_attributes:
        if name in taken or not name.isidentifier():
            raise ConfigError(
                f"--client_table: an attribute cannot be called {name!r}: it must "
                "be a word, and no criterion's code or column of the record"
            )
    for name, choices in CHOICES.items():
        try:
            models.check_choice(f"--{name}", getattr(config, name), choices)
        except ValueError as error:
            raise ConfigError(str(error)) from error


def check_adjustment(config: Any) -> None:
    """Raises a `ConfigError` for a search that the score or its size does not allow."""
    if config.adjustment == "fixed":
        return
    if len(config.priority) > search.MAX_CRITERIA:
        raise ConfigError(
            f"--adjustment={config.adjustment} searches the orderings of at most "
            f"{search.MAX_CRITERIA} criteria, got {len(config.priority)}"
        )
    if config.score not in ("prioritized", "dual"):
        raise ConfigError(
            f"--adjustment={config.adjustment} searches orderings, which "
            f"--score={config.score} does not have"
        )
