"""Settings and labels read from `run.json`, from old files as from new ones.

New files have the settings in groups, `{"training": {"rounds": 20, ...}, ...}`, each
by the name of its flag. Old files have one flat mapping by the names of that time,
without those that came later, and the oldest have no label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tff_pmc import scores

_RENAMED = {
    "num_shards": "num_packs",
    "capacity": "choquet_capacity",
    "accuracy_power": "adafed_accuracy_power",
    "lambda_steps": "dual_lambda_steps",
    "alpha": "personalized_alpha",
    "beta": "momentum_beta",
    "eta": "momentum_eta",
    "epsilon": "laplace_epsilon",
    "quantization_levels": "quantized_levels",
}
"""The flags, by their old names."""

_OF_THE_SYSTEM = ("score", "aggregator", "system", "adapt_loss", "dual_lambda")
"""The old settings that now follow from the system's name."""

_OTHER_NAMES = {"dual_criterion": "dual"}
"""The systems that are not registered under the words of their titles."""


def settings_by_flag(info: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a `run.json`, old or new, by flag.

    Args:
        info: the contents of the file; without settings, as the published code's runs,
            there are none.
    """
    settings = info.get("settings", {})
    if not any(isinstance(value, Mapping) for value in settings.values()):
        return _translated(settings)
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found.update(value if isinstance(value, Mapping) else {name: value})
    return found


def system_and_note(info: Mapping[str, Any], label: str) -> tuple[str, str]:
    """Returns the title of a run's system, and the rest of its label.

    Args:
        info: the contents of `run.json`, old or new.
        label: the label of the run; it is the title where the file names no system.
    """
    old = info.get("settings", {}).get("system")
    title = info.get("system") or (old if isinstance(old, str) and old else label)
    if "note" in info:
        return title, info["note"]
    return title, label[len(title) :].lstrip(", ") if label.startswith(title) else ""


def score_label(settings: Mapping[str, Any]) -> str:
    """Returns the label of a run whose `run.json` is too old to have one.

    Args:
        settings: the settings, as `settings_by_flag` gives them.
    """
    name, members = settings["system"], settings["priority"]
    criteria = settings.get("criteria", members)
    if len(members) == 1 or name == "prioritized":
        return ",".join(members)
    if name == "weighted_average":
        weights = settings["average_weights"]
        return scores.weighted_average(weights, criteria, members=members).label
    if name == "owa":
        weights = settings.get("owa_quantifier") or settings["owa_weights"]
        return scores.owa(weights, criteria, members=members).label
    if name == "product":
        return scores.product(criteria, members=members).label
    if name == "choquet":
        value = {tuple(s.split("+")): v for s, v in settings["choquet_capacity"]}
        return scores.choquet(value, criteria).label
    return str(name)


def _translated(old: Mapping[str, Any]) -> dict[str, Any]:
    if not old:
        return {}
    names = dict(_RENAMED)
    if old.get("dataset") == "mnist_adafed":
        names["num_clients"] = "adafed_clients"
    system = _system(old)
    if system == "weighted_average":
        names["score_weights"] = "average_weights"
    if system == "owa":
        names.update(score_weights="owa_weights", quantifier="owa_quantifier")
    found = {
        names.get(name, name): value
        for name, value in old.items()
        if name not in _OF_THE_SYSTEM
    }
    if "criteria_ranges" in old:
        ranges = zip(old.get("criteria", ()), old["criteria_ranges"])
        found["criteria_ranges"] = [[code, *bounds] for code, bounds in ranges]
    return {**found, "system": system}


def _system(old: Mapping[str, Any]) -> str:
    """Returns the name under which the system is registered now."""
    if old.get("system"):
        title = re.sub(r"[^a-z0-9]+", "_", old["system"].lower())
        return _OTHER_NAMES.get(title, title)
    return str(old.get("score", "prioritized"))
