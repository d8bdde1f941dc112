"""The texts about the flags: `--help`, and the page of flags of the site."""

from __future__ import annotations

import functools
import itertools
import pathlib
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from leaf_data.dataset import DATASETS
from leaf_data.settings import Setting
from tff_pmc import criteria, project_files
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.flags import flag_definitions
from tff_pmc.experiments.flags.command import LR_SEARCH
from tff_pmc.models import MODELS
from tff_pmc.selections import SELECTIONS
from tff_pmc.settings.papers import PAPERS
from tff_pmc.settings.run_settings import CHOSEN
from tff_pmc.systems import SYSTEMS

_WIDTH = 88
_SCRIPT = "run_experiments.py"

_ABOUT = """\
Runs prioritized multi-criteria federated training and makes its tables.

Examples:
  python run_experiments.py --flagfile=experiments/quickstart.flags
      trains two orderings on 5,000 real digits, in one to two minutes on two cores
  python run_experiments.py --flagfile=experiments/pmc_table4.flags --data_dir=DIR \\
      --priority=DS --priority=LD,DS,MD --rounds=30
      makes two rows of a paper's table, for fewer rounds
  python run_experiments.py --plugin=my_module --dataset=mine --model=mine --inspect
      looks at your own data before it trains anything (docs/own_data.md)"""

_DOCUMENTS = (
    "Where docs/NAME.md is named, that is a document in the project's source, which an "
    "installed wheel does not have."
)

RULES = (
    "A flag left out keeps the value of the named experiment. A flag on the command "
    "line replaces all that a flag file says of this flag, wherever --flagfile stands. "
    "A flag file replaces what the flag files that it names say. Of two flag files the "
    "later one counts. --priority='DS;LD,DS' is two runs, and so is --priority=DS "
    "--priority=LD,DS. Lists such as --systems=fedavg,median may also be given in "
    "several flags."
)


def help_text(program: str = _SCRIPT) -> str:
    """Returns the text of `--help`, for a program by that name."""
    command = f"python {program}" if program.endswith(".py") else program
    about = _ABOUT.replace(f"python {_SCRIPT}", command)
    parts = [about, *(textwrap.fill(text, _WIDTH) for text in (_DOCUMENTS, RULES))]
    files = what_files_make()
    if files:
        parts.append(_names("Flag files (--flagfile=experiments/NAME.flags)", files))
    parts += [
        _names("Experiments (--experiment)", _experiments()),
        _names("Criteria (--criteria, --priority)", _criteria()),
        _names("Systems (--systems)", _first_lines(SYSTEMS)),
        _names("Data sets (--dataset)", _first_lines(DATASETS)),
        _names("Models (--model)", _first_lines(MODELS)),
        _names("Selections of clients (--selection)", _first_lines(SELECTIONS)),
    ]
    indent = " " * 6
    for title, sections in _by_part():
        title = f"Flags. {title}"
        parts.append(f"{title}\n{'=' * len(title)}")
        for section in sections:
            lines = textwrap.wrap(f"{section.heading}:", _WIDTH, subsequent_indent="  ")
            for declared in section.settings:
                default = _default(declared)
                words = declared.words + (f" Default: {default}." if default else "")
                lines.append(f"  --{declared.flag}{_form(declared)}")
                lines += textwrap.wrap(
                    words, _WIDTH, initial_indent=indent, subsequent_indent=indent
                )
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def markdown() -> str:
    """Returns the page of flags, which the site has."""
    lines = [
        "# Flags",
        "",
        "Every flag of `run_experiments.py`: those of the command first, then those of "
        "every run, then those that one paper's experiments alone have. The default is "
        "the value where the experiment sets no other. Made by "
        "`python -m tff_pmc.experiments.flags.flag_help`.",
        "",
        RULES,
        "",
        "## Flag files",
        "",
        "| `--flagfile=experiments/` | what it makes |",
        "|---|---|",
    ]
    files = what_files_make()
    lines += [f"| `{name}.flags` | {words} |" for name, words in files.items()]
    for title, sections in _by_part():
        lines += ["", f"## {title}"]
        for section in sections:
            lines += ["", f"### {section.heading}", ""]
            lines += ["| flag | default | what it is |", "|---|---|---|"]
            for declared in section.settings:
                words = declared.words
                if any(declared.choices):
                    words += f" One of {', '.join(filter(None, declared.choices))}."
                lines.append(
                    f"| `--{declared.flag}` | {_default(declared)} | {words} |"
                )
    return "\n".join(lines) + "\n"


def what_files_make(folder: Optional[pathlib.Path] = None) -> dict[str, str]:
    """What each flag file makes: its first comment's first line, by its name's stem."""
    found = {}
    folder = folder or project_files.folder(project_files.FLAG_FILES)
    for path in sorted(folder.glob("*.flags")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        found[path.stem] = first.lstrip("# ") if first.startswith("#") else ""
    return found


def _by_part() -> Iterator[tuple[str, list[flag_definitions.Section]]]:
    """The sections of the flags by the title of their part."""
    all_of_them = flag_definitions.sections()
    for part, sections in itertools.groupby(all_of_them, lambda one: one.part):
        title = f"{part}: {PAPERS[part].title}" if part in PAPERS else part
        yield title, list(sections)


def _experiments() -> dict[str, str]:
    """The titles by name: those of no paper first, then paper by paper."""
    order = ["", *PAPERS]
    found = sorted(EXPERIMENTS.items(), key=lambda item: order.index(item[1].paper))
    search = {LR_SEARCH: "Finds the learning rate of the experiment --search_for."}
    return {**{name: experiment.title for name, experiment in found}, **search}


def _criteria() -> dict[str, str]:
    found = {
        code: f"{criterion.name} ({criterion.source})"
        for code, criterion in criteria.REGISTRY.items()
    }
    aliases = {alias: f"the same as {code}" for alias, code in criteria.ALIASES.items()}
    return {**found, **aliases}


def _first_lines(registry: Mapping[str, type]) -> dict[str, str]:
    """The first line of each class's docstring, by name."""
    return {
        name: (thing.__doc__ or "").strip().splitlines()[0]
        for name, thing in registry.items()
    }


def _names(heading: str, names: dict[str, str]) -> str:
    width = max(map(len, names)) + 2
    lines = [f"{heading}:"]
    for name, words in names.items():
        lines += textwrap.wrap(
            words,
            _WIDTH,
            initial_indent=f"  {name:{width}}",
            subsequent_indent=" " * (width + 2),
        )
    return "\n".join(lines)


def _form(declared: Setting) -> str:
    if any(declared.choices):
        return "=" + "|".join(filter(None, declared.choices))
    if declared.kind is bool:
        return ""
    kinds = {int: "NUMBER", float: "NUMBER"}
    return "=" + kinds.get(declared.kind, "TEXT")


def _default(declared: Setting) -> str:
    """Returns the default as a user types it, or each with those that have it."""
    found = _defaults().get(declared.flag, {})
    if len(found) < 2:
        return _typed(declared.default)
    return "; ".join(f"{value} ({', '.join(of)})" for value, of in found.items())


@functools.cache
def _defaults() -> dict[str, dict[str, list[str]]]:
    """Returns flag -> default -> the data sets, models and so on that have it."""
    found: dict[str, dict[str, list[str]]] = {}
    for registry in CHOSEN.values():
        for name, kind in sorted(registry.items()):
            for own in kind.declared():
                of = found.setdefault(own.flag, {})
                of.setdefault(_typed(own.default), []).append(name)
    return found


def _typed(value: Any) -> str:
    """Returns a default as a user types it; empty where there is none."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


if __name__ == "__main__":
    print(markdown(), end="")
