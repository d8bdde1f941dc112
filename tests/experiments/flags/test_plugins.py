"""Modules that --plugin names: imported from the folder one is in, or refused."""

import functools
import json
import sys

import pytest
from absl import flags
from cli import SMALL, records, refusal, run

from declared_settings import SettingError
from leaf_data.dataset import DATASETS
from tff_pmc.experiments.flags import plugins

TAKEN = """import dataclasses
import leaf_data

@dataclasses.dataclass(frozen=True)
class Mine(leaf_data.Dataset):
    def load(self, data_dir=None, cache_dir=None):
        return None


leaf_data.register("celeba", Mine)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of modules, in which we are; none of them stays imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("own_"):
            del sys.modules[name]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--plugin=own_a,own_b"],
        ["--plugin=own_a", "--flagfile=mine.flags"],
        ["--flagfile=mine.flags"],
        ["--experiment=quickstart", "--resume", "-plugin= own_a , own_b"],
    ],
)
def test_all_named_plugins_are_imported(here, arguments):
    (here / "mine.flags").write_text("# Mine.\n--plugin=own_a,own_b\n")
    for name in ("own_a", "own_b"):
        (here / f"{name}.py").write_text("")
    plugins.import_plugins(arguments)
    assert {"own_a", "own_b"} <= set(sys.modules)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_package", "--plugin=own_a: No module named 'no_such_package'"),
        ("x = 1\nx.y\n", "AttributeError: 'int' object has no attribute 'y' (own_a.py, "
         "line 2)"),
        ("def f(:\n", "SyntaxError: invalid syntax (own_a.py, line 1)"),
        ("import sys\nsys.exit(0)\n", "SystemExit: 0 (own_a.py, line 2)"),
        (TAKEN, "already exists: choose another name (own_a.py, line 10)"),
    ],
    ids=["no package", "an error", "no Python", "an end", "a name that is taken"],
)  # fmt: skip
def test_a_failing_plugin_is_one_line_with_its_location(
    here, text, says, assert_one_line
):
    (here / "own_a.py").write_text(text)
    assert_one_line(
        SettingError, lambda: plugins.import_plugins(["--plugin=own_a"]), says
    )


def test_a_name_that_is_not_a_users_module_is_rejected(here, assert_one_line):
    file = "give the module's name, not its file: --plugin=own_a, from"
    for module in ("own_a", "json"):
        (here / f"{module}.py").write_text("")
    for name, says in (
        *(("own_a.py", file), ("folder/own_a.py", file), ("./own_a", file)),
        ("own_none", "No module named 'own_none'"),
        ("json", "another module has this name ("),
    ):
        words = [f"--plugin={name}"]
        called = functools.partial(plugins.import_plugins, words)
        assert_one_line(SettingError, called, words[0], says)


def test_without_plugins_the_import_path_is_unchanged():
    before = list(sys.path)
    plugins.import_plugins(["--rounds=3", "plugin=mine"])
    assert sys.path == before
    with pytest.raises(flags.Error, match="plugin"):
        plugins.import_plugins(["--plugin"])


DIGITS = """import dataclasses
import pathlib

import leaf_data
import numpy as np

@dataclasses.dataclass(frozen=True)
class Shifted(leaf_data.Dataset):
    def load(self, data_dir=None, cache_dir=None):
        data = leaf_data.load("digits5k", seed=self.seed)
        train = data.train_examples
        labels = (train.y + int(pathlib.Path("shift.txt").read_text())) % 10
        labels = labels.astype(np.int32)
        shifted = dataclasses.replace(train, y=labels)
        return dataclasses.replace(data, train_examples=shifted)


leaf_data.register("own_digits", Shifted)
"""


def test_a_resume_with_other_examples_is_rejected(here, monkeypatch):
    """Whatever they changed by: here a file that the record does not name."""
    monkeypatch.setattr(DATASETS, "_things", dict(DATASETS._things))
    (here / "own_data.py").write_text(DIGITS)
    (here / "shift.txt").write_text("0")
    words = [*SMALL, "--plugin=own_data", "--dataset=own_digits", "--priority=DS"]
    several = [*words, "--seeds=0,1", f"--output_dir={here / 'seeds'}"]
    words.append(f"--output_dir={here / 'out'}")
    for flags_of_run in (words, several):
        run(*flags_of_run)
    before = records(here)
    (here / "shift.txt").write_text("1")
    for flags_of_run in (words, several):
        line = refusal(*flags_of_run, "--resume", "--rounds=3")
        assert "cannot be resumed: its settings now load other examples" in line
    assert records(here) == before
    (here / "shift.txt").write_text("0")
    run(*several, "--resume", "--rounds=3")


@pytest.mark.parametrize("file", ["own_a", "own_help"])
def test_a_changed_plugin_is_reported_when_a_folder_is_resumed(here, file):
    """Or a module that it imports; each run's record says with which it was made."""
    messages = {}
    (here / "own_a.py").write_text("def later():\n    import own_help")
    (here / "own_help.py").write_text("")
    for content, arguments in (("A = 1", ["DS"]), ("A = 2", ["DS;LD", "--resume"])):
        (here / f"{file}.py").write_text(content)
        priority, *resume = arguments
        words = ["--plugin=own_a", f"--priority={priority}", *resume]
        messages[content] = run(*SMALL, *words, f"--output_dir={here / 'out'}").stderr
    assert "other versions" not in messages["A = 1"]
    (said,) = [line for line in messages["A = 2"].splitlines() if "other vers" in line]
    versions = {}
    for name in ("DS", "LD"):
        info = json.loads((here / "out" / name / "run.json").read_text())
        versions[name] = info["versions"]["--plugin=own_a"]
    assert f"(--plugin=own_a: {versions['DS']} there, {versions['LD']} here)" in said
