"""Anybody's words, where people look at them."""

import csv

import pandas as pd
import pytest

from tff_pmc.reports import escape, grids, pages, tables

RED = "\x1b[31mred"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ≻ ✓ ±", "plain ≻ ✓ ±"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        (RED, "\\x1b[31mred"),
        ("\r\0\x9b\x7f", "\\x0d\\x00\\x9b\\x7f"),
        ("evil\u202etxt\u2028", "evil\\u202etxt\\u2028"),
    ],
)
def test_control_characters_are_shown_and_not_sent(text, shown):
    assert escape.printable(text) == shown


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        *(
            (value, value)
            for value in (1, 2.5, None, "", "-", "DS", "-1.5", "+3", "1e9")
        ),
        ("=1+1|cmd", "'=1+1|cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("+cmd", "'+cmd"),
        ("\t=1", "'\t=1"),
        ("\r=1", "\\x0d=1"),
        ("a\nb" + RED, "a\\nb\\x1b[31mred"),
    ],
)
def test_a_cell_of_a_spreadsheet_is_never_a_formula(value, cell):
    assert escape.spreadsheet_cell(value) == cell


def test_a_table_is_escaped_wherever_it_has_text_and_nowhere_else(tmp_path):
    table = pd.DataFrame({"=a": ["=1+1|cmd", None], "b": [1.5, 2], "c": [1, "-x"]})
    path = tmp_path / "table.csv"
    escape.write_csv(table, str(path), index=False)
    assert path.read_text() == "'=a,b,c\n'=1+1|cmd,1.5,1\n,2.0,'-x\n"
    escape.write_csv(table.set_index("=a"), str(path))
    assert list(csv.reader(path.open()))[1][0] == "'=1+1|cmd"
    assert list(table["=a"]) == ["=1+1|cmd", None]


def test_a_table_of_plain_words_has_the_bytes_that_pandas_gives(tmp_path):
    table = pd.DataFrame(
        {"name": ["DS", "LD,DS"], "to": ["-", "3"], "mixed": [1, None], "x": [0.1, 2]}
    ).astype({"mixed": object})
    escape.write_csv(table, str(tmp_path / "a.csv"), index=False, float_format="%.6g")
    table.to_csv(tmp_path / "b.csv", index=False, float_format="%.6g")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_the_results_of_a_run_named_by_somebody_else(tmp_path, run_of):
    runs = [run_of(label, [[1]], [2]) for label in ("DS", "=1+1|cmd", RED)]
    for run in runs:
        run.info["settings"]["targets"] = [50]
    tables.write(runs, str(tmp_path))
    with open(tmp_path / "results.csv", newline="") as file:
        names = {row["experiment"] for row in csv.DictReader(file)}
    assert names == {"DS", "'=1+1|cmd", "\\x1b[31mred"}


def test_a_markdown_table_keeps_its_cells(tmp_path):
    grid = [["name", "n"], ["=1|cmd <img src=x> p < 1", "2"], [RED + "\nx", "3"]]
    page = pages.markdown_table(grid).splitlines()
    assert page[2:] == [
        r"| =1\|cmd \<img src=x> p < 1 | 2 |",
        r"| \x1b[31mred x | 3 |",
    ]
    grids.write(str(tmp_path / "page.md"), RED, [RED], {"part": grid})
    assert "\x1b" not in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize("flag", ["compare", "tables"])
def test_the_terminal_gets_no_control_character(write_ours, tmp_path, flag, capsys):
    from absl import flags

    import run_experiments

    for name in ("a", "b"):
        folder = write_ours(tmp_path / name / "run", [(0, 1)], [[1]], targets=[70])
        info = (folder / "run.json").read_text()
        label = '{"label": "\\u001b[31mred", '
        (folder / "run.json").write_text(info.replace("{", label, 1))
    folders = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    words = [f"--{flag}={folders if flag == 'compare' else tmp_path / 'a'}"]
    words += [f"--output_dir={tmp_path / 'out'}", "--experiment=quickstart"]
    words.insert(0, "run_experiments.py")
    assert run_experiments.main(words, flags.FlagValues()) == 0
    out = capsys.readouterr().out
    assert "\\x1b[31mred" in out and "\x1b" not in out
    assert run_experiments.fail("client \x1b[2J is unknown", 2) == 2
    assert capsys.readouterr().err == "run_experiments.py: client \\x1b[2J is unknown\n"
