"""Flags in files and on the command line: which of them count."""

import pytest
from absl import flags
from cli import ROOT, labels

from leaf_data.settings import SettingError
from tff_pmc.experiments.flags import flag_definitions

TABLES = sorted(path.name for path in (ROOT / "experiments").glob("*.flags"))
THREE = ["--priority=DS", "--priority=LD", "--adjustment=fixed", "--rounds=7"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Flag files, by name, in the folder we are in."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "three": ["# A comment.", "", *THREE, "--predictions"],
        "list": ["--priority=DS;LD", "--systems=median", "--seeds=0,1"],
        "other": ["--priority=MD", "--rounds=2"],
        "middle": ["--rounds=8", "--flagfile=three.flags", "--priority=MD"],
        "outer": ["--flagfile=middle.flags", "--batch_size=5"],
        "loop": ["--flagfile=round.flags"],
        "round": ["--flagfile=loop.flags"],
        "unknown": ["--priorities=DS"],
        **{f"deep{n}": [f"--flagfile=deep{n + 1}.flags"] for n in range(20)},
        "deep20": ["--rounds=3"],
        "quickstart": ["--rounds=1"],
    }
    for name, lines in texts.items():
        (tmp_path / f"{name}.flags").write_text("\n".join(lines) + "\n")
    (tmp_path / "bytes.flags").write_bytes(b"--priority=\xff\n")


def given(*arguments):
    return flag_definitions.parse(arguments).values


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], {}),
        (["--flagfile=three.flags"],
         {"priority": [("DS",), ("LD",)], "adjustment": ["fixed"], "rounds": 7,
          "predictions": True}),
        # The command line replaces all that a file says of a flag.
        (["--flagfile=three.flags", "--priority=MD,DS"], {"priority": [("MD", "DS")]}),
        (["--priority=MD,DS", "--flagfile=three.flags"], {"priority": [("MD", "DS")]}),
        (["--priority", "MD", "-flagfile", "three.flags"], {"priority": [("MD",)]}),
        (["-priority=MD", "--flagfile=three.flags"], {"priority": [("MD",)]}),
        (["--flagfile=three.flags", "--priority=MD", "--priority=LD,DS"],
         {"priority": [("MD",), ("LD", "DS")], "adjustment": ["fixed"]}),
        (["--flagfile=three.flags", "--rounds=9", "--nopredictions"],
         {"rounds": 9, "predictions": False}),
        # One list is as several flags.
        (["--flagfile=list.flags"], {"priority": [("DS",), ("LD",)]}),
        (["--flagfile=list.flags", "--priority=MD;LD,DS", "--priority=DS"],
         {"priority": [("MD",), ("LD", "DS"), ("DS",)]}),
        (["--systems=median", "--systems=fedavg,dual"],
         {"systems": ("median", "fedavg", "dual")}),
        (["--seeds=0", "--seeds=4,5", "--targets=70", "--targets=80"],
         {"seeds": (0, 4, 5), "targets": (70, 80)}),
        (["--seeds=3,4", "--flagfile=list.flags", "--systems=fedavg"],
         {"systems": ("fedavg",), "seeds": (3, 4)}),
        # A file comes before the files that it names.
        (["--flagfile", "outer.flags"],
         {"priority": [("MD",)], "adjustment": ["fixed"], "rounds": 8,
          "batch_size": 5}),
        (["--flagfile=outer.flags", "--priority=LD"], {"priority": [("LD",)]}),
        # Of two files the later one comes before the other.
        (["--flagfile=three.flags", "--flagfile=other.flags"],
         {"priority": [("MD",)], "rounds": 2, "adjustment": ["fixed"]}),
        (["--flagfile=other.flags", "--flagfile=three.flags"],
         {"priority": [("DS",), ("LD",)], "rounds": 7}),
        # What stands in the folder comes before what comes with the project.
        (["--flagfile=quickstart.flags"], {"rounds": 1}),
        (["--flagfile=experiments/quickstart.flags"], {"experiment": "quickstart"}),
        (["--flagfile=~/other.flags"], {"rounds": 2}),
        (["--flagfile=pmc_table2.flags"], {"experiment": "mnist_iid"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_which_flags_count(files, tmp_path, monkeypatch, arguments, found):
    monkeypatch.setenv("HOME", str(tmp_path))
    values = given(*arguments)
    assert {flag: values.get(flag) for flag in found} == found
    assert values or not arguments


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["none.flags"], "--flagfile=none.flags: No such file or directory; the files"),
        (["none.flags"], "quickstart.flags"),
        (["mine/quickstart.flags"], "--flagfile=mine/quickstart.flags: No such file"),
        (["/quickstart.flags"], "--flagfile=/quickstart.flags: No such file"),
        (["experiments/"], "--flagfile=experiments/: "),
        (["."], "--flagfile=.: Is a directory"),
        ([""], "--flagfile= has nothing behind it"),
        (["loop.flags"], "--flagfile=loop.flags: the file is named within itself"),
        (["deep0.flags"], "--flagfile=deep16.flags: the file is named within itself"),
        (["bytes.flags"], "--flagfile=bytes.flags: it is no text in UTF-8"),
        (["list.flags", "--seeds=3,3"], "--seeds=3,3: name two or more seeds, each"),
        (["list.flags", "stray"], "unexpected argument: stray"),
        (["list.flags", "--", "--rounds=5"], "unexpected argument: --rounds=5"),
    ],
)
def test_what_cannot_be_read_is_one_line(files, arguments, says, assert_one_line):
    words = [f"--flagfile={arguments[0]}", *arguments[1:]]
    assert_one_line(SettingError, lambda: given(*words), says)


def test_a_flag_file_without_a_name_and_an_unknown_flag_in_a_file(files):
    with pytest.raises(SettingError, match="--flagfile= has nothing behind it"):
        given("--rounds=3", "--flagfile")
    with pytest.raises(flags.UnrecognizedFlagError, match="priorities"):
        given("--flagfile=unknown.flags")


@pytest.mark.parametrize("name", TABLES)
def test_a_published_table_is_narrowed_to_one_row(name):
    """The rows of a table are orderings, or else systems."""
    path = f"--flagfile={ROOT / 'experiments' / name}"
    rows = labels(path)
    if "DS" in rows:
        own = [next(row for row in rows if "," in row).split(" ")[0], "DS"]
        flag = f"--priority={';'.join(own)}"
        assert labels(path, "--adjustment=fixed", flag) == own
        first = f"--priority={own[0]}"
        assert labels(first, path, "--adjustment=fixed") == own[:1]
        if "backtracking" not in rows[0]:
            assert labels("--priority=DS", path) == ["DS"]
    else:
        word = "median" if name.startswith("dual") else "fedavg"
        found = labels(path, f"--systems={word}")
        assert len(found) < len(rows)
        assert {row.split(",")[0].lower() for row in found} == {word}


def test_what_a_file_says_of_what_is_not_run_is_passed_over(files, tmp_path):
    of_systems = ["--systems=momentum,median", "--momentum_beta=0.3"]
    (tmp_path / "a.flags").write_text("\n".join(of_systems))
    of_models = ["--experiment=celeba", "--model=celeba_reference_cnn"]
    (tmp_path / "b.flags").write_text("\n".join([*of_models, "--dropout=0.1"]))
    assert labels("--flagfile=a.flags", "--systems=median") == ["Median"]
    assert labels("--flagfile=a.flags") == ["Momentum", "Median"]
    assert labels("--flagfile=b.flags", "--model=celeba_cnn") == ["DS"]
    own = "--laplace_epsilon=3"  # On the command line it is meant.
    with pytest.raises(SettingError, match="laplace_epsilon is of no use with the"):
        labels("--flagfile=a.flags", "--systems=median", own)
