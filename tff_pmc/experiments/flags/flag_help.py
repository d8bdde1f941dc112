"""The texts about the flags: `--help`, and the table of flags in the documents."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from leaf_data.registry import DATASETS
from leaf_data.settings import Setting
from tff_pmc import criteria
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.flags import flag_definitions
from tff_pmc.models import MODELS
from tff_pmc.systems import SYSTEMS

_WIDTH = 88


def help_text() -> str:
    """Returns the text of `--help`: all flags in sections, and the registered names."""
    parts = [
        _names("Experiments (--experiment)", _experiments()),
        _names("Criteria (--criteria, --priority)", _criteria()),
        _names("Systems (--systems)", _first_lines(SYSTEMS)),
        _names("Data sets (--dataset)", _first_lines(DATASETS)),
        _names("Models (--model)", _first_lines(MODELS)),
    ]
    for section in flag_definitions.sections():
        lines = [f"{section.heading}:"]
        for declared in section.settings:
            lines.append(f"  --{declared.flag}{_form(declared)}")
            lines += textwrap.wrap(
                _words(declared),
                _WIDTH,
                initial_indent="      ",
                subsequent_indent="      ",
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def markdown() -> str:
    """Returns the table of flags in `docs/flags.md`."""
    lines = [
        "# Flags",
        "",
        "Every flag of `run_experiments.py`, by whom it concerns. A flag left out "
        "keeps the value of the named experiment, which is the default here unless the "
        "experiment says otherwise. Made by "
        "`python -m tff_pmc.experiments.flags.flag_help`.",
    ]
    for section in flag_definitions.sections():
        lines += ["", f"## {section.heading}", "", "| flag | default | what it is |"]
        lines.append("|---|---|---|")
        for declared in section.settings:
            words = declared.words
            if any(declared.choices):
                words += f" One of {', '.join(filter(None, declared.choices))}."
            lines.append(f"| `--{declared.flag}` | {_default(declared)} | {words} |")
    return "\n".join(lines) + "\n"


def _experiments() -> dict[str, str]:
    return {name: found.title for name, found in EXPERIMENTS.items()}


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


def _words(declared: Setting) -> str:
    default = _default(declared)
    return declared.words + (f" Default: {default}." if default else "")


def _default(declared: Setting) -> str:
    """Returns the default as a user types it; empty where there is none."""
    value = declared.default
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


if __name__ == "__main__":
    print(markdown(), end="")
