"""The command line's flags, made of the declared settings (no TensorFlow)."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags

from leaf_data.dataset import Dataset
from leaf_data.registry import DATASETS
from leaf_data.settings import Setting, SettingError, Settings
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.flags.command import Command
from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.settings.run_settings import GROUPS
from tff_pmc.systems import SYSTEMS, System


class Section(NamedTuple):
    """Flags that concern the same runs.

    Attributes:
        heading: the heading of the section in the help.
        settings: the settings of the flags; a setting is in one section only.
    """

    heading: str
    settings: tuple[Setting, ...]


def import_plugins(arguments: Sequence[str]) -> None:
    """Imports the modules that `--plugin` names, so that their flags exist.

    Args:
        arguments: those of the command line; the flag may stand in a `--flagfile`, too.

    Raises:
        SettingError: one cannot be imported.
        absl.flags.Error: a flag file cannot be read.
    """
    arguments = flags.FlagValues().read_flags_from_files(list(arguments))
    for place, argument in enumerate(arguments):
        name, separator, value = argument.lstrip("-").partition("=")
        if not argument.startswith("-") or name != "plugin":
            continue
        if not separator:
            value = "".join(arguments[place + 1 : place + 2])
        for module in filter(None, value.split(",")):
            if os.getcwd() not in sys.path:
                sys.path.insert(0, os.getcwd())
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise SettingError(f"--plugin={module}: {error}") from error


def sections() -> list[Section]:
    """Returns all flags, in sections by the runs that they concern."""
    groups: list[type[Settings]] = [Command, *GROUPS.values()]
    found = [Section(group.title, group.declared()) for group in groups]
    found += _of_registry("data set", "dataset", DATASETS, Dataset)
    found += _of_registry("model", "model", MODELS, ModelSettings)
    found += _of_registry("system", "system", SYSTEMS, System)
    _check_unique(found)
    return [
        Section(heading, tuple(s for s in settings if s.has_flag))
        for heading, settings in found
        if settings
    ]


def _check_unique(found: Sequence[Section]) -> None:
    """Raises a `SettingError` that names a flag which two classes declare."""
    owners: dict[str, type] = {}
    for declared in (s for section in found for s in section.settings):
        owner = owners.setdefault(declared.flag, declared.owner)
        # A run's data set and model are named by the command.
        if owner is not declared.owner:
            raise SettingError(
                f"--{declared.flag} is declared by {owner.__name__} and by "
                f"{declared.owner.__name__}"
            )


def _of_registry(
    what: str, flag: str, registry: Mapping[str, type[Settings]], base: type[Settings]
) -> Iterable[Section]:
    """Builds a section for every class in which registered things declare settings."""
    owners: dict[type, list[str]] = {base: []}
    by_owner: dict[type, list[Setting]] = {base: list(base.declared())}
    # By name: which module was imported first must not change the help.
    for name, group in sorted(registry.items()):
        for declared in group.declared():
            owner = declared.owner
            names = owners.setdefault(owner, [])
            if name not in names:
                names.append(name)
            if declared.flag not in (s.flag for s in by_owner.setdefault(owner, [])):
                by_owner[owner].append(declared)
    for owner, settings in by_owner.items():
        if owner is base:
            yield Section(f"Every {what}", tuple(settings))
            continue
        names = owners[owner]
        plural = "s" if len(names) > 1 else ""
        used = [n for n, e in EXPERIMENTS.items() if _uses(e, flag, names)]
        experiments = f" (--experiment={', '.join(used)})" if used else ""
        heading = f"{what.capitalize()}{plural} {', '.join(names)}{experiments}"
        yield Section(heading, tuple(settings))


def _uses(found: Any, flag: str, names: Sequence[str]) -> bool:
    values = [found.settings, *(row.values for row in (*found.rows, *found.on_demand))]
    return any(value.get(flag) in names for value in values)


def define(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines a flag for every setting; without a value given it is None.

    Raises:
        SettingError: there is a flag of that name already.
    """
    for section in sections():
        for declared in section.settings:
            if declared.flag in flag_values:
                raise SettingError(
                    f"--{declared.flag}, which {declared.owner.__name__} declares, is "
                    "a flag of absl's"
                )
            _define(declared, flag_values)


def _define(declared: Setting, flag_values: flags.FlagValues) -> None:
    name, words, options = declared.flag, declared.words, {"flag_values": flag_values}
    if declared.parse is not None or (declared.kind is str and not declared.choices):
        define = flags.DEFINE_multi_string if declared.repeated else flags.DEFINE_string
        define(name, None, words, **options)
    elif declared.choices:
        choices = [choice for choice in declared.choices if choice]
        multi = flags.DEFINE_multi_enum if declared.repeated else flags.DEFINE_enum
        multi(name, None, choices, words, **options)
    elif declared.kind is bool:
        flags.DEFINE_bool(name, None, words, **options)
    elif declared.kind is int:
        flags.DEFINE_integer(name, None, words, **options)
    else:
        flags.DEFINE_float(name, None, words, **options)


def given(flag_values: flags.FlagValues = flags.FLAGS) -> dict[str, Any]:
    """Returns the parsed values of the flags that were given, by flag.

    The value of a flag that may be repeated is a list.

    Raises:
        SettingError: a value does not parse, or a flag of the command is empty.
    """
    found = {}
    for section in sections():
        for declared in section.settings:
            value = flag_values[declared.flag].value
            if value is None:
                continue
            if value == "" and declared.owner is Command and not declared.parse:
                # An unset variable behind it must not mean the default.
                raise SettingError(
                    f"--{declared.flag}= has nothing behind it: give it a value, or "
                    "leave it out"
                )
            if declared.parse is not None:
                texts = value if declared.repeated else [value]
                values = [_parsed(declared, text) for text in texts]
                value = values if declared.repeated else values[0]
            found[declared.flag] = value
    return found


def _parsed(declared: Setting, text: str) -> Any:
    assert declared.parse is not None
    try:
        return declared.parse(text)
    except ValueError as error:
        raise SettingError(f"--{declared.flag}={text}: {error}") from error
