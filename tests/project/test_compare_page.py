"""The command, the rows and the Python of docs/compare.md."""

import re
import shlex

import pytest
from cli import ROOT, labels, quick_runs, run

PAGE = (ROOT / "docs" / "compare.md").read_text("utf-8")
(COMMAND,) = re.findall(
    r"run_experiments\.py (--partition.*?runs/compare)$", PAGE, re.M | re.S
)
ROWS = re.findall(r"^\| [^`|]+ \| `([^`]+)`[^`|]* \|$", PAGE, re.M)


def test_the_command_makes_the_rows_that_the_page_names():
    flags = shlex.split(COMMAND.replace("\\\n", " "))
    assert [label.replace(", 200 clients", "") for label in labels(*flags)] == [
        *("FedAvg", "FedProx, mu 0.1", "q-FFL, q 1"),
    ]


@pytest.mark.parametrize("rows", ROWS)
def test_other_rows_of_the_page_can_be_run(rows):
    assert len(labels(f"--rows={rows}")) == rows.count(";") + 1


def test_the_python_of_the_page_reads_the_runs_of_the_command(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    flags = shlex.split(COMMAND.replace("\\\n", " ").replace("rounds=30", "rounds=2"))
    with quick_runs():
        run("--model=softmax", *flags)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    capsys.readouterr()
    exec(code, {})
    sentences = capsys.readouterr().out.splitlines()[:2]
    assert [text.partition(":")[0] for text in sentences] == [
        "FedProx, mu 0.1",
        "q-FFL, q 1",
    ]
    assert all("against FedAvg over five seeds: " in text for text in sentences)
