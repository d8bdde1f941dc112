"""Reads kept records by the csv module, and recomputes with NumPy alone."""

import csv
import functools
import gzip
import math
import pathlib

import numpy as np

KEPT = pathlib.Path(__file__).parents[3] / "results" / "reproduced"
SEEDS = range(5)
COLUMNS = [(t, s) for t in (70, 80, 90, 95) for s in range(10, 100, 10)]
PAGES = ("README.md", "docs/fidelity.md")
STUDENTS_T = {5: 2.7764451, 6: 2.5705818, 9: 2.3060041}


def said(path):
    """What a page of the repository says, in one line."""
    return " ".join((KEPT.parents[1] / path).read_text("utf-8").split())


@functools.cache
def runs_of(name, table):
    """(seed, label) -> the columns of a kept table, by their heads, as text."""
    with gzip.open(KEPT / name / f"{table}.csv.gz", "rt", newline="") as file:
        rows = csv.reader(file)
        heads = next(rows)
        seed, label = heads.index("seed"), heads.index("label")
        found = {}
        for row in rows:
            found.setdefault((int(row[seed]), row[label]), []).append(row)
    return {run: dict(zip(heads, zip(*rows))) for run, rows in found.items()}


def column(name, seed, label, table, head):
    return np.array(runs_of(name, table)[seed, label][head], float)


def claimed(words):
    """What the table of claims has for the one that says these words."""
    with open(KEPT / "claims.csv", encoding="utf-8", newline="") as file:
        (found,) = [row for row in csv.DictReader(file) if words in row["says"]]
    return found


def half_interval(differences):
    count = len(differences)
    return STUDENTS_T[count] * np.std(differences, ddof=1) / math.sqrt(count)


def text(differences, digits):
    """The mean and half of the 95 % interval, with Student's t of so many."""
    mean, half = np.mean(differences), half_interval(differences)
    return f"{mean:+.{digits}f} ± {half:.{digits}f}"


def rounds(name, seed, label, columns=COLUMNS, above=0):
    """(target, share) -> the first round in which so many of the clients have it.

    They have it at the target, or with `above` only above it.
    """
    data = runs_of(name, "clients")[seed, label]
    shape = len({*data["round"]}), len({*data["client"]})
    right, of = (np.array(data[x], int).reshape(shape) for x in ("correct", "examples"))
    found = {}
    for target, share in columns:
        enough = 100 * right > target * of if above else 100 * right >= target * of
        enough = enough.sum(axis=1) * 100 >= share * shape[1]
        if enough.any():
            found[target, share] = int(np.flatnonzero(enough)[0]) + 1
    return found


def printed_table(name):
    """The rows of a table that a paper prints."""
    with open(KEPT.parent / "paper" / f"{name}.csv", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def weights(criteria, orderings):
    """ordering -> the weights of a cohort's clients, by eq. 3 and 4 of DA.

    `criteria` has, by their names, the values of the K clients.
    """
    shares = {name: values / values.sum() for name, values in criteria.items()}
    found = {}
    for ordering in orderings:
        score = sum(np.cumprod([shares[name] for name in ordering], axis=0))
        found[ordering] = score / score.sum()
    return found


def cohorts(name, seed, label):
    """The criteria of each round's cohort, by their names."""
    of = runs_of(name, "cohort")[seed, label]
    number = np.array(of["round"], int)
    values = {x: np.array(of[x], float) for x in ("DS", "LD", "MD")}
    for one in np.unique(number):
        yield {name: each[number == one] for name, each in values.items()}
