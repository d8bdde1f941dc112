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

from leaf_data.declare import Setting, SettingError, unknown
from tff_pmc import criteria, project_files
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.flags import flag_definitions
from tff_pmc.experiments.flags.command import LR_SEARCH
from tff_pmc.experiments.flags.flag_definitions import Section
from tff_pmc.settings.aggregation_settings import AggregationSettings
from tff_pmc.settings.papers import PAPERS
from tff_pmc.settings.run_settings import CHOSEN, System

_WIDTH = 88
_SCRIPT = "python run_experiments.py"

_EXAMPLES = f"""\
Runs prioritized multi-criteria federated training and makes its tables.

  {_SCRIPT} --flagfile=experiments/quickstart.flags
      trains two orderings on 5,000 real digits, in one to two minutes on two cores
  {_SCRIPT} --flagfile=experiments/pmc_table4.flags --data_dir=DIR \\
      --priority='DS;LD,DS,MD' --rounds=30
      makes two rows of a paper's table, for fewer rounds
  {_SCRIPT} --experiment=quickstart --seeds=0,1,2,3,4
      compares the two orderings seed by seed with the noise floor
  {_SCRIPT} --flagfile=experiments/quickstart.flags --output_dir=OUT --resume
      goes on with the interrupted run in OUT
  {_SCRIPT} --plugin=my_module --dataset=mine --model=mine --inspect
      looks at your own data before it trains anything (docs/own_data.md)"""

RULE = (
    "A flag left out keeps the value of the named experiment. Of a flag that is given "
    "twice the later one counts, and the lines of a flag file stand in the place of "
    "--flagfile, so give it first."
)

_FIRST_DAY = {
    "What to run": "experiment systems dataset model seed seeds inspect plugin",
    "Training": "rounds clients_per_round local_epochs batch_size learning_rate "
    "client_optimizer server_optimizer",
    "Criteria and weights": "criteria priority normalization adjustment judge_on "
    "selection",
    "Data and results": "data_dir client_table output_dir resume predictions targets",
    "Runs on disk, and engines": "tables compare engine",
}
"""The thirty flags that a first day needs."""


def asked(arguments: Sequence[str], program: str) -> str:
    """Returns the help that arguments of a program ask for; empty where they do not."""
    for word in arguments:
        found = re.fullmatch(r"--?(?:h|help|(helpfull)|help=(.*))", word)
        if found:
            text = help_text("full" if found[1] else found[2] or "")
            own = f"python {program}" if program.endswith(".py") else program
            return text.replace(_SCRIPT, own)
    return ""


def help_text(part: str = "") -> str:
    """Returns the text of `--help`, or of one part of it.

    Args:
        part: criteria, algorithms, the short name of a paper, or full, which has all.
    """
    sections = flag_definitions.sections()
    names = {name.lower(): name for name in ("full", "criteria", "algorithms", *PAPERS)}
    paper = names.get(part.lower(), "")
    if not part:
        return _first_page(sections)
    if paper == "full":
        return "\n\n".join([RULE, *_all_names(), *_all_flags(sections)])
    if paper == "criteria":
        own = [s for s in sections if s.heading == AggregationSettings.title]
        return "\n\n".join([_criteria(), *_all_flags(own)])
    if paper == "algorithms":
        own = [s for s in sections if issubclass(s.settings[0].owner, System)]
        return "\n\n".join([_of_registry("system"), *_all_flags(own)])
    if paper:
        return _of_paper(paper, [s for s in sections if s.part == paper])
    known = [*names.values()][1:]
    raise SettingError(f"--help={part}: {unknown('part of the help', part, known)}")


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
    files = what_files_make()
    lines += [f"| `{name}.flags` | {words} |" for name, words in files.items()]
    sections = flag_definitions.sections()
    for part, group in itertools.groupby(sections, lambda section: section.part):
        lines += ["", f"## {_title(part)}"]
        for section in group:
            lines += ["", f"### {section.heading}", ""]
            lines += ["| flag | default | what it is |", "|---|---|---|"]
            lines += [
                f"| `--{one.flag}` | {_default(one)} | {_words(one)} |"
                for one in section.settings
            ]
    return "\n".join(lines) + "\n"


def what_files_make(folder: Optional[pathlib.Path] = None) -> dict[str, str]:
    """What each flag file makes: its first comment's first line, by its name's stem."""
    found = {}
    folder = folder or project_files.folder(project_files.FLAG_FILES)
    for path in sorted(folder.glob("*.flags")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        found[path.stem] = first.lstrip("# ") if first.startswith("#") else ""
    return found


def _first_page(sections: Iterable[Section]) -> str:
    """The examples, the flags of a first day, and where the rest is."""
    by_flag = {one.flag: one for section in sections for one in section.settings}
    parts = [_EXAMPLES, textwrap.fill(RULE, _WIDTH)]
    for title, names in _FIRST_DAY.items():
        first = {f"--{n}": by_flag[n].words.partition(". ")[0] for n in names.split()}
        parts.append(_names(title, first, width=21))
    rest = (
        "The rest: --help=criteria, --help=algorithms, and of one paper "
        f"{', '.join(f'--help={name}' for name in PAPERS)}; --helpfull has every flag, "
        "flag file, experiment, data set and model. Where docs/NAME.md is named, that "
        "is a document in the project's source, which an installed wheel does not have."
    )
    return "\n\n".join([*parts, textwrap.fill(rest, _WIDTH, break_on_hyphens=False)])


def _of_paper(name: str, sections: Iterable[Section]) -> str:
    """What is of one paper: its flag files, its experiments, and their flags."""
    files = what_files_make().items()
    own = {file: words for file, words in files if words.startswith(f"{name}'s ")}
    named = {key: e.title for key, e in EXPERIMENTS.items() if e.paper == name}
    lists = [_names("Flag files (--flagfile=experiments/NAME.flags)", own)]
    lists += [_names("Experiments (--experiment)", named)]
    return "\n\n".join([_title(name), *filter(None, lists), *_all_flags(sections)])


def _all_names() -> list[str]:
    """The lists of what flags can name."""
    order = ["", *PAPERS]  # The experiments beyond the papers first.
    found = sorted(EXPERIMENTS.items(), key=lambda item: order.index(item[1].paper))
    named = {name: experiment.title for name, experiment in found}
    named[LR_SEARCH] = "Finds the learning rate of the experiment --search_for."
    lists = [
        _names("Flag files (--flagfile=experiments/NAME.flags)", what_files_make()),
        _names("Experiments (--experiment)", named),
        _criteria(),
        *map(_of_registry, CHOSEN),
    ]
    return [text for text in lists if text]


def _criteria() -> str:
    found = {
        code: f"{criterion.name} ({criterion.source})"
        for code, criterion in criteria.REGISTRY.items()
    }
    aliases = {alias: f"the same as {code}" for alias, code in criteria.ALIASES.items()}
    return _names("Criteria (--criteria, --priority)", {**found, **aliases})


def _of_registry(flag: str) -> str:
    """The list of what a flag chooses by name, with their docstrings' first lines."""
    title = {"system": "Algorithms (--systems)", "dataset": "Data sets (--dataset)"}
    docs = {name: kind.__doc__ or "" for name, kind in CHOSEN[flag].items()}
    lines = {name: doc.strip().partition("\n")[0] for name, doc in docs.items()}
    return _names(title.get(flag, f"{flag.capitalize()}s (--{flag})"), lines)


def _names(heading: str, names: Mapping[str, str], width: int = 0) -> str:
    """A list of names, each with what it is; empty where there are none."""
    width = width or max(map(len, names), default=0) + 2
    lines = [
        textwrap.fill(
            words,
            _WIDTH,
            initial_indent=f"  {name:{width}}",
            subsequent_indent=" " * (width + 2),
        )
        for name, words in names.items()
    ]
    return "\n".join([f"{heading}:", *lines]) if lines else ""


def _all_flags(sections: Iterable[Section]) -> list[str]:
    """The flags of sections as absl prints them, by the title of their part."""
    found = []
    for part, group in itertools.groupby(sections, lambda section: section.part):
        title = f"Flags. {_title(part)}"
        found.append(f"{title}\n{'=' * len(title)}")
        for heading, settings in ((s.heading, s.settings) for s in group):
            values = flags.FlagValues()
            for one in settings:
                default = _default(one)
                words = _words(one) + (f" Default: {default}." if default else "")
                flag_definitions.define(one, words, values, heading)
            found.append(values.module_help(heading).strip())
    return found


def _title(part: str) -> str:
    return f"{part}: {PAPERS[part].title}" if part in PAPERS else part


def _words(declared: Setting) -> str:
    """The words of a setting, and its choices."""
    choices = ", ".join(filter(None, declared.choices))
    return declared.words + (f" One of {choices}." if choices else "")


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
