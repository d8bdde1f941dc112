"""Tables and figures in the forms that are in force, each by one writer."""

import dataclasses
import pathlib

import pandas as pd
import pytest

from tff_pmc.reports import escape, output, pages

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "tff_pmc"
GRID = [["name", "gain"], ["a_b & 50 %", "≤3"], ["[1] {x}", "-1.5 ± 2"]]
LATEX = r"""% Needs the packages booktabs and amssymb.

\section*{A\_title}

\begin{itemize}
  \item Made by \texttt{this\_one}.
\end{itemize}

\begin{table}
  \centering
  \caption{70 \% \textgreater{} 60 \%}
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


def write_page(folder, form):
    parts = {"70 % > 60 %": GRID}
    notes = ["Made by `this_one`."]
    report = pages.report("table", "A_title", notes, parts, pd.DataFrame())
    with output.using(output.Output(tables=form)):
        return output.write(dataclasses.replace(report, tables={}), str(folder))


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


def test_no_character_of_a_text_is_a_command_of_latex():
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
