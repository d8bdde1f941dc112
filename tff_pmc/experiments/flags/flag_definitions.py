"""The command line's flags, made of the declared settings (no TensorFlow)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags

from leaf_data.dataset import DATASETS, Dataset
from leaf_data.declare import Setting, SettingError, Settings
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.experiments.flags import flag_files
from tff_pmc.experiments.flags.command import PARTS, Command
from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.settings.papers import PAPERS
from tff_pmc.settings.run_settings import GROUPS
from tff_pmc.systems import SYSTEMS, System

EVERY_CALL, EVERY_RUN, NO_PAPER = "The command", "Every run", "Beside the papers"
"""The parts of the help that are of no paper."""


class Section(NamedTuple):
    """Flags that concern the same runs.

    Attributes:
        part: the part of the help: what all calls or runs have, or the paper whose
            experiments alone use what the flags are of.
        heading: the heading of the section in the help.
        settings: the settings of the flags; a setting is in one section only.
    """

    part: str
    heading: str
    settings: tuple[Setting, ...]


def sections() -> list[Section]:
    """Returns all flags, in sections by the runs that they concern."""
    found = [Section(EVERY_CALL, part.title, part.declared()) for part in PARTS]
    groups = GROUPS.values()
    found += [Section(EVERY_RUN, group.title, group.declared()) for group in groups]
    found += _of_registry("data set", "dataset", DATASETS, Dataset)
    found += _of_registry("model", "model", MODELS, ModelSettings)
    found += _of_registry("system", "system", SYSTEMS, System)
    _check_unique(found)
    order = [EVERY_CALL, EVERY_RUN, *PAPERS, NO_PAPER]
    found.sort(key=lambda section: order.index(section.part))
    return [
        section._replace(settings=tuple(s for s in section.settings if s.has_flag))
        for section in found
        if section.settings
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
            yield Section(EVERY_RUN, f"Every {what}", tuple(settings))
            continue
        names = owners[owner]
        plural = "s" if len(names) > 1 else ""
        used = [n for n, e in EXPERIMENTS.items() if _uses(e, flag, names)]
        experiments = f" (--experiment={', '.join(used)})" if used else ""
        heading = f"{what.capitalize()}{plural} {', '.join(names)}{experiments}"
        papers = {EXPERIMENTS[name].paper for name in used} - {""}
        part = papers.pop() if len(papers) == 1 else NO_PAPER
        yield Section(part, heading, tuple(settings))


def _uses(found: Experiment, flag: str, names: Sequence[str]) -> bool:
    rows = (*found.rows, *found.on_demand)
    protocols = found.protocols.values()
    values = [found.settings, *(row.values for row in rows), *protocols]
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
        several = declared.repeated or declared.kind is tuple
        define = flags.DEFINE_multi_string if several else flags.DEFINE_string
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


class Parsed(NamedTuple):
    """What an argument list has beside the flags' values.

    Attributes:
        rest: the arguments that are no flags.
        from_files: the flags that have their values from flag files.
    """

    rest: list[str]
    from_files: frozenset[str]


def parse(argv: Sequence[str], flag_values: flags.FlagValues = flags.FLAGS) -> Parsed:
    """Gives flags their values, those of flag files among them.

    Args:
        argv: the program's name and its arguments.
        flag_values: the flags, as `define` has defined them.

    Raises:
        SettingError: a flag file cannot be read.
        absl.flags.Error: a flag is unknown, or has a wrong value.
    """
    resolved = flag_files.resolve(argv[1:], flag_values)
    rest = flag_values([argv[0], *resolved.as_arguments()])
    return Parsed(rest[1:], frozenset(resolved.of_files))


def given(flag_values: flags.FlagValues = flags.FLAGS) -> dict[str, Any]:
    """Returns the parsed values of the flags that were given, by flag.

    A flag whose value is a list, such as `--systems=fedavg,adafed`, may be given in
    several flags as well. The value of a flag that may be repeated for several runs is
    a list with the value of each.

    Raises:
        SettingError: a value does not parse, or a flag of the command is empty.
    """
    found = {}
    for section in sections():
        for declared in section.settings:
            value = flag_values[declared.flag].value
            if value is None:
                continue
            of_command = issubclass(Command, declared.owner)
            if value == "" and of_command and declared.kind is str:
                # An unset variable behind it must not mean the default.
                raise SettingError(
                    f"--{declared.flag}= has nothing behind it: give it a value, or "
                    "leave it out"
                )
            if declared.parse is not None:
                value = _parsed(declared, value)
            found[declared.flag] = value
    return found


def _parsed(declared: Setting, value: str | list[str]) -> Any:
    if declared.repeated:
        return [_of_text(declared, text) for text in value]
    return _of_text(declared, value if isinstance(value, str) else ",".join(value))


def _of_text(declared: Setting, text: str) -> Any:
    assert declared.parse is not None
    try:
        return declared.parse(text)
    except SettingError:
        raise
    except ValueError as error:
        raise SettingError(f"--{declared.flag}={text}: {error}") from error
