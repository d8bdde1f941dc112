"""Flag files by path, and by the names of those that come with the project."""

import pathlib

import pytest
from absl import flags

from leaf_data.declare import SettingError
from tff_pmc.experiments.flags import flag_file_paths, flag_files

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = str(ROOT / "experiments" / "quickstart.flags")


@pytest.mark.parametrize("name", ["quickstart.flags", "experiments/quickstart.flags"])
def test_ours_are_found_from_any_folder(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert flag_file_paths.path_of(name) == OURS


def test_a_file_of_the_users_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart.flags").write_text("--rounds=1\n")
    assert flag_file_paths.path_of("quickstart.flags") == "quickstart.flags"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert flag_file_paths.path_of("~/quickstart.flags") == "~/quickstart.flags"


@pytest.mark.parametrize(
    "name", ["no.flags", "mine/quickstart.flags", "/quickstart.flags", "experiments/"]
)
def test_what_is_nowhere_is_refused(tmp_path, monkeypatch, assert_one_line, name):
    monkeypatch.chdir(tmp_path)
    call = lambda: flag_file_paths.path_of(name)  # noqa: E731
    assert_one_line(SettingError, call, f"--flagfile={name}: ", "quickstart.flags")


@pytest.mark.parametrize(
    "words", [["--flagfile=quickstart.flags"], ["-flagfile", "quickstart.flags"]]
)
def test_the_command_line_finds_ours(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    found = flag_files.resolve(words, flags.FlagValues())
    assert found.of_files == {"experiment": ["--experiment=quickstart"]}
