"""The contents of a wheel: the command, the flag files, the published tables."""

import email
import re
import shutil
import zipfile

import pytest
import yaml
from commands import ROOT, python

import tff_pmc

SOURCES = (
    *("setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"),
    *(
        "run_experiments.py",
        "tff_pmc",
        "leaf_data",
        "declared_settings",
        "experiments",
        "results/paper",
    ),
)
# As pip writes the command of an entry point.
COMMAND = "import sys; sys.argv[0] = {name!r}; import {module}; sys.exit({call}())"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The folder of the unpacked wheel of this checkout."""
    pytest.importorskip("setuptools")
    top = tmp_path_factory.mktemp("wheel")
    copy = top / "checkout"
    for name in SOURCES:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            leave = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=leave)
        else:
            shutil.copy(ROOT / name, copy / name)
    done = python("setup.py", "-q", "bdist_wheel", "--dist-dir", top, cwd=copy)
    assert done.returncode == 0, done.stderr
    (path,) = top.glob("tff_pmc-*-py3-none-any.whl")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(top / "unpacked")
    return top / "unpacked"


@pytest.fixture
def run(wheel, tmp_path):
    """Returns a function that calls the wheel's command in an empty folder."""
    (points,) = wheel.glob("*.dist-info/entry_points.txt")
    name, module, call = re.search(
        r"^\[console_scripts\]\n(\S+) = (\w+):(\w+)$", points.read_text(), re.MULTILINE
    ).groups()
    code = COMMAND.format(name=name, module=module, call=f"{module}.{call}")

    def call_command(*arguments):
        environment = {"PYTHONPATH": str(wheel), "PYTHONSAFEPATH": "1"}
        return python("-c", code, *arguments, cwd=tmp_path, **environment)

    return call_command


def test_the_wheel_has_what_the_checkout_has(wheel):
    for folder in ("experiments", "results/paper"):
        contents = [
            {path.name: path.read_bytes() for path in (root / folder).iterdir()}
            for root in (wheel / "tff_pmc" / "_project", ROOT)
        ]
        assert contents[0] == contents[1] and len(contents[0]) > 10
    for folder in ("tff_pmc", "leaf_data", "declared_settings"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".pyi"):
                assert (wheel / path.relative_to(ROOT)).is_file(), path
        assert (wheel / folder / "py.typed").is_file()


def test_the_wheel_has_its_metadata(wheel):
    (path,) = wheel.glob("*.dist-info/METADATA")
    metadata = email.message_from_string(path.read_text(encoding="utf-8"))
    assert metadata["Version"] == tff_pmc.__version__
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert metadata.get_payload().strip() == readme.strip()
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    assert metadata["Keywords"] and "Typing :: Typed" in metadata.get_all("Classifier")
    named = [text.split(", ")[1] for text in metadata.get_all("Project-URL")]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    papers = [paper for paper in citation["references"] if {"url", "doi"} & {*paper}]
    assert len(papers) == 3
    for paper, address in zip(papers, named):
        assert address in (paper.get("url"), f"https://doi.org/{paper.get('doi')}")


def test_code_of_the_wheel_finds_the_wheels_files_and_not_a_checkouts(wheel, tmp_path):
    code = (
        "from tff_pmc import project_files\n"
        "from tff_pmc.reports.statistics import published\n"
        "print(project_files.folder('experiments'))\n"
        "print(published.FOLDER, len(published.table('pmc_table4')))"
    )
    done = python("-c", code, cwd=tmp_path, PYTHONPATH=str(wheel))
    first, second = done.stdout.splitlines()
    assert first == str(wheel / "tff_pmc" / "_project" / "experiments")
    folder, count = second.split()
    assert folder == str(wheel / "tff_pmc" / "_project" / "results" / "paper")
    lines = (ROOT / "results/paper/pmc_table4.csv").read_text().splitlines()
    assert int(count) == len(lines) - 1


def test_the_command_of_the_wheel_is_run_experiments(run):
    shown = run("--help")
    assert shown.returncode == 0, shown.stderr
    assert "  tff-pmc --flagfile=experiments/quickstart.flags\n" in shown.stdout
    assert "run_experiments.py" not in shown.stdout
    words = " ".join(shown.stdout.split())
    assert "docs/NAME.md is named, that is a document in the project's source" in words
    for name in set(re.findall(r"docs/([a-z_]+\.md)", words)):
        assert (ROOT / "docs" / name).is_file(), name
    refused = run("--flagfile=quickstart.flags", "--rounds=0")
    assert refused.returncode == 2
    expected = "tff-pmc: --rounds must be at least 1, below 2^31, got 0\n"
    assert refused.stderr == expected


def test_citation_and_changelog_have_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == tff_pmc.__version__
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"version = {{{tff_pmc.__version__}}}" in readme
    assert len(citation["references"]) == 4
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{tff_pmc.__version__}]" in changes or (
        "## [Unreleased]" in changes and f"will be {tff_pmc.__version__}" in changes
    )
