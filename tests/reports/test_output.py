"""Tables and figures in the forms that are in force, each by one writer."""

import dataclasses
import pathlib
import re

import pandas as pd
import pytest

from tff_pmc.experiments import remake
from tff_pmc.reports import escape, latex, output, pages
from tff_pmc.reports.kept import kept_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES, RESULTS = ROOT / "tff_pmc", ROOT / "results" / "reproduced"
GRID = [["name", "gain"], ["a_b & 50 %", "≤3"], ["[1] {x}", "-1.5 ± 2"]]
LATEX = r"""% Needs the packages amssymb, array, booktabs and graphicx.

\begin{itemize}\sloppy
  \item Made by \texttt{this\_one}.
\end{itemize}

\begin{table}
  \centering
  \caption{A\_title. 70 \% \textgreater{} 60 \%. my\_data: 3 clients, rate 0.1.}
  \label{tab:my-data-table-1}
  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
  \begin{tabular}{ll}
    \toprule
    name & gain \\
    \midrule
    a\_b \& 50 \% & $\le$3 \\
    {[}1] \{x\} & $-$1.5 $\pm$ 2 \\
    \bottomrule
  \end{tabular}}
\end{table}
"""
ABOUT = "my_data: 3 clients, rate 0.1"


def write_page(folder, form):
    parts = {"70 % > 60 %": GRID}
    notes = ["Made by `this_one`."]
    report = pages.report("table", "A_title", notes, parts, pd.DataFrame())
    with output.using(output.Output(tables=form)):
        report = dataclasses.replace(report, tables={})
        return output.write(report, str(folder), ABOUT)


def test_a_table_in_latex_by_hand(tmp_path):
    write_page(tmp_path, "latex")
    assert [path.name for path in tmp_path.iterdir()] == ["table.tex"]
    assert (tmp_path / "table.tex").read_text(encoding="utf-8") == LATEX


def test_the_forms_differ_in_the_files_alone(tmp_path):
    texts = [write_page(tmp_path / form, form) for form in output.TABLES]
    assert len(set(texts)) == 1
    assert not list((tmp_path / "csv").iterdir())
    page = (tmp_path / "markdown" / "table.md").read_text(encoding="utf-8")
    parts = ["# A_title", "- Made by `this_one`.", "## 70 % > 60 %"]
    assert page.split("\n\n")[:3] == parts


def latex_tables(source):
    """Captions, labels, and grids of cells; what LaTeX would stop at is asserted."""
    plain = re.sub(r"\\[\\{}&%$#_]", "", source)  # Escaped ones, and line ends.
    plain = re.sub(r"(?m)%.*$", "", plain)
    assert plain.isascii() and not re.search(r"[#_^~]", plain)
    assert plain.count("$") % 2 == 0 and plain.count("{") == plain.count("}")
    opened = []
    for word, name in re.findall(r"\\(begin|end)\{(\w+)\}", source):
        opened.append(name) if word == "begin" else None
        assert word == "begin" or opened.pop() == name
    assert not opened
    captions = re.findall(r"\\caption\{(.*)\}\n", source)
    labels = re.findall(r"\\label\{([\w:-]+)\}", source)
    bodies = re.findall(r"(?s)\\toprule\n(.*?)\\bottomrule", source)
    lines = [[x for x in body.splitlines() if "&" in x] for body in bodies]
    grids = [[re.split(r"(?<!\\)&", line) for line in of] for of in lines]
    for grid in grids:
        assert len({len(row) for row in grid}) == 1
    assert len(grids) == len(captions) and len(set(labels)) == len(labels)
    return captions, labels, grids


@pytest.mark.parametrize("name", ["adafed_1", "quickstart_counterfactuals"])
def test_tables_of_kept_runs_in_latex_can_go_into_a_paper(name, tmp_path):
    """Each has a caption that names the data, one has a label, none a plain minus."""
    (kept,) = kept_folders(str(RESULTS / name))
    with output.using(output.Output("latex", output.NO_FIGURES)):
        remake.remake(kept, str(tmp_path))
    made = sorted(tmp_path.glob("*.tex"))
    assert {"seeds.tex"} <= {p.name for p in made} or name != "adafed_1"
    for path in made:
        captions, labels, grids = latex_tables(path.read_text(encoding="utf-8"))
        assert captions and labels[0].endswith(f"-{path.stem}-1")
        for caption in captions:
            assert re.search(r"(6|100) clients, .*rate (1|0\.1)", caption), caption
        cells = [cell for grid in grids for row in grid for cell in row]
        assert not [cell for cell in cells if re.search(r"(?<!\w)-\.?\d", cell)]


def test_a_table_in_latex_is_no_wider_and_no_longer_than_a_page():
    """Of 12 columns of 15 letters two parts; of 50 lines two; long cells are broken."""
    head = ["name", *(f"column {n:08}" for n in range(12)), "words"]
    line = ["a", *["1"] * 12, "some words " * 20]
    page = pages.Page("Title", [pages.Table([head, *[line] * 50])])
    source = latex.latex(page, "wide")
    captions, labels, grids = latex_tables(source)
    assert [(len(grid), len(grid[0])) for grid in grids] == [
        *((41, 8), (11, 8), (41, 7), (11, 7))
    ]
    assert {grid[1][0].strip() for grid in grids} == {"a"}
    assert labels == ["tab:wide-1"]
    assert captions == ["Title.", *["Title. Continued."] * 3]
    broken = [">{" in x for x in re.findall(r"begin\{tabular\}(.*)", source)]
    assert broken == [False, False, True, True]


def test_no_character_of_a_text_is_a_command_of_latex():
    shown = {
        "-": r"\textendash{}",
        "-0.5 (-.5 to 2-3) x-1": r"$-$0.5 ($-$.5 to 2-3) x-1",
        "--seeds=-1": r"-{}-seeds=$-$1",
    }
    assert {text: escape.latex_text(text) for text in shown} == shown
    text = "\\input{x} $y$ ~^ #1 <b> `code_1` \x1b \n%"
    found = escape.latex_text(text)
    assert found == (
        r"\textbackslash{}input\{x\} \$y\$ \textasciitilde{}\textasciicircum{} \#1 "
        r"\textless{}b\textgreater{} \texttt{code\_1} \textbackslash{}x1b  \%"
    )


def test_forms_end_with_their_context_and_others_are_refused():
    with output.using(output.Output("latex", "pdf")):
        assert output.current() == output.Output("latex", "pdf")
    assert output.current() == output.Output("markdown", "png")
    for wrong in ({"tables": "word"}, {"figures": "gif"}):
        with pytest.raises(ValueError, match="is none of"):
            output.Output(**wrong)


@pytest.mark.parametrize(
    ("call", "modules"),
    [
        ("savefig(", {"figures.py"}),
        (".to_csv(", {"escape.py", "claims_page.py"}),
        ("write_csv(", {"escape.py", "output.py"}),
        ("write_page(", {"escape.py", "output.py"}),
        ("matplotlib.use", set()),
    ],
)
def test_reports_have_one_writer(call, modules):
    found = {path.name for path in SOURCES.rglob("*.py") if call in path.read_text()}
    assert found == modules
