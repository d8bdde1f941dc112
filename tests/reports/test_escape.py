"""Anybody's words, where people look at them."""

import json

import pandas as pd
import pytest
from folders import write_ours
from matplotlib import figure
from matplotlib.backends import backend_agg

from tff_pmc import escape
from tff_pmc.reports import Report, output, page_model
from tff_pmc.reports.figures import run_styles

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
def test_control_characters_are_escaped(text, shown):
    assert escape.printable(text) == shown


def test_a_page_keeps_its_lines_and_its_cells(tmp_path):
    bad = "a\n\n# b" + RED
    page = page_model.Page(
        "Ours", [page_model.Heading(bad), page_model.Items([bad])]
    ).markdown()
    text = "a  # b\\x1b[31mred"
    assert page == f"# Ours\n\n## {text}\n\n- {text}\n"
    grid = [["name", "n"], ["=1|cmd _x_", "2"], [RED + "\nx", "3"]]
    lines = page_model.markdown_table(grid).splitlines()
    assert lines[2:] == [r"| =1\|cmd _x_ | 2 |", r"| \x1b[31mred x | 3 |"]
    report = Report.from_grids("page", RED, [RED], {"part": grid}, pd.DataFrame())
    output.write(report, str(tmp_path))
    assert "\x1b" not in (tmp_path / "page.md").read_text()


NAMES = [
    *("plain", "LD,DS (was LD)", "first_half", r"$\frac{1}$", "$", "5 % of $2"),
    *(r"a\$b$", "_hidden", "$x$\n_y_ \\ {z}", r"\undefined #1 & ~^"),
    '"<b>" | [1] * `c`',
]


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_shows_names_verbatim(name):
    """Against matplotlib with its reading of formulas switched off."""
    figures = [figure.Figure(figsize=(4, 1)) for _ in range(2)]
    text = run_styles.figure_text(name)
    figures[0].text(0.1, 0.5, f"{text} and {text}")
    plain = " ".join(name.split("\n"))
    plain = f" {plain}" if plain.startswith("_") else plain
    figures[1].text(0.1, 0.5, f"{plain} and {plain}", parse_math=False)
    drawn = [backend_agg.FigureCanvasAgg(each) for each in figures]
    for canvas in drawn:
        canvas.draw()
    assert bytes(drawn[0].buffer_rgba()) == bytes(drawn[1].buffer_rgba())


@pytest.mark.parametrize("flag", ["compare", "tables"])
def test_the_terminal_gets_no_control_character(tmp_path, flag, capsys):
    import run_experiments

    for name in ("a", "b"):
        folder = write_ours(
            tmp_path / name / "run",
            [(0, 1)],
            [[1]],
            targets=[70],
            experiment="quickstart",
        )
        info = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps({**info, "label": RED}))
    folders = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    words = [f"--{flag}={folders if flag == 'compare' else tmp_path / 'a'}"]
    words += [f"--output_dir={tmp_path / 'out'}", "--experiment=quickstart"]
    words.insert(0, "run_experiments.py")
    assert run_experiments.main(words) == 0
    out = capsys.readouterr().out
    assert "\\x1b[31mred" in out and "\x1b" not in out
    assert run_experiments.report_error("client \x1b[2J is unknown", 2) == 2
    assert capsys.readouterr().err == "run_experiments.py: client \\x1b[2J is unknown\n"
