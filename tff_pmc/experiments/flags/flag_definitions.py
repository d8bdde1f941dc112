"""The command line's flags, built from the declared settings, and their values."""

from __future__ import annotations

import collections
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from absl import flags

from declared_settings import Setting, SettingError, Settings
from leaf_data.dataset import Dataset
from leaf_data.formats import data_files
from tff_pmc import project_files
from tff_pmc.algorithms import Algorithm
from tff_pmc.experiments.callbacks import CALLBACKS
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.experiments.flags.command import PARTS
from tff_pmc.models import ModelSettings
from tff_pmc.reports.paper import PAPERS
from tff_pmc.selections import Selection
from tff_pmc.settings.flag_values import call_naming_flag, check_digits
from tff_pmc.settings.run_settings import COMPONENTS, GROUPS

EVERY_CALL, EVERY_RUN, NO_PAPER = "The command", "Every run", "Beyond the papers"
"""The parts of the help that do not belong to a paper."""

_COMPONENT_KINDS: dict[str, tuple[str, type[Settings]]] = {
    "dataset": ("data set", Dataset),
    "model": ("model", ModelSettings),
    "algorithm": ("algorithm", Algorithm),
    "selection": ("selection", Selection),
}
"""The words and base classes of what flags choose by name."""


# What a line of a flag file has behind a value, or alone: a comment, or the sign by
# which a shell joins lines.
_COMMENT = re.compile(r"(^|\s+)((#|//).*|\\)$")
_FLAG = re.compile(r"(?P<name>--?\w+)(?:(?P<mark>\s*=\s*|\s+)(?P<value>.*))?")
_FLAG_FILE = ("--flagfile", "-flagfile")
_ANOTHER_FLAG = re.compile(r"\s(--?[A-Za-z]\w*)(?=\s|=|$)")


class Section(NamedTuple):
    """Flags that concern the same runs; a setting is in one section only.

    `part` is the part of the help: the command, every run, or the only paper whose
    experiments use these flags.
    """

    part: str
    heading: str
    settings: tuple[Setting, ...]


class _IntegerParser(flags.IntegerParser):  # type: ignore[misc]
    """absl's parser, without numbers that only Python reads, such as `1_0`."""

    def convert(self, argument: str) -> Any:
        return super().convert(check_digits(argument))


class _FloatParser(flags.FloatParser):  # type: ignore[misc]
    """As `_IntegerParser`, for floating-point numbers."""

    def convert(self, argument: str) -> Any:
        return super().convert(check_digits(argument))


def sections() -> list[Section]:
    """Returns all flags, in sections by the runs that they concern.

    Raises:
        SettingError: two classes declare the same flag.
    """
    result = [Section(EVERY_CALL, part.title, part.declared()) for part in PARTS]
    result += [
        Section(EVERY_CALL, f"Callback {name} (--callbacks={name})", kind.declared())
        for name, kind in sorted(CALLBACKS.items())
    ]
    groups = GROUPS.values()
    result += [Section(EVERY_RUN, group.title, group.declared()) for group in groups]
    described: set[type] = set()  # A data set and a model may share a setting.
    for flag in _COMPONENT_KINDS:
        result += _component_sections(flag, described)
    owners: dict[str, type] = {}
    for declared in (setting for section in result for setting in section.settings):
        owner = owners.setdefault(declared.flag, declared.owner)
        if owner is not declared.owner:
            raise SettingError(
                f"--{declared.flag} is declared by {owner.__name__} and by "
                f"{declared.owner.__name__}"
            )
    order = [EVERY_CALL, EVERY_RUN, *PAPERS, NO_PAPER]
    result.sort(key=lambda section: order.index(section.part))
    return [
        section._replace(settings=tuple(s for s in section.settings if s.has_flag))
        for section in result
        if section.settings
    ]


def _component_sections(flag: str, described: set[type]) -> Iterator[Section]:
    """Builds a section for each class that declares settings of components.

    Classes in `described` have a section; those of the new ones are added.
    """
    what, base = _COMPONENT_KINDS[flag]
    yield Section(EVERY_RUN, f"Every {what}", base.declared())
    by_owner: dict[type, tuple[list[str], dict[str, Setting]]] = {}
    # Sorted by name, so that the order of imports does not change the help.
    for name, kind in sorted(COMPONENTS[flag].items()):
        for declared in kind.declared():
            names, settings = by_owner.setdefault(declared.owner, ([], {}))
            settings.setdefault(declared.flag, declared)
            if name not in names:
                names.append(name)
    by_owner.pop(base, None)
    by_owner = {owner: by_owner[owner] for owner in by_owner if owner not in described}
    described.update(by_owner)
    for names, settings in by_owner.values():
        plural = "s" if len(names) > 1 else ""
        used = [name for name, e in EXPERIMENTS.items() if _uses(e, flag, names)]
        experiments = f" (--experiment={', '.join(used)})" if used else ""
        heading = f"{what.capitalize()}{plural} {', '.join(names)}{experiments}"
        papers = {EXPERIMENTS[name].paper for name in used} - {""}
        part = papers.pop() if len(papers) == 1 else NO_PAPER
        yield Section(part, heading, tuple(settings.values()))


def _uses(experiment: Experiment, flag: str, names: Sequence[str]) -> bool:
    rows = (row.values for row in (*experiment.rows, *experiment.on_demand))
    values = (experiment.settings, *rows, *experiment.protocols.values())
    return any(value.get(flag) in names for value in values)


def parse(
    arguments: Sequence[str], settings: Iterable[Setting] | None = None
) -> dict[str, Any]:
    """Returns the values, by flag, of the flags that arguments and flag files give.

    If a flag is given twice, the later value counts. The lines of a flag file replace
    `--flagfile`. A list can be given once in a command and once in a file.

    Args:
        arguments: the words of the command line.
        settings: the settings whose flags to read; other flags are then ignored. By
            default all, and unknown flags raise an error.

    Raises:
        SettingError, flags.Error: a flag or a flag file cannot be used.
    """
    known_only = settings is not None
    if settings is None:
        settings = [setting for section in sections() for setting in section.settings]
    by_flag = {setting.flag: setting for setting in settings}
    words = _expand_flag_files(arguments, by_flag)
    values = flags.FlagValues()
    values.set_gnu_getopt(True)  # Flags may follow other arguments.
    for declared in by_flag.values():
        define(declared, declared.help, values)
    try:
        rest = values(["", *words], known_only=known_only)[1:]
    except flags.UnrecognizedFlagError as error:
        longer = [name for name in by_flag if name.endswith(f"_{error.flagname}")]
        if not longer:
            raise
        names = " or ".join(f"--{name}" for name in longer)
        raise SettingError(
            f"unknown flag --{error.flagname}: did you mean {names}?"
        ) from error
    if rest and not known_only:
        raise SettingError(f"unexpected argument: {rest[0]}")
    given_flags = {name: values[name] for name in by_flag if values[name].present}
    return {
        name: _parse_value(by_flag[name], flag.value)
        for name, flag in given_flags.items()
    }


def define(
    declared: Setting, words: str, values: flags.FlagValues, heading: str = ""
) -> None:
    """Defines a setting's flag, for absl's help under a heading."""
    options: Any = {"flag_values": values, "module_name": heading or None}
    if parser := {int: _IntegerParser(), float: _FloatParser()}.get(declared.kind):
        flags.DEFINE(parser, declared.flag, None, words, **options)
    else:
        make = flags.DEFINE_bool if declared.kind is bool else flags.DEFINE_string
        make(declared.flag, None, words, **options)


def without_user_files(arguments: Sequence[str]) -> list[str]:
    """Returns arguments that give the same values without flag files of the user.

    The lines of these replace `--flagfile`, except those that a later word replaces.
    The project's own files, which everybody has, stay.
    """
    words = _user_lines(arguments)
    last = {_flag_name(word): place for place, (word, _) in enumerate(words)}
    in_file = {_flag_name(word) for word, is_of_file in words if is_of_file}
    return [
        word
        for place, (word, is_of_file) in enumerate(words)
        if last[_flag_name(word)] == place
        or not (is_of_file or (_flag_name(word) in in_file and "=" in word))
    ]


def _user_lines(
    arguments: Sequence[str], paths: tuple[str, ...] = ()
) -> list[tuple[str, bool]]:
    """Returns words, and those of the user's files, with whether it is of a file."""
    words: list[tuple[str, bool]] = []
    rest = iter(arguments)
    for word in rest:
        name, is_whole, file = word.partition("=")
        if word == "--":
            words += [(word, False), *((argument, False) for argument in rest)]
        elif name not in _FLAG_FILE:
            words.append((word, bool(paths)))
        else:
            path = _find_flag_file(file if is_whole else next(rest, ""))
            folder = project_files.folder(project_files.FLAG_FILES)
            if pathlib.Path(path).resolve().parent == folder.resolve():
                name = f"{project_files.FLAG_FILES}/{os.path.basename(path)}"
                words.append((f"--flagfile={name}", False))
            elif path not in paths:
                words += _user_lines(_flags_in_file(path), (*paths, path))
    return words


def _flag_name(word: str) -> str:
    return word.lstrip("-").partition("=")[0]


def _expand_flag_files(
    words: Sequence[str],
    by_flag: dict[str, Setting],
    paths: tuple[str, ...] = (),
) -> list[str]:
    """Returns the words with the lines of flag files instead of `--flagfile`.

    `paths` are the files that are being read, the last of which contains the words; a
    file does not read itself.
    """
    _reject_repeated_lists(words, by_flag, f" in {paths[-1]}" if paths else "")
    expanded: list[str] = []
    rest = iter(words)
    for word in rest:
        name, is_whole, file = word.partition("=")
        if word == "--":  # The rest are not flags.
            return [*expanded, word, *rest]
        if name not in _FLAG_FILE:
            expanded.append(word)
            continue
        if not is_whole and (file := next(rest, "")) == "":
            raise SettingError("--flagfile is empty: name a file")
        path = _find_flag_file(file)
        if path not in paths:
            lines = _flags_in_file(path)
            expanded += _expand_flag_files(lines, by_flag, (*paths, path))
    return expanded


def _reject_repeated_lists(
    words: Sequence[str], by_flag: dict[str, Setting], where: str
) -> None:
    """Rejects a repeated list flag: absl would silently keep only the last one."""
    names = [_flag_name(word) for word in words if word[:1] == "-"]
    for name, count in collections.Counter(names).items():
        declared = by_flag.get(name)
        if declared and count > 1 and (declared.repeated or declared.kind is tuple):
            mark = ";" if declared.repeated and declared.parse else ","
            raise SettingError(
                f"--{name} is given twice{where}: give it once, with {mark!r} between "
                "its values"
            )


def _flags_in_file(path: str) -> list[str]:
    """Returns the flags of a file, one of each line, as words of a command line.

    A line may have a comment, behind `#` or `//`, a space instead of `=`, and a
    value in quotes, as a shell takes it.

    Raises:
        SettingError: the file is not text, or a line is not one flag; both are named.
    """
    try:
        text = data_files.read(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingError(
            f"--flagfile={path}: the file is not UTF-8 text: save it as UTF-8"
        ) from error
    flag_words = []
    for number, line in enumerate(text.splitlines(), 1):
        words = _COMMENT.sub("", line).strip()
        if not words:
            continue
        parts = _FLAG.fullmatch(words)
        if not parts:
            raise SettingError(
                f"--flagfile={path}: line {number} is {words!r}: a line has one flag, "
                "as --rounds=30"
            )
        name, value = parts["name"], parts["value"] or ""
        if value[:1] in ("'", '"') and value[-1:] == value[:1] and len(value) > 1:
            value = value[1:-1]
        elif other := _ANOTHER_FLAG.search(value):
            raise SettingError(
                f"--flagfile={path}: line {number} has {name} and {other[1]}: give "
                "each flag a line"
            )
        flag_words.append(f"{name}={value}" if parts["mark"] else name)
    return flag_words


def _find_flag_file(name: str) -> str:
    """Returns the path of a flag file: the user's first, then the project's."""
    path = call_naming_flag(f"--flagfile={name}", data_files.expand_path, name.strip())
    project_folder = project_files.folder(project_files.FLAG_FILES)
    if os.path.isfile(path):
        return path
    if os.path.dirname(path) in ("", project_files.FLAG_FILES):
        if (project_folder / os.path.basename(path)).is_file():
            return str(project_folder / os.path.basename(path))
    names = ", ".join(sorted(file.name for file in project_folder.glob("*.flags")))
    raise SettingError(f"--flagfile={name}: no such file; the project has {names}")


def _parse_value(declared: Setting, value: Any) -> Any:
    if value == "" and (declared.choices or declared.owner in PARTS):
        # An unset shell variable must not silently mean the default.
        raise SettingError(
            f"--{declared.flag}= is empty: give a value or remove the flag"
        )
    if declared.parse is None:
        return value.split(",") if declared.repeated else value
    texts = [value]
    if declared.repeated:  # As in a list, a ; may stand behind the last one, too.
        texts = re.sub(r"(?<=[^;\s])\s*;\s*$", "", value).split(";")
    values = [
        call_naming_flag(f"--{declared.flag}={text}", declared.parse, text)
        for text in texts
    ]
    return values if declared.repeated else values[0]
