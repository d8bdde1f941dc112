"""Flags in files and on the command line: which of them count."""

import pathlib

import pytest
from absl import flags

from leaf_data.declare import SettingError
from tff_pmc.experiments.flags import flag_definitions, flag_files

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLES = sorted(path.name for path in (ROOT / "experiments").glob("*.flags"))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes flag files, by name, into the folder we are in."""
    monkeypatch.chdir(tmp_path)

    def write(**texts):
        for name, lines in texts.items():
            (tmp_path / f"{name}.flags").write_text("\n".join(lines) + "\n")

    return write


@pytest.fixture
def given():
    """The values of all flags that arguments give."""

    def of(*arguments):
        values = flags.FlagValues()
        flag_definitions.define(values)
        assert flag_definitions.parse(["x", *arguments], values).rest == []
        return flag_definitions.given(values)

    return of


THREE = ["--priority=DS", "--priority=LD", "--adjustment=fixed", "--rounds=7"]


@pytest.mark.parametrize("before", [True, False])
def test_the_command_line_replaces_all_that_a_file_says(files, given, before):
    files(a=["# A comment.", "", *THREE, "--adjustment=backtracking", "--predictions"])

    def found(*own):
        file = ["--flagfile=a.flags"]
        return given(*(file + [*own] if before else [*own] + file))

    assert found()["priority"] == [("DS",), ("LD",)]
    assert found("--priority=MD,DS")["priority"] == [("MD", "DS")]
    twice = found("--priority=MD", "--priority=LD,DS")
    assert twice["priority"] == [("MD",), ("LD", "DS")]
    assert twice["adjustment"] == ["fixed", "backtracking"]  # Of the file still.
    assert found("--adjustment=best_of_all")["adjustment"] == ["best_of_all"]
    assert found("--rounds=9")["rounds"] == 9 and found()["rounds"] == 7
    assert found("--nopredictions")["predictions"] is False
    for own in (["--priority", "MD"], ["-priority=MD"]):
        assert found(*own)["priority"] == [("MD",)]


def test_a_file_comes_before_the_files_that_it_names(files, given):
    files(
        inner=[*THREE, "--batch_size=3"],
        middle=["--rounds=8", "--flagfile=inner.flags", "--priority=MD"],
        outer=["--flagfile=middle.flags", "--batch_size=5"],
    )
    found = given("--flagfile", "outer.flags")
    assert found["priority"] == [("MD",)] and found["adjustment"] == ["fixed"]
    assert found["rounds"] == 8 and found["batch_size"] == 5
    found = given("--flagfile=outer.flags", "--priority=LD")
    assert found["priority"] == [("LD",)]


def test_of_two_files_the_later_comes_before_the_other(files, given):
    files(a=THREE, b=["--priority=MD", "--rounds=2"])
    found = given("--flagfile=a.flags", "--flagfile=b.flags")
    assert found["priority"] == [("MD",)] and found["rounds"] == 2
    found = given("--flagfile=b.flags", "--flagfile=a.flags")
    assert found["priority"] == [("DS",), ("LD",)] and found["rounds"] == 7
    assert found["adjustment"] == ["fixed"]


def test_lists_may_be_given_in_several_flags(files, given):
    assert given("--systems=median", "--systems=fedavg,dual")["systems"] == (
        "median", "fedavg", "dual",
    )  # fmt: skip
    assert given("--seeds=0", "--seeds=4,5")["seeds"] == (0, 4, 5)
    assert given("--targets=70", "--targets=80")["targets"] == (70, 80)
    files(a=["--systems=median", "--seeds=0,1"])
    found = given("--seeds=3,4", "--flagfile=a.flags", "--systems=fedavg")
    assert found["systems"] == ("fedavg",) and found["seeds"] == (3, 4)
    with pytest.raises(SettingError, match="--seeds=3,3: name two or more seeds, each"):
        given("--seeds=3", "--seeds=3")


@pytest.mark.parametrize("name", TABLES)
def test_a_published_table_is_narrowed_to_one_row(name, labels):
    """The rows of a table are orderings, or else systems."""
    path = f"--flagfile={ROOT / 'experiments' / name}"
    rows = labels(path)
    if "DS" in rows:
        own = [next(row for row in rows if "," in row).split(" ")[0], "DS"]
        flag = [f"--priority={row}" for row in own]
        assert labels(path, "--adjustment=fixed", *flag) == own
        assert labels(*flag[:1], path, "--adjustment=fixed") == own[:1]
        if "backtracking" not in rows[0]:
            assert labels("--priority=DS", path) == ["DS"]
    else:
        word = "fedavg" if name.startswith("adafed") else "median"
        found = labels(path, f"--systems={word}")
        assert len(found) < len(rows)
        assert {row.split(",")[0].lower() for row in found} == {word}


def test_what_a_file_says_of_what_is_not_run_is_passed_over(files, labels):
    files(
        a=[
            "--systems=momentum,median",
            "--momentum_beta=0.3",
            "--personalized_alpha=1",
        ],
        b=["--model=celeba_reference_cnn", "--experiment=drawn_faces", "--dropout=0.1"],
    )
    assert labels("--flagfile=a.flags", "--systems=median") == ["Median"]
    assert labels("--flagfile=a.flags") == ["Momentum", "Median"]
    assert labels("--flagfile=b.flags", "--model=celeba_cnn") == ["DS"]
    own = "--laplace_epsilon=3"  # On the command line it is meant.
    with pytest.raises(SettingError, match="laplace_epsilon is of no use with the"):
        labels("--flagfile=a.flags", "--systems=median", own)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--flagfile=none.flags"], "--flagfile=none.flags: No such file or directory"),
        (["--flagfile=."], "--flagfile=.: Is a directory"),
        (["--flagfile="], "--flagfile= has nothing behind it"),
        (["--rounds=3", "--flagfile"], "--flagfile= has nothing behind it"),
        (["--flagfile=loop.flags"], "--flagfile=loop.flags: the file is named within"),
        (["--flagfile=bytes.flags"], "--flagfile=bytes.flags: it is no text in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    files, given, tmp_path, arguments, says, assert_one_line
):
    files(loop=["--flagfile=round.flags"], round=["--flagfile=loop.flags"])
    (tmp_path / "bytes.flags").write_bytes(b"--priority=\xff\n")
    assert_one_line(SettingError, lambda: given(*arguments), says)


def test_what_is_no_flag_is_left_from_everywhere(files):
    files(a=["rounds=3", "--rounds=4"])
    values = flags.FlagValues()
    flag_definitions.define(values)
    words = ["x", "stray", "--flagfile=a.flags", "--batch_size=2", "--", "--rounds=5"]
    rest = flag_definitions.parse(words, values).rest
    assert sorted(rest) == ["--rounds=5", "rounds=3", "stray"]
    found = flag_definitions.given(values)
    assert found["rounds"] == 4 and found["batch_size"] == 2


def test_an_unknown_flag_in_a_file_is_named(files, given):
    files(a=["--priorities=DS"])
    with pytest.raises(flags.UnrecognizedFlagError, match="priorities"):
        given("--flagfile=a.flags")


def test_the_first_line_of_a_file_says_what_it_makes(tmp_path):
    (tmp_path / "b.flags").write_text("# A table.\n# More.\n--rounds=1\n")
    (tmp_path / "a.flags").write_text("--rounds=1\n")
    found = flag_files.what_files_make(tmp_path)
    assert found == {"a": "", "b": "A table."}
    assert flag_files.what_files_make(tmp_path / "none") == {}
