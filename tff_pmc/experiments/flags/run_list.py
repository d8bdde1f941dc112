"""The parts that lists of runs share, of orderings and of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leaf_data.declare import SettingError
from tff_pmc.experiments.experiment import Experiment
from tff_pmc.settings import RunSettings
from tff_pmc.systems import SYSTEMS


def check_seeds(found: Experiment, runs: Sequence[RunSettings]) -> None:
    """Refuses runs under several seeds without the one they are held against.

    Raises:
        SettingError: the baseline is not among the runs.
    """
    names = [run.system.name if found.compares_systems else run.label for run in runs]
    if found.baseline not in names:
        flag = "--systems" if found.compares_systems else "--priority"
        raise SettingError(
            f"--seeds holds every run against {found.baseline}: name "
            f"{plain(found.baseline) if found.compares_systems else found.baseline} "
            f"in {flag}, too"
        )


def system_named(word: str) -> str:
    """The name of a system, from its name or from what tables call it."""
    by_plain = {plain(system.name): name for name, system in SYSTEMS.items()}
    name = by_plain.get(plain(word), plain(word))
    try:
        SYSTEMS[name]
    except ValueError as error:
        raise SettingError(f"--systems={word}: {error}") from error
    return name


def settings_of(
    runs: Sequence[Mapping[str, Any]], start: Mapping[str, Any]
) -> list[RunSettings]:
    """The settings of runs, each with the flags of its own system.

    A flag of a system that none of the runs has is refused.
    """
    of_systems = {flag for system in SYSTEMS.values() for flag in system.flags()}
    used: set[str] = set()
    settings = []
    for values in runs:
        own = SYSTEMS[values.get("system", start["system"])].flags()
        used.update(own)
        kept = {
            flag: value
            for flag, value in values.items()
            if flag not in of_systems or flag in own
        }
        settings.append(RunSettings.of(kept, inherited=start))
    for flag in runs[0] if runs else ():
        if flag in of_systems - used:
            names = ", ".join(dict.fromkeys(run.names["system"] for run in settings))
            raise SettingError(f"--{flag} is of no use with the system {names}")
    return settings


def plain(name: str) -> str:
    """`AdaFed, weights only` as a flag has it: `adafed_weights_only`."""
    words = name.lower().replace(",", " ").replace("_", " ").replace("-", " ").split()
    return "_".join(words)
