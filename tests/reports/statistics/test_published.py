"""The published tables as data, and ours next to them."""

import hashlib
import pathlib

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports.statistics import published

FOLDER = pathlib.Path(__file__).parents[3] / "results" / "paper"
CHECKSUMS = {
    "adafed_table1.csv": "67a3d19b959a5a38",
    "da_table1.csv": "b717eff346b882a7",
    "dualcriterion_table2.csv": "57f8f302b4354960",
    "dualcriterion_table3.csv": "ddf79e43cf524eb8",
    "dualcriterion_table4.csv": "617d5011e2753cb3",
    "dualcriterion_table5.csv": "9068be4c9e69c870",
    "pmc_table2.csv": "c832bc06480c6c3b",
    "pmc_table3.csv": "1cb7b7918538114a",
    "pmc_table4.csv": "c0d7f162dc264882",
    "pmc_table5.csv": "984fbc5978901058",
    "pmc_table6.csv": "0efe7d05043704c7",
    "pmc_table7.csv": "3aad289bfa742195",
}
"""The first 16 digits of the SHA-256 of each file."""


def test_the_twelve_tables_are_as_entered():
    """Their README says what of them can be recomputed, and what does not agree."""
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in FOLDER.glob("*.csv")
    }
    assert digests == CHECKSUMS


def test_the_twelve_tables_are_described():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("| `")]
    described = [line for line in rows if ".csv" in line]
    assert sorted(line.split("`")[1] for line in described) == [*CHECKSUMS]
    for line in described:
        with open(FOLDER / line.split("`")[1], encoding="utf-8") as file:
            columns = file.readline().strip().split(",")
        assert columns[-2:] == ["printed", "value"]
        assert all(f"`{column}`" in line for column in columns[:-2]), line


def test_our_numbers_are_joined_with_the_published_ones():
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
    joined = published.join_published(ours, theirs, keys)
    expected = ["row", "column", "ours", "printed", "published", "difference"]
    assert list(joined) == expected
    assert list(joined["row"] + joined["column"]) == ["b1", "a1", "a2", "c1"]
    assert joined["printed"].fillna("none").tolist() == ["9", "4", "—", "none"]
    assert joined["difference"].fillna(99).tolist() == [-1.5, 99, 99, 99]
    with pytest.raises(ValueError, match="one-to-one"):
        published.join_published(ours, pd.concat([theirs, theirs]), keys)


def test_a_table_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    with pytest.raises(published.PublishedTableMissing, match="checkout and its wheel"):
        published.table("da_table1")
