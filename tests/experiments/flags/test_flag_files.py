"""Flags in files and on the command line: which of them count."""

import os

import pytest
from absl import flags
from cli import ROOT, labels

from declared_settings import SettingError
from tff_pmc.experiments.flags import flag_definitions

TABLES = sorted(path.name for path in (ROOT / "experiments").glob("*.flags"))
THREE = ["--priority=DS;LD", "--adjustment=fixed", "--rounds=7"]


# Files as editors and people write them, and what is given by them.
AS_PEOPLE_WRITE = {
    "mark": "\ufeff--rounds=7\n--priority=DS;LD\n",
    "comments": "--rounds=7  # for a trial\n--priority=DS;LD\t// both\n  # the end",
    "space": "--rounds 7\n--priority = DS;LD\n",
    "quotes": "--rounds='7'\n--priority=\"DS;LD\"\n",
    "windows": "--rounds=7\r\n\r\n--priority=DS;LD\r\n",
    "shell": "--rounds=7 \\\n  --priority='DS;LD' \\\n",
    "switch": "--predictions # all\n--rounds=7\n--priority=DS;LD",
    "twice": "--priority=DS\n--rounds=2\n--priority=LD\n",
    "many": "--targets=50\n--targets=60\n",
    "no_dashes": "# One.\nrounds=7\n",
    "two": "--rounds=7 --priority=DS\n",
    "folder": "--output_dir=out --resume\n",
    "nested": "--flagfile=twice.flags\n",
    "number": "--output_dir=a#1\n--algorithms=fedavg,AdaFed weights-only\n",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Flag files, by name, in the folder we are in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    texts = {
        "three": ["# A comment.", "", *THREE, "--predictions"],
        "other": ["--priority=MD", "--rounds=2"],
        "middle": ["--rounds=8", "--flagfile=three.flags", "--priority=MD"],
        "loop": ["--rounds=4", "--flagfile=loop.flags"],
        "unknown": ["--priorities=DS"],
        "quickstart": ["--rounds=1"],
    }
    for name, lines in texts.items():
        (tmp_path / f"{name}.flags").write_text("\n".join(lines) + "\n")
    os.mkfifo(tmp_path / "pipe.flags")
    (tmp_path / "bytes.flags").write_bytes(b"--priority=\xff\n")
    for name, lines in AS_PEOPLE_WRITE.items():
        (tmp_path / f"{name}.flags").write_bytes(lines.encode())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--flagfile=three.flags"],
         {"priority": [("DS",), ("LD",)], "adjustment": ["fixed"], "rounds": 7,
          "predictions": True}),
        # What stands later counts, and a file stands where it is named.
        (["--flagfile=three.flags", "--priority=MD,DS"], {"priority": [("MD", "DS")]}),
        (["--priority=MD,DS", "--flagfile=three.flags"],
         {"priority": [("DS",), ("LD",)]}),
        (["--rounds=9", "-flagfile", "three.flags", "--rounds", "3", "--rounds=5"],
         {"rounds": 5}),
        (["--flagfile=three.flags", "--rounds=9", "--nopredictions"],
         {"rounds": 9, "predictions": False}),
        (["--flagfile=middle.flags"], {"priority": [("MD",)], "rounds": 7}),
        (["--flagfile=three.flags", "--flagfile=other.flags"],
         {"priority": [("MD",)], "rounds": 2, "adjustment": ["fixed"]}),
        (["--flagfile=other.flags", "--flagfile=three.flags"],
         {"priority": [("DS",), ("LD",)], "rounds": 7}),
        (["--flagfile=loop.flags"], {"rounds": 4}),
        # Several values of one flag.
        (["--priority=MD;LD,DS", "--adjustment=fixed,backtracking"],
         {"priority": [("MD",), ("LD", "DS")],
          "adjustment": ["fixed", "backtracking"]}),
        (["--algorithms=median,dual"], {"algorithms": ("median", "dual")}),
        # What stands in the folder comes before what comes with the project.
        (["--flagfile=quickstart.flags"], {"rounds": 1}),
        (["--flagfile=experiments/quickstart.flags"], {"experiment": "quickstart"}),
        (["--flagfile=~/other.flags"], {"rounds": 2}),
        (["--flagfile=pmc_table2.flags"], {"experiment": "mnist_iid"}),
        *(([f"--flagfile={name}.flags"], {"rounds": 7, "priority": [("DS",), ("LD",)]})
          for name in [*AS_PEOPLE_WRITE][:7]),
        (["--flagfile=switch.flags"], {"predictions": True}),
        (["--flagfile=number.flags"],
         {"output_dir": "a#1", "algorithms": ("fedavg", "adafed_weights_only")}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_the_flags_that_apply_with_flag_files(files, tmp_path, arguments, expected):
    values = flag_definitions.parse(arguments)
    assert {flag: values.get(flag) for flag in expected} == expected
    assert values or not arguments
    # A recorded command needs no file of the user.
    words = flag_definitions.without_user_files(arguments)
    for file in tmp_path.iterdir():
        file.unlink()
    assert flag_definitions.parse(words) == values


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--flagfile=none.flags"], "--flagfile=none.flags: no such file; the project"),
        (["--flagfile", "none.flags"], "quickstart.flags"),
        (["--flagfile=mine/quickstart.flags"], "mine/quickstart.flags: no such file"),
        (
            ["--flagfile=/quickstart.flags"],
            "--flagfile=/quickstart.flags: no such file",
        ),
        (["--flagfile=experiments/"], "--flagfile=experiments/: no such file"),
        (["--flagfile=."], "--flagfile=.: no such file"),
        (["--flagfile=pipe.flags"], "--flagfile=pipe.flags: no such file"),
        (["--flagfile=/dev/zero"], "--flagfile=/dev/zero: no such file"),
        (["--flagfile="], "--flagfile=: no such file"),
        (["--rounds=3", "--flagfile"], "--flagfile is empty"),
        (
            ["--flagfile=bytes.flags"],
            "--flagfile=bytes.flags: the file is not UTF-8 text",
        ),
        (["--flagfile=twice.flags"], "--priority is given twice in twice.flags: give"),
        (["--flagfile=nested.flags"], "--priority is given twice in twice.flags"),
        (["--flagfile=many.flags"], "--targets is given twice in many.flags: give it"),
        (["--flagfile=no_dashes.flags"], "no_dashes.flags: line 2 is 'rounds=7': a "),
        (["--flagfile=two.flags"], "two.flags: line 1 has --rounds and --priority"),
        (
            ["--flagfile=folder.flags"],
            "line 1 has --output_dir and --resume: give",
        ),
        (["--flagfile=~nobody_here/a.flags"], "~nobody_here/a.flags: this machine has"),
        (["--flagfile=unknown.flags"], "Unknown command line flag 'priorities'"),
        (["--flagfile=other.flags", "stray"], "unexpected argument: stray"),
        (["--flagfile=other.flags", "--", "--rounds=5"], "argument: --rounds=5"),
    ],
)
def test_an_unreadable_flag_file_is_one_line(files, arguments, says, assert_one_line):
    kinds = (SettingError, flags.Error)
    assert_one_line(kinds, lambda: flag_definitions.parse(arguments), says)


@pytest.mark.parametrize("name", [x for x in TABLES if "synthetic" not in x])
def test_a_published_table_is_narrowed_to_one_row(name):
    """The rows of a table are orderings, or else algorithms.

    The files of synthetic data have --rows, which --rows replaces.
    """
    path = f"--flagfile={ROOT / 'experiments' / name}"
    rows = labels(path)
    if "DS" in rows:
        chosen = [next(row for row in rows if "," in row).split(" ")[0], "DS"]
        flag = f"--priority={';'.join(chosen)}"
        assert labels(path, "--adjustment=fixed", flag) == chosen
        if "backtracking" not in rows[0]:
            assert labels(path, "--priority=DS") == ["DS"]
    else:
        word = "median" if name.startswith("dual") else "fedavg"
        run_labels = labels(path, f"--algorithms={word}")
        assert len(run_labels) < len(rows)
        assert {row.split(",")[0].lower() for row in run_labels} == {word}


def test_a_flag_without_effect_is_rejected_wherever_it_stands(tmp_path):
    file = tmp_path / "a.flags"
    file.write_text("--algorithms=momentum,median\n--momentum_beta=0.3\n")
    assert labels(f"--flagfile={file}") == ["Momentum", "Median"]
    with pytest.raises(SettingError, match="momentum_beta has no effect on the"):
        labels(f"--flagfile={file}", "--algorithms=median")
