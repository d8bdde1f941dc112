"""The README, the guide for programs and SECURITY.md say what is so."""

import collections
import csv
import re

import pytest
from commands import ROOT, python

README = (ROOT / "README.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "own_code.md").read_text("utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "own_code" / "keras_model.py"
VERDICTS = (
    *("reproduced", "not reproduced", "open"),
    *("not run far enough", "cannot be tested here"),
)


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_python_of_the_readme_runs():
    done = python("-c", *blocks(README))
    assert done.returncode == 0 and done.stdout.count("\n") == 3, done.stderr


@pytest.mark.slow
def test_the_python_of_the_guide_runs():
    """Block after block, as it stands, and the module that it links to."""
    code = [*blocks(GUIDE), EXAMPLE.read_text("utf-8")]
    assert len(code) == 8 and f"({EXAMPLE.relative_to(ROOT / 'docs')})" in GUIDE
    done = python("-c", "\n".join(code))
    assert "trusted 6.0" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr
    assert 1 < float(done.stdout.split()[-1]) < 3  # The loss of ten classes, at first.


def test_the_readme_has_the_guides_first_block():
    assert blocks(README) == blocks(GUIDE)[:1]


def test_the_readme_counts_the_claims_as_their_table_does():
    path = ROOT / "results" / "reproduced" / "claims.csv"
    with path.open(newline="") as file:
        pairs = [(row["paper"], row["verdict"]) for row in csv.DictReader(file)]
    every = collections.Counter(verdict for _, verdict in pairs)
    assert set(every) <= set(VERDICTS)
    words = "Of {} claims {} were reproduced, {} were not, and {} are open. For {} the"
    words = words.format(len(pairs), *(every[word] for word in VERDICTS[:4]))
    for number, word in ((" 0 are", " none is"), (" 1 are", " one is")):
        words = words.replace(number, word)
    assert words in README
    assert f", and {every[VERDICTS[4]]} take data" in README
    for paper in dict.fromkeys(paper for paper, _ in pairs):
        said = " | ".join(str(pairs.count((paper, word))) for word in VERDICTS)
        (row,) = re.findall(rf"^\| \[{paper}\].*$", README, re.MULTILINE)
        assert row.endswith(f"| {said} |"), f"README.md, {paper}: {said}"


def test_each_promise_names_tests_that_there_are():
    head = (ROOT / "SECURITY.md").read_text("utf-8").split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| (`.+) \|$", head, re.MULTILINE)
    assert len(rows) == head.count("\n|") - 2
    for promise, cell in rows:
        for named in cell.split(", "):
            path, name = re.fullmatch(r"`(.+\.py)::(test_\w+)`", named).groups()
            text = (ROOT / "tests" / path).read_text("utf-8")
            assert f"\ndef {name}(" in text, f"{promise}: {named}"
