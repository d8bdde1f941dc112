"""Anybody's words, where people look at them."""

import csv
import json

import pandas as pd
import pytest
from matplotlib import figure
from matplotlib.backends import backend_agg

from tff_pmc.reports import escape, output, pages

RED = "\x1b[31mred"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ≻ ✓ ±", "plain ≻ ✓ ±"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        (RED, "\\x1b[31mred"),
        ("\r\0\x9b\x7f", "\\r\\x00\\x9b\\x7f"),
        ("evil\u202etxt\u2028", "evil\\u202etxt\\u2028"),
    ],
)
def test_control_characters_are_shown_and_not_sent(text, shown):
    assert escape.printable(text) == shown


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        *((same, same) for same in (1, 2.5, None, "", "-", "DS", "-1.5", "+3", "1e9")),
        ("=1+1|cmd", "'=1+1|cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("+cmd", "'+cmd"),
        ("\t=1", "'\t=1"),
        ("\r=1", "\\r=1"),
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


def test_a_table_lies_where_its_name_says(tmp_path, monkeypatch):
    """No part of the name is a home, and no ending packs it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~").mkdir()
    escape.write_csv(pd.DataFrame({"a": [1]}), "~/table.csv.gz", index=False)
    assert (tmp_path / "~" / "table.csv.gz").read_text() == "a\n1\n"


def test_no_text_of_a_record_is_a_heading_html_or_a_link():
    bad = "a\n\n# b \\<img src=x> [c\\](javascript:d) p < 1 `code`"
    text = r"a  # b \&lt;img src=x> [c\&#93;(javascript:d) p < 1 `code`"
    page = pages.Page("Ours", [pages.Heading(bad), pages.Items([bad])]).markdown()
    assert page == f"# Ours\n\n## {text}\n\n- {text}\n"


def test_a_markdown_table_keeps_its_cells(tmp_path):
    grid = [["name", "n"], ["=1|cmd <img src=x> p < 1", "2"], [RED + "\nx", "3"]]
    page = pages.markdown_table(grid).splitlines()
    assert page[2:] == [
        r"| =1\|cmd &lt;img src=x> p < 1 | 2 |",
        r"| \\x1b\[31mred x | 3 |",
    ]
    made = pages.report("page", RED, [RED], {"part": grid}, pd.DataFrame())
    output.write(made, str(tmp_path))
    assert "\x1b" not in (tmp_path / "page.md").read_text()


NAMES = [
    *("plain", "LD,DS (was LD)", "first_half", r"$\frac{1}$", "$", "5 % of $2"),
    *(r"a\$b$", "_hidden", "$x$\n_y_ \\ {z}", r"\undefined #1 & ~^"),
    '"<b>" | [1] * `c`',
]


def test_the_markup_of_markdown_is_shown_and_not_obeyed():
    shown = {
        "first_half 1_000 p < 1 R & D": "first_half 1_000 p < 1 R & D",
        "_x_ __init__ _": r"\_x\_ \_\_init\_\_ \_",
        "**b** `c` $x$": r"\*\*b\*\* \`c\` \$x\$",
        "![a](b) <img> &lt; a\\b": r"!\[a\](b) &lt;img> \&lt; a\\b",
        "a\tb\nc": "a b c",
    }
    assert {text: escape.markdown_cell(text) for text in shown} == shown


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_shows_a_name_as_it_is(name):
    """Against matplotlib with its reading of formulas switched off."""
    figures = [figure.Figure(figsize=(4, 1)) for _ in range(2)]
    text = escape.figure_text(name)
    figures[0].text(0.1, 0.5, f"{text} and {text}")
    plain = " ".join(name.split("\n"))
    plain = f" {plain}" if plain.startswith("_") else plain
    figures[1].text(0.1, 0.5, f"{plain} and {plain}", parse_math=False)
    drawn = [backend_agg.FigureCanvasAgg(each) for each in figures]
    for canvas in drawn:
        canvas.draw()
    assert bytes(drawn[0].buffer_rgba()) == bytes(drawn[1].buffer_rgba())


@pytest.mark.parametrize("flag", ["compare", "tables"])
def test_the_terminal_gets_no_control_character(write_ours, tmp_path, flag, capsys):
    import run_experiments

    for name in ("a", "b"):
        folder = write_ours(tmp_path / name / "run", [(0, 1)], [[1]], targets=[70])
        info = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**info, "label": RED}))
    folders = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    words = [f"--{flag}={folders if flag == 'compare' else tmp_path / 'a'}"]
    words += [f"--output_dir={tmp_path / 'out'}", "--experiment=quickstart"]
    words.insert(0, "run_experiments.py")
    assert run_experiments.main(words) == 0
    out = capsys.readouterr().out
    assert "\\x1b[31mred" in out and "\x1b" not in out
    assert run_experiments.fail("client \x1b[2J is unknown", 2) == 2
    assert capsys.readouterr().err == "run_experiments.py: client \\x1b[2J is unknown\n"
