"""The published tables as data, and ours beside them.

What follows from other cells is recomputed in the files `test_published_PAPER.py`. Each
check gathers the cells that do not agree and compares them with the ones known
(results/paper/README.md names them all): one more fails, and so does one less.
"""

import csv
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports.papers import published


def test_the_twelve_tables_are_there_and_described(page):
    readme = (page.folder / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("| `")]
    described = [line for line in rows if ".csv" in line]
    names = sorted(line.split("`")[1] for line in described)
    assert names == [f"{name}.csv" for name in page.names]
    assert len(page.names) == 12
    for line in described:
        with open(page.folder / line.split("`")[1], encoding="utf-8") as file:
            columns = file.readline().strip().split(",")
        assert columns[-2:] == ["printed", "value"]
        assert all(f"`{column}`" in line for column in columns[:-2]), line


def test_the_value_is_the_printed_number(page):
    for name in page.names:
        with open(page.folder / f"{name}.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["printed"] == "—":
                    assert row["value"] == "", row
                else:
                    assert Fraction(row["value"]) == page.number(row["printed"]), row


def test_ours_beside_theirs():
    """A difference where both reached; the print tells a dash from no number."""
    keys = ["row", "column"]
    ours = pd.DataFrame(
        [("b", "1", 7.5), ("a", "1", np.nan), ("a", "2", 3.0), ("c", "1", 1.0)],
        columns=[*keys, "value"],
    )
    theirs = pd.DataFrame(
        [("a", "2", "—", np.nan), ("a", "1", "4", 4.0), ("b", "1", "9", 9.0)],
        columns=[*keys, "printed", "value"],
    )
    joined = published.joined(ours, theirs, keys)
    expected = ["row", "column", "ours", "printed", "published", "difference"]
    assert list(joined) == expected
    assert list(joined["row"] + joined["column"]) == ["b1", "a1", "a2", "c1"]
    assert joined["printed"].fillna("none").tolist() == ["9", "4", "—", "none"]
    assert joined["difference"].fillna(99).tolist() == [-1.5, 99, 99, 99]
    with pytest.raises(ValueError, match="one-to-one"):
        published.joined(ours, pd.concat([theirs, theirs]), keys)


def test_a_table_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    with pytest.raises(published.PublishedTableMissing, match="checkout and its wheel"):
        published.table("da_table1")
