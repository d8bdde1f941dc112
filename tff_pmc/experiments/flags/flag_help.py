"""The texts about the flags: `--help`, and the page of flags of the site."""

from __future__ import annotations

import functools
import itertools
import pathlib
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from absl import flags

from declared_settings import Setting, SettingError, unknown_name_message
from tff_pmc import criteria, project_files
from tff_pmc.algorithms import Algorithm
from tff_pmc.experiments.callbacks import CALLBACKS
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.flags import flag_definitions
from tff_pmc.experiments.flags.command import LR_SEARCH
from tff_pmc.experiments.flags.flag_definitions import Section
from tff_pmc.reports.paper import PAPERS
from tff_pmc.settings.aggregation_settings import AggregationSettings
from tff_pmc.settings.run_settings import COMPONENTS

_WIDTH = 88
_SCRIPT = "python run_experiments.py"

_EXAMPLES = f"""\
Runs prioritized multi-criteria federated training and makes its tables.

  {_SCRIPT} --flagfile=experiments/quickstart.flags
      trains two orderings on 5,000 real digits, in one to four minutes on two cores
  {_SCRIPT} --flagfile=experiments/pmc_table4.flags --data_dir=DIR \\
      --priority='DS;LD,DS,MD' --rounds=30
      makes two rows of a paper's table, for fewer rounds
  {_SCRIPT} --experiment=quickstart --seeds=0,1,2,3,4
      compares the two orderings seed by seed with the noise floor
  {_SCRIPT} --experiment=quickstart --output_dir=OUT --resume
      resumes the interrupted run in OUT
  {_SCRIPT} --plugin=my_module --dataset=mine --model=mine --inspect
      looks at your own data before it trains anything (docs/own_data.md)"""

RULE = (
    "A flag that is not given keeps the value of the named experiment. If a flag is "
    "given twice, the later value counts. The lines of a flag file replace --flagfile, "
    "so give it first."
)

_FIRST_DAY_FLAGS = {
    "What to run": "experiment algorithms dataset model seed seeds inspect plugin",
    "Training": "rounds clients_per_round local_epochs batch_size learning_rate "
    "client_optimizer server_optimizer",
    "Criteria and weights": "criteria priority normalization adjustment judge_on "
    "selection",
    "Data and results": "data_dir client_table output_dir resume predictions targets",
    "Runs on disk, and engines": "tables compare engine",
}
"""The thirty flags that a first day needs."""


def requested_help(arguments: Sequence[str], program: str) -> str:
    """Returns the help that a program's arguments request; empty if they do not."""
    for word in arguments:
        if match := re.fullmatch(r"--?(?:h|help|(helpfull)|help=(.*))", word):
            command = f"python {program}" if program.endswith(".py") else program
            text = help_text("full" if match[1] else match[2] or "")
            return text.replace(_SCRIPT, command)
    return ""


def help_text(part: str = "") -> str:
    """Returns the text of `--help`, or of one part of it.

    Args:
        part: criteria, algorithms, the short name of a paper, or full, which has all.

    Raises:
        SettingError: the part is unknown.
    """
    sections = flag_definitions.sections()
    if not part:
        return _first_page(sections)
    parts = ("criteria", "algorithms", *PAPERS)
    name = {part_name.lower(): part_name for part_name in (*parts, "full")}.get(
        part.lower(), ""
    )
    if name == "full":
        title, lists, shown_sections = textwrap.fill(RULE, _WIDTH), _lists(), sections
    elif name == "criteria":
        title, lists = "Criteria", _lists(kinds=("criteria",))
        shown_sections = [s for s in sections if s.heading == AggregationSettings.title]
    elif name == "algorithms":
        title, lists = "Algorithms", _lists(kinds=("algorithm",))
        shown_sections = [
            s for s in sections if issubclass(s.settings[0].owner, Algorithm)
        ]
    elif name:
        title, lists = _title(name), _lists(kinds=("files", "experiment"), paper=name)
        shown_sections = [s for s in sections if s.part == name]
    else:
        raise SettingError(
            f"--help={part}: {unknown_name_message('part of the help', part, parts)}"
        )
    return "\n\n".join([title, *lists, *_flags(shown_sections)])


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
        RULE,
        "",
        "## Flag files",
        "",
        "| `--flagfile=experiments/` | what it makes |",
        "|---|---|",
    ]
    files = flag_file_summaries()
    lines += [f"| `{name}.flags` | {words} |" for name, words in files.items()]
    sections = flag_definitions.sections()
    for part, group in itertools.groupby(sections, lambda section: section.part):
        lines += ["", f"## {_title(part)}"]
        for section in group:
            lines += ["", f"### {section.heading}", ""]
            lines += ["| flag | default | what it is |", "|---|---|---|"]
            lines += [
                f"| `--{setting.flag}` | {_default(setting)} | {_words(setting)} |"
                for setting in section.settings
            ]
    return "\n".join(lines) + "\n"


def flag_file_summaries(folder: Optional[pathlib.Path] = None) -> dict[str, str]:
    """Reads the first line of each flag file's first comment, by the file's stem."""
    summaries = {}
    folder = folder or project_files.folder(project_files.FLAG_FILES)
    for path in sorted(folder.glob("*.flags")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        summaries[path.stem] = first.lstrip("# ") if first.startswith("#") else ""
    return summaries


def _first_page(sections: Iterable[Section]) -> str:
    """Writes the examples, the flags of a first day, and where the rest is."""
    by_flag = {
        setting.flag: setting for section in sections for setting in section.settings
    }
    parts = [_EXAMPLES, textwrap.fill(RULE, _WIDTH)]
    for title, names in _FIRST_DAY_FLAGS.items():
        summaries = {
            name: by_flag[name].help.partition(". ")[0] for name in names.split()
        }
        first = {f"--{name:17}": words.rstrip(".") for name, words in summaries.items()}
        parts.append(_format_list(title, first))
    rest = (
        "The rest: --help=criteria, --help=algorithms, and of one paper "
        f"{', '.join(f'--help={name}' for name in PAPERS)}; --helpfull has every flag, "
        "flag file, experiment, data set and model. Where docs/NAME.md is named, that "
        "is a document in the project's source, which an installed wheel does not have."
    )
    return "\n\n".join([*parts, textwrap.fill(rest, _WIDTH, break_on_hyphens=False)])


_LISTS = {
    "files": "Flag files (--flagfile=experiments/NAME.flags)",
    "experiment": "Experiments (--experiment)",
    "criteria": "Criteria (--criteria, --priority)",
    "algorithm": "Algorithms (--algorithms)",
    "dataset": "Data sets (--dataset)",
    "model": "Models (--model)",
    "selection": "Selections of clients (--selection)",
    "callbacks": "Callbacks (--callbacks)",
}


def _lists(kinds: Sequence[str] = tuple(_LISTS), paper: str = "") -> list[str]:
    """Lists what flags can name, or what one paper has of it."""
    order = ["", *PAPERS]  # The experiments beyond the papers first.
    experiments = sorted(
        EXPERIMENTS.items(), key=lambda item: order.index(item[1].paper)
    )
    search = {LR_SEARCH: "Finds the learning rate of the experiment --search_for."}
    files, titles = flag_file_summaries(), {name: e.title for name, e in experiments}
    if paper:
        files = {f: words for f, words in files.items() if f"{paper}'s " in words}
        titles = {name: e.title for name, e in experiments if e.paper == paper}
        search = {}
    codes = {
        c: f"{criterion.name} ({criterion.source})"
        for c, criterion in criteria.REGISTRY.items()
    }
    aliases = {alias: f"the same as {c}" for alias, c in criteria.ALIASES.items()}
    names = {"files": files, "experiment": {**titles, **search}}
    names["criteria"] = {**codes, **aliases}
    for flag, registry in {**COMPONENTS, "callbacks": CALLBACKS}.items():
        docs = {name: kind.__doc__ or "" for name, kind in registry.items()}
        names[flag] = {n: doc.strip().partition("\n")[0] for n, doc in docs.items()}
    return [_format_list(_LISTS[key], names[key]) for key in kinds if names[key]]


def _format_list(heading: str, names: Mapping[str, str]) -> str:
    width = max(map(len, names)) + 2
    lines = [f"{heading}:"]
    for name, words in names.items():
        indents = f"  {name:{width}}", " " * (width + 2)
        lines += textwrap.wrap(
            words, _WIDTH, initial_indent=indents[0], subsequent_indent=indents[1]
        )
    return "\n".join(lines)


def _flags(sections: Iterable[Section]) -> list[str]:
    """Formats the flags of sections as absl prints them, by the title of their part."""
    blocks = []
    for part, group in itertools.groupby(sections, lambda section: section.part):
        title = f"Flags. {_title(part)}"
        blocks.append(f"{title}\n{'=' * len(title)}")
        for section in group:
            values = flags.FlagValues()
            for setting in section.settings:
                default = f" Default: {_default(setting)}." if _default(setting) else ""
                words = _words(setting) + default
                flag_definitions.define(setting, words, values, section.heading)
            text = values.module_help(section.heading).strip().partition("\n")[2]
            heading = textwrap.fill(f"{section.heading}:", 80, subsequent_indent="  ")
            blocks.append(f"{heading}\n{text}")
    return blocks


def _title(part: str) -> str:
    return f"{part}: {PAPERS[part].title}" if part in PAPERS else part


def _words(declared: Setting) -> str:
    """Returns the words of a setting, and its choices."""
    choices = ", ".join(filter(None, declared.choices))
    return declared.help + (f" One of {choices}." if choices else "")


def _default(declared: Setting) -> str:
    """Returns the default as a user types it, or each with those that have it."""
    owners_by_default = _owners_of_defaults().get(declared.flag, {})
    if len(owners_by_default) < 2:
        return _as_typed(declared.default)
    return "; ".join(
        f"{value} ({', '.join(owners)})" for value, owners in owners_by_default.items()
    )


@functools.cache
def _owners_of_defaults() -> dict[str, dict[str, list[str]]]:
    """Returns flag -> default -> the data sets, models and so on that have it."""
    result: dict[str, dict[str, list[str]]] = {}
    for registry in COMPONENTS.values():
        for name, kind in sorted(registry.items()):
            for setting in kind.declared():
                owners_by_default = result.setdefault(setting.flag, {})
                owners_by_default.setdefault(_as_typed(setting.default), []).append(
                    name
                )
    return result


def _as_typed(value: Any) -> str:
    """Returns a default as a user types it; empty where there is none."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


if __name__ == "__main__":
    print(markdown(), end="")
