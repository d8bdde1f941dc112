"""The README and the guide for programs say what is so."""

import collections
import csv
import re

from commands import ROOT, python

README = (ROOT / "README.md").read_text("utf-8")
GUIDE = (ROOT / "docs" / "own_code.md").read_text("utf-8")
EXAMPLE = ROOT / "docs" / "examples" / "own_code" / "keras_model.py"
PAPERS = ("DA", "PMC", "AdaFed", "Dual")
VERDICTS = (
    *("reproduced", "not reproduced", "open"),
    *("not run far enough", "cannot be tested here"),
)


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_python_of_the_guide_runs():
    """Block after block, as it stands, and the module that it links to."""
    code = [*blocks(GUIDE), EXAMPLE.read_text("utf-8")]
    assert len(code) == 6 and f"({EXAMPLE.relative_to(ROOT / 'docs')})" in GUIDE
    done = python("-c", "\n".join(code))
    assert "trusted 6.0" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr
    assert 1 < float(done.stdout.split()[-1]) < 3  # The loss of ten classes, at first.


def test_the_readme_has_the_guides_first_block():
    assert blocks(README) == blocks(GUIDE)[:1]


def test_the_readme_counts_the_claims_as_their_table_does():
    path = ROOT / "results" / "reproduced" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        found = [(row["paper"], row["verdict"]) for row in csv.DictReader(file)]
    of = collections.Counter(verdict for _, verdict in found)
    words = "Of {} claims {} hold, {} do not, and {} is open. For {} the kept runs"
    counts = [of[word] for word in VERDICTS]
    assert words.format(len(found), *counts[:4]) in README
    assert f", and {counts[4]} take data" in README
    for paper in PAPERS:
        said = " | ".join(str(found.count((paper, word))) for word in VERDICTS)
        (row,) = re.findall(rf"^\| \[{paper}\].*$", README, re.MULTILINE)
        assert row.endswith(f"| {said} |"), f"README.md, {paper}: {said}"
