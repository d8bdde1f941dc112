"""Flag files: which of their flags count, and what each file makes.

A flag has its value from one place, with all that this place says of it. The command
line comes before every file, wherever `--flagfile` stands; a file comes before the
files that it names; and of two files named in one place the later one comes before the
other. So a flag that may be repeated is a list that one place gives as a whole: on the
command line it replaces the file's list, and there repeated it adds to its own.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from absl import flags

from leaf_data.declare import SettingError
from tff_pmc import project_files
from tff_pmc.experiments.flags.flag_file_paths import FOLDER, path_of

SUFFIX = ".flags"
_FILE = "flagfile"
_LOOSE = ""  # The name of what is no flag.


class Resolved(NamedTuple):
    """The arguments that count, by the flag that they are of.

    Attributes:
        own: flag -> its arguments on the command line, in their order.
        of_files: the same of the other flags, from the files.
        loose: what is no flag, from everywhere.
    """

    own: dict[str, list[str]]
    of_files: dict[str, list[str]]
    loose: list[str]

    def said(self, name: str) -> list[str]:
        """Returns the arguments of a flag, wherever they are from."""
        return self.own.get(name) or self.of_files.get(name, [])

    def as_arguments(self) -> list[str]:
        """Returns all as one list, the flags before what is none."""
        named = [*self.of_files.values(), *self.own.values()]
        return [word for words in (*named, self.loose) for word in words]


def resolve(
    arguments: Sequence[str],
    flag_values: flags.FlagValues,
    within: tuple[str, ...] = (),
) -> Resolved:
    """Returns the arguments that count. No `--flagfile` is left.

    Args:
        arguments: those of the command line without the program's name, or the lines
            of a file.
        flag_values: the flags that are defined, which say whether the next argument is
            a flag's value. Of one that is not defined it is not.
        within: the files in which the arguments stand, the outermost first.

    Raises:
        SettingError: a file cannot be read, or is named within itself.
    """
    own: dict[str, list[str]] = {}
    found: dict[str, list[str]] = {}
    loose: list[str] = []
    for name, words in _by_flag(arguments, flag_values):
        if name == _FILE:
            path = os.path.expanduser(path_of(_value(words).strip()))
            inner = resolve(_lines(path, within), flag_values, (*within, path))
            found.update({**inner.of_files, **inner.own})
            loose += inner.loose
        elif name == _LOOSE:
            loose += words
        else:
            own.setdefault(name, []).extend(words)
    of_files = {name: words for name, words in found.items() if name not in own}
    return Resolved(own, of_files, loose)


def _by_flag(
    words: Sequence[str], flag_values: flags.FlagValues
) -> Iterator[tuple[str, list[str]]]:
    """Yields each flag's name and arguments, one or two."""
    rest = iter(words)
    for word in rest:
        name, is_whole, _ = word.lstrip("-").partition("=")
        if word == "--":
            yield _LOOSE, [word, *rest]
        elif not word.startswith("-") or not name:
            yield _LOOSE, [word]
        elif is_whole:
            yield name, [word]
        elif name == _FILE or _takes_value(name, flag_values):
            yield name, [word, *_next(rest)]
        elif name.startswith("no") and name[2:] in flag_values:
            yield name[2:], [word]
        else:
            yield name, [word]


def _takes_value(name: str, flag_values: flags.FlagValues) -> bool:
    return name in flag_values and not flag_values[name].boolean


def _next(words: Iterator[str]) -> list[str]:
    """The next word; none at the end, of which the parser says that it is missing."""
    return [word for word in (next(words, None),) if word is not None]


def _value(said: Sequence[str]) -> str:
    value = said[1] if len(said) > 1 else said[0].partition("=")[2]
    if not value:
        raise SettingError(f"--{_FILE}= has nothing behind it: name a flag file")
    return value


def _lines(path: str, within: tuple[str, ...]) -> list[str]:
    """The lines of a file that are neither empty nor comments."""
    if path in within:
        raise SettingError(f"--{_FILE}={path}: the file is named within itself")
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise SettingError(f"--{_FILE}={path}: {error.strerror}") from error
    except ValueError as error:
        raise SettingError(f"--{_FILE}={path}: it is no text in UTF-8") from error
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "//"))]


def what_files_make(folder: Optional[pathlib.Path] = None) -> dict[str, str]:
    """Returns name -> the first line of its first comment, for each file of a folder.

    That line says what the file makes; the name is without `.flags`. By default the
    files are those that come with the project.
    """
    found = {}
    for path in sorted((folder or project_files.folder(FOLDER)).glob(f"*{SUFFIX}")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        found[path.stem] = first.lstrip("# ") if first.startswith("#") else ""
    return found
