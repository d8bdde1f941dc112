"""A setting is declared once, and everything else follows from the declaration."""

import collections
import re

import pytest
from cli import parse_settings
from commands import ROOT

from leaf_data.dataset import DATASETS
from tff_pmc.algorithms import ALGORITHMS
from tff_pmc.experiments.experiment import EXPERIMENTS, settings
from tff_pmc.experiments.flags import flag_definitions, flag_help
from tff_pmc.models import MODELS
from tff_pmc.record import reference_code
from tff_pmc.record.results import BASELINE
from tff_pmc.record.tables import TABLES
from tff_pmc.reports import REPORTS
from tff_pmc.reports.papers import pmc_paper
from tff_pmc.settings.run_settings import GROUPS

SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for folder in ("tff_pmc", "leaf_data", "declared_settings")
    for path in (ROOT / folder).rglob("*.py")
}
SOURCES["run_experiments.py"] = (ROOT / "run_experiments.py").read_text()


def everything():
    groups = [*GROUPS.values(), *DATASETS.values(), *MODELS.values()]
    return [*groups, *ALGORITHMS.values()]


def owners():
    """(flag, declaring class) of every setting, and those of registered things."""
    return {(s.flag, s.owner) for group in everything() for s in group.declared()}


def test_each_flag_is_declared_by_one_class():
    counts = collections.Counter(flag for flag, _ in owners())
    assert [flag for flag, count in counts.items() if count > 1] == []
    assert len(counts) > 50


def test_each_flag_is_in_one_section_of_the_help():
    flags = [s.flag for part in flag_definitions.sections() for s in part.settings]
    assert sorted(flags) == sorted(set(flags))
    text = flag_help.help_text("full")
    shown = sorted(re.findall(r"^  --(?:\[no\])?(\w+):", text, re.MULTILINE))
    assert shown == sorted(flags)
    page = flag_help.markdown()
    assert [flag for flag in flags if page.count(f"| `--{flag}` |") != 1] == []


def component_settings():
    """Returns the settings that one data set, model, algorithm or base declares."""
    common = {flag for group in GROUPS.values() for flag in group.flags()}
    shared = {"partition_seed", "model_seed", "conv_activation", "initializer"}
    settings_of_one = {(s.flag, s.name, s.owner.__module__) for g in everything()
             for s in g.declared() if s.flag not in common | shared}  # fmt: skip
    return sorted(settings_of_one)


@pytest.mark.parametrize(("flag", "name", "module"), component_settings())
def test_a_setting_of_one_component_is_named_only_in_its_module(flag, name, module):
    """Outside, only named experiments may set it, and reports may read a record's."""
    declared = module.replace(".", "/") + ".py"
    assert re.search(rf"^    {name}: .* = setting\(", SOURCES[declared], re.MULTILINE)
    allowed = ("tff_pmc/experiments/catalog/", "tff_pmc/reports/", declared)
    elsewhere = [
        path
        for path, text in SOURCES.items()
        if re.search(rf"""["']{flag}["']""", text)
        and not path.startswith(allowed)
        and not path.endswith("__init__.py")
    ]
    # A loaded data set names its options by the same words.
    own_folder = declared.rsplit("/", 1)[0]
    assert [path for path in elsewhere if not path.startswith(own_folder)] == []


def test_the_documents_name_existing_flags():
    flags = {s.flag for part in flag_definitions.sections() for s in part.settings}
    # absl's, fields of examples, and the flags of the page of claims.
    flags |= {"help", "helpfull", "flagfile", "stripe_width", "flat_rounds", "csv"}
    flags |= {"gradient_norm"}  # The option of training of an example.
    convert = (ROOT / "leaf_data" / "convert.py").read_text()
    flags.update(re.findall(r'"--(\w+)"', convert))
    for path in (ROOT / "docs" / "examples").rglob("*.py"):
        flags.update(re.findall(r'flag="(\w+)"', path.read_text()))
    for path in (ROOT / "benchmarks").glob("*.py"):  # These have flags of their own.
        flags.update(re.findall(r"--([a-z_]+)", path.read_text()))
    # Flags of other programs have hyphens, or do not begin a piece of code.
    commands = re.compile(
        r"(?:run_experiments\.py|tff-pmc)((?:\\\n|[^`\n])*)|(`--[^`]+`)"
    )
    unknown = {
        f"{path.name}: --{name}"
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        for pair in commands.findall(path.read_text())
        for name in re.findall(r"--([a-z_]+)(?![a-z_-])", "".join(pair))
        if name not in flags
    }
    assert not unknown


def test_flagfile_comes_first_in_the_examples():
    """Later values count: a flag before a flag file may have no effect."""
    pages = [ROOT / "README.md", ROOT / "Dockerfile", ROOT / "Makefile"]
    for folder in ("docs", "notebooks"):
        pages += [p for p in (ROOT / folder).rglob("*") if p.suffix != ".png"]
    command = re.compile(
        r"(?:run_experiments\.py|tff-pmc)((?: |\\\n|--\S+)*--flagfile)"
    )
    before_flagfile = [
        c for p in pages if p.is_file() for c in command.findall(p.read_text())
    ]
    assert len(before_flagfile) > 10 and {*before_flagfile} == {" --flagfile"}


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_named_experiments_have_valid_settings(name):
    experiment = EXPERIMENTS[name]
    if any(row.text for row in experiment.rows):
        runs = parse_settings(f"--experiment={name}")
    else:
        values_by_run = [
            row.values for row in (*experiment.rows, *experiment.on_demand)
        ] or [{}]
        runs = [settings(name, values) for values in values_by_run]
    for what in ("label", "folder_name"):
        values = [getattr(run, what) for run in runs]
        assert len(set(values)) == len(values)
    for protocol in experiment.protocols:
        settings(name, {}, protocol)
    assert all(report in REPORTS for report in experiment.reports)
    if experiment.compares_algorithms:
        compared = runs[: len(experiment.rows)]
        names = {run.algorithm.name for run in compared}
        names |= {
            ", ".join((run.algorithm.name, *(run.row_notes or ()))) for run in compared
        }
        assert experiment.baseline in names
    else:
        assert settings(name).label == experiment.baseline == BASELINE


# Named experiments are read before pandas and the reports are imported, so they cannot
# take these constants from the reports: here the two are compared.
@pytest.mark.parametrize("experiment", pmc_paper.PAPER)
def test_pmcs_experiments_have_the_targets_and_orderings_of_its_tables(experiment):
    run, paper = settings(experiment), pmc_paper.PAPER[experiment]
    assert run.record.targets == paper.targets
    assert run.aggregation.criteria == reference_code.CRITERIA[paper.data_set]
    assert run.dataset == paper.data_set


def test_the_page_on_what_a_run_leaves_names_every_table_of_a_record():
    page = (ROOT / "docs" / "reproduce.md").read_text()
    section = page.split("\n## What a run leaves\n")[1].split("\n## ")[0]
    assert [name for name in TABLES if f"`{name}.csv`" not in section] == []
