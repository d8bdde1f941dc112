"""The text of --help: its order, its width, and what it takes from elsewhere."""

import re

import pytest
from cli import ROOT

from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.experiments.flags import flag_definitions, flag_help
from tff_pmc.models import MODELS
from tff_pmc.settings.run_settings import COMPONENTS


@pytest.fixture(scope="module")
def text():
    return flag_help.help_text("full")


def all_flags():
    return {s.flag for part in flag_definitions.sections() for s in part.settings}


def test_the_first_page_is_short_and_its_examples_name_existing_flags():
    page = flag_help.help_text()
    lines = page.splitlines()
    assert len(lines) <= 80 and max(map(len, lines)) <= 88
    commands = re.findall(r"^  python run_experiments\.py ((?:.*\\\n)*.*)$", page, re.M)
    assert len(commands) == 5
    for command in commands:
        assert set(re.findall(r"--(\w+)", command)) <= all_flags() | {"flagfile"}
        assert all((ROOT / n).exists() for n in re.findall(r"flagfile=(\S+)", command))
        assert command.startswith("--flagfile") or "--flagfile" not in command
    groups = re.findall(r"^[A-Z].*:\n((?:  --.*\n(?: {5,}.*\n)*)+)", f"{page}\n", re.M)
    flags = [re.findall(r"^  --(\w+) ", group, re.M) for group in groups]
    assert len(flags) == 5
    assert len({*sum(flags, [])}) == len(sum(flags, [])) == 30


@pytest.mark.parametrize(
    ("part", "has", "lacks"),
    [
        ("criteria", ["DS  ", "--priority:", "--clip_norm:"], ["--rounds:", "fedavg"]),
        (
            "algorithms",
            ["fedavg  ", "--momentum_beta:", "--owa_weights:"],
            ["--rounds:"],
        ),
        (
            "DA",
            ["da_table1 ", "femnist ", "--sample_fraction:"],
            ["mnist_iid", "LR_SE"],
        ),
        (
            "pmc",
            ["pmc_table4 ", "celeba ", "--client_rule:"],
            ["femnist ", "--rounds:"],
        ),
        ("AdaFed", ["adafed_1 ", "--adafed_epsilon:"], ["da_table1", "lr_search"]),
        ("Dual", ["dual_table5 ", "--momentum_beta:"], ["adafed_1"]),
        ("full", ["--rounds:", "--[no]predictions:", "power_of_choice  "], ["--no_s"]),
    ],
)
def test_a_part_of_the_help(part, has, lacks):
    page = flag_help.help_text(part)
    assert [words for words in has if f"\n  {words}" not in page] == []
    assert [words for words in lacks if words in page] == []
    assert [line for line in page.splitlines() if len(line) > 88] == []


@pytest.mark.parametrize(
    ("word", "part"),
    [("-h", ""), ("-help", ""), ("--help", ""), ("--helpfull", "full"),
     ("--help=criteria", "criteria"), ("-help=da", "DA"), ("--helper", None)],
)  # fmt: skip
def test_a_help_flag_selects_a_part_of_the_help(word, part):
    shown = flag_help.requested_help(["--rounds=3", word], "run_experiments.py")
    assert shown == ("" if part is None else flag_help.help_text(part))
    assert "run_experiments.py" not in flag_help.requested_help([word], "tff-pmc")


def test_every_flag_file_is_there_with_its_first_line(text, tmp_path):
    listed = text.split("\nFlag files")[1].split("\n\n")[0]
    files = sorted((ROOT / "experiments").glob("*.flags"))
    names = re.findall(r"^  (\w+) ", listed, re.M)
    assert sorted(names) == [path.stem for path in files]
    for path in files:
        first = path.read_text().splitlines()[0]
        assert re.fullmatch(r"# \S.*\.", first), path
        assert f" {path.stem} {first[2:]}" in " ".join(listed.split())
    (tmp_path / "a.flags").write_text("--rounds=1\n")
    assert flag_help.flag_file_summaries(tmp_path) == {"a": ""}
    assert flag_help.flag_file_summaries(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        ("experiment tables", "The command"),
        ("priority partition_seed adjustment", "Every run"),
        ("client_rule partition batch_norm", "PMC: Prioritized Multi-Criteria Federa"),
        ("sample_fraction", "DA: Towards Effective Device-Aware Federated Learning"),
        ("adafed_epsilon", "AdaFed: Performance-based Adaptive Federated Learning"),
        ("momentum_beta image_fraction", "Dual: Dual-Criterion Model Aggregation in"),
        ("owa_weights", "Beyond the papers"),
    ],
)
def test_flags_are_listed_with_their_paper(text, flags, part):
    for flag in flags.split():
        before = re.split(rf"^  --{flag}:", text, flags=re.M)[0]
        assert re.findall(r"^Flags\. (.*)\n=+$", before, re.M)[-1].startswith(part)


def test_a_flag_lists_the_defaults_of_all_that_declare_it(text):
    """Each model's own, where they differ: a run of `mnist_cnn` has no ReLU."""
    words = " ".join(text.split())
    for page in (words, flag_help.markdown()):
        entry = re.split(r"--conv_activation\b", page)[1].split("--initializer")[0]
        linear = re.search(r"none \(([^)]*)\)", entry)[1].split(", ")
        others = re.search(r"relu \(([^)]*)\)", entry)[1].split(", ")
        assert {n for n, m in MODELS.items() if m().conv_activation == "none"} == {
            *linear
        }
        assert {*linear, *others} == {*MODELS} and "mnist_cnn" in linear
    for kinds in COMPONENTS.values():
        for kind in kinds.values():
            for setting in kind.declared():
                mark = (
                    f"--[no]{setting.flag}: "
                    if setting.kind is bool
                    else f"--{setting.flag}: "
                )
                assert setting.has_flag <= (mark in words)
                if (
                    setting.default not in (None, "", ())
                    and setting.kind is str
                    and setting.has_flag
                ):
                    entry = words.split(mark)[1].split(" Default: ")[1]
                    assert setting.default in entry.split(". ")[0], setting


def test_each_experiment_names_an_existing_paper():
    papers = {"", "PMC", "DA", "AdaFed", "Dual"}
    assert {e.paper for e in EXPERIMENTS.values()} == papers
    with pytest.raises(ValueError, match="unknown paper 'PCM'; known: DA, PMC"):
        Experiment("Mine.", settings={}, paper="PCM")
