"""Tables and figures in the current formats, each by one writer."""

import dataclasses
import pathlib
import re

import pandas as pd
import pytest
from small_results import of_seeds

from tff_pmc.reports import Report, output, page_model
from tff_pmc.reports.tables import effect, summary

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "tff_pmc"
GRID = [["name", "gain"], ["a_b & 50 %", "≤3"], ["[1] {x}", "-1.5 ± 2"]]
LATEX = r"""% Needs the packages amssymb and booktabs.

% Made by this_one.

\begin{table}
\caption{A\_title. 70 \% \textgreater{} 60 \%. my\_data: 3 clients, rate 0.1.}
\label{tab:my-data-table-1}
\begin{tabular}{ll}
\toprule
name & gain \\
\midrule
a\_b \& 50 \% & $\le$3 \\
{[}1] \{x\} & -1.5 $\pm$ 2 \\
\bottomrule
\end{tabular}
\end{table}
"""
ABOUT = "my_data: 3 clients, rate 0.1"


def write_page(folder, form):
    parts = {"70 % > 60 %": GRID}
    notes = ["Made by this_one."]
    report = Report.from_grids("table", "A_title", notes, parts, pd.DataFrame())
    with output.using(output.Output(tables=form)):
        report = dataclasses.replace(report, tables={})
        return output.write(report, str(folder), ABOUT)


def test_a_table_in_latex_by_hand(tmp_path):
    write_page(tmp_path, "latex")
    assert [path.name for path in tmp_path.iterdir()] == ["table.tex"]
    assert (tmp_path / "table.tex").read_text(encoding="utf-8") == LATEX


def test_output_forms_differ_only_in_the_files(tmp_path):
    texts = [write_page(tmp_path / form, form) for form in output.TABLE_FORMATS]
    assert len(set(texts)) == 1
    assert not list((tmp_path / "csv").iterdir())
    page = (tmp_path / "markdown" / "table.md").read_text(encoding="utf-8")
    parts = ["# A_title", "- Made by this_one.", "## 70 % > 60 %"]
    assert page.split("\n\n")[:3] == parts


def test_reports_in_latex_can_go_into_a_paper(tmp_path):
    """Each table has a caption that names the data, and a label."""
    by_seed = {s: {"DS": [[s, 3]], "LD≻,DS": [[s, 2]]} for s in range(5)}
    results = of_seeds(by_seed, [9, 9], targets=(30,))
    with output.using(output.Output("latex")):
        for report in (effect.report(results), summary.report(results)):
            output.write(report, str(tmp_path), "wells: 2 clients, rate 0.1")
    for name, tables in (("effect", 8), ("seeds", 2)):
        source = (tmp_path / f"{name}.tex").read_text(encoding="utf-8")
        lines = [line for line in source.splitlines() if line[:1] != "%"]
        assert "\n".join(lines).isascii()
        captions = re.findall(r"\\caption\{(.*)\}\n", source)
        labels = re.findall(r"\\label\{([\w:-]+)\}", source)
        assert labels == [f"tab:wells-{name}-{k + 1}" for k in range(tables)]
        assert all("2 clients, rate 0.1" in caption for caption in captions)


def test_text_is_escaped_for_latex():
    grid = [["a", "b"], ["\\input{x} $y$ ~^ #1 <b>\x1b \n%", "[1] ≻ – — ✓ †"]]
    source = page_model.Page("", [page_model.Table(grid)]).latex("x")
    line = source.partition("\\midrule\n")[2].partition(" \\\\\n")[0]
    first, second = line.split(" & ")
    assert first == (
        r"\textbackslash{}input\{x\} \$y\$ \textasciitilde{}\textasciicircum{} \#1 "
        r"\textless{}b\textgreater{}\textbackslash{}x1b  \%"
    )
    assert second == r"{[}1] $\succ$ -- --- $\checkmark$ \dag{}"


def test_output_forms_end_with_their_context_and_unknown_ones_are_rejected():
    with output.using(output.Output("latex", "pdf")):
        assert output.current() == output.Output("latex", "pdf")
    assert output.current() == output.Output("markdown", "png")
    for wrong in ({"tables": "word"}, {"figures": "gif"}):
        with pytest.raises(ValueError, match="is not one of"):
            output.Output(**wrong)


@pytest.mark.parametrize(
    ("call", "modules"),
    [("savefig(", {"figure_layout.py"}), ("matplotlib.use", set())],
)
def test_reports_have_one_writer(call, modules):
    writers = {path.name for path in SOURCES.rglob("*.py") if call in path.read_text()}
    assert writers == modules
