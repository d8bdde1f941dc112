"""The command line's flags, made of the declared settings, and their values."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import flags

from leaf_data.dataset import DATASETS, Dataset
from leaf_data.settings import Setting, SettingError, Settings
from tff_pmc import project_files
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.experiments.flags.command import PARTS
from tff_pmc.models import MODELS, ModelSettings
from tff_pmc.selections import SELECTIONS, Selection
from tff_pmc.settings.flag_values import naming
from tff_pmc.settings.papers import PAPERS
from tff_pmc.settings.run_settings import GROUPS
from tff_pmc.systems import SYSTEMS, System

EVERY_CALL, EVERY_RUN, NO_PAPER = "The command", "Every run", "Beside the papers"
"""The parts of the help that are of no paper."""

_DEEPEST = 16  # Flag files within flag files.


class Section(NamedTuple):
    """Flags that concern the same runs; a setting is in one section only.

    Its part of the help is what all calls or runs have, or the paper whose experiments
    alone use what the flags are of.
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
    found += _of_registry("selection", "selection", SELECTIONS, Selection)
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
    yield Section(EVERY_RUN, f"Every {what}", base.declared())
    by_owner: dict[type, tuple[list[str], dict[str, Setting]]] = {}
    # By name: which module was imported first must not change the help.
    for name, group in sorted(registry.items()):
        for declared in group.declared():
            names, settings = by_owner.setdefault(declared.owner, ([], {}))
            settings.setdefault(declared.flag, declared)
            if name not in names:
                names.append(name)
    by_owner.pop(base, None)
    for names, settings in by_owner.values():
        plural = "s" if len(names) > 1 else ""
        used = [n for n, e in EXPERIMENTS.items() if _uses(e, flag, names)]
        experiments = f" (--experiment={', '.join(used)})" if used else ""
        heading = f"{what.capitalize()}{plural} {', '.join(names)}{experiments}"
        papers = {EXPERIMENTS[name].paper for name in used} - {""}
        part = papers.pop() if len(papers) == 1 else NO_PAPER
        yield Section(part, heading, tuple(settings.values()))


def _uses(found: Experiment, flag: str, names: Sequence[str]) -> bool:
    rows = (*found.rows, *found.on_demand)
    protocols = found.protocols.values()
    values = [found.settings, *(row.values for row in rows), *protocols]
    return any(value.get(flag) in names for value in values)


class Given(NamedTuple):
    """The flags that were given."""

    values: dict[str, Any]  # By flag; of one for several runs the list of the runs'.
    from_files: frozenset[str]  # The flags that have their values from flag files.


def parse(arguments: Sequence[str], settings: Iterable[Setting] | None = None) -> Given:
    """The values of the flags that arguments give, those of flag files among them.

    A flag has its value from one place, with all that this place says of it. The
    command line comes before every file, wherever `--flagfile` stands; a file comes
    before the files that it names; and of two files named in one place the later one
    comes before the other. A list may be given in several flags of one place.

    With `settings` the flags of these are looked for, whatever others there are.
    Without, others are refused.
    """
    known_only = settings is not None
    if settings is None:
        settings = [one for section in sections() for one in section.settings]
    from_files, own = _parse(arguments, list(settings), known_only, ())
    return Given({**from_files, **own}, frozenset(from_files) - frozenset(own))


def _parse(
    arguments: Sequence[str],
    settings: Sequence[Setting],
    known_only: bool,
    within: tuple[str, ...],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values that the files named among arguments give, and the arguments' own."""
    from_files: dict[str, Any] = {}
    words: list[str] = []
    rest = iter(arguments)
    for word in rest:
        name, is_whole, file = word.partition("=")
        if word == "--":
            words += [word, *rest]
        elif name not in ("-flagfile", "--flagfile"):
            words.append(word)
        else:
            path = _flag_file((file if is_whole else next(rest, "")).strip())
            lines = _lines(path, within)
            inner = _parse(lines, settings, known_only, (*within, path))
            from_files.update({**inner[0], **inner[1]})
    values = flags.FlagValues()
    values.set_gnu_getopt(True)  # Flags may stand behind what is none.
    for declared in settings:
        _define(declared, values)
    stray = values(["", *words], known_only=known_only)[1:]
    if stray and not known_only:
        raise SettingError(f"unexpected argument: {stray[0]}")
    given = {one.flag: values[one.flag].value for one in settings}
    own = {
        one.flag: _value(one, given[one.flag])
        for one in settings
        if given[one.flag] is not None
    }
    return from_files, own


def _flag_file(name: str) -> str:
    """The path of a flag file: of the user's first, then of the project's own."""
    if not name:
        raise SettingError("--flagfile= has nothing behind it: name a flag file")
    path = os.path.expanduser(name)
    known = project_files.FLAG_FILES
    ours = project_files.folder(known) / os.path.basename(name)
    if os.path.exists(path) or os.path.dirname(name) not in ("", known):
        return path
    return str(ours) if ours.is_file() else path


def _lines(path: str, within: tuple[str, ...]) -> list[str]:
    """The lines of a flag file that are neither empty nor comments."""
    if path in within or len(within) == _DEEPEST:
        raise SettingError(
            f"--flagfile={path}: the file is named within itself, or too deep in others"
        )
    try:
        text = pathlib.Path(path).read_text("utf-8")
    except FileNotFoundError as error:
        ours = project_files.folder(project_files.FLAG_FILES).glob("*.flags")
        names = ", ".join(sorted(path.name for path in ours)) or "not there"
        raise SettingError(
            f"--flagfile={path}: {error.strerror}; the files that come with the "
            f"project are {names}"
        ) from error
    except OSError as error:
        raise SettingError(f"--flagfile={path}: {error.strerror}") from error
    except ValueError as error:
        raise SettingError(f"--flagfile={path}: it is no text in UTF-8") from error
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "//"))]


def _define(declared: Setting, flag_values: flags.FlagValues) -> None:
    """Defines a flag; without a value given it is None."""
    kinds = {bool: flags.DEFINE_bool, int: flags.DEFINE_integer}
    kinds.update({float: flags.DEFINE_float, str: flags.DEFINE_string})
    several = declared.repeated or declared.kind is tuple
    define = flags.DEFINE_multi_string if several else kinds[declared.kind]
    define(declared.flag, None, declared.words, flag_values=flag_values)


def _value(declared: Setting, value: Any) -> Any:
    if value == "" and (declared.choices or declared.owner in PARTS):
        # An unset variable behind it must not mean the default.
        raise SettingError(
            f"--{declared.flag}= has nothing behind it: give it a value, or leave it "
            "out"
        )
    if declared.parse is None:
        if declared.choices:
            for one in value if declared.repeated else [value]:
                declared.check(one)
        return value
    if declared.repeated:
        texts = [text for several in value for text in several.split(";")]
        return [_of_text(declared, text) for text in texts]
    return _of_text(declared, value if isinstance(value, str) else ",".join(value))


def _of_text(declared: Setting, text: str) -> Any:
    assert declared.parse is not None
    return naming(f"--{declared.flag}={text}", declared.parse, text)
