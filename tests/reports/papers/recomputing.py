"""Reads kept records by the csv module, and recomputes with NumPy alone."""

import csv
import functools
import gzip
import math
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

KEPT = pathlib.Path(__file__).parents[3] / "results" / "reproduced"
SEEDS = range(5)
COLUMNS = [(t, s) for t in (70, 80, 90, 95) for s in range(10, 100, 10)]
PAGES = ("README.md", "docs/fidelity.md")
STUDENTS_T = {5: 2.7764451, 6: 2.5705818, 9: 2.3060041}


def page_text(path):
    """The text of a page of the repository, in one line."""
    return " ".join((KEPT.parents[1] / path).read_text("utf-8").split())


@functools.cache
def runs_of(name, table):
    """(seed, label) -> the columns of a kept table, by their heads, as text."""
    with gzip.open(KEPT / name / f"{table}.csv.gz", "rt", newline="") as file:
        rows = csv.reader(file)
        heads = next(rows)
        seed, label = heads.index("seed"), heads.index("label")
        rows_by_run = {}
        for row in rows:
            rows_by_run.setdefault((int(row[seed]), row[label]), []).append(row)
    return {run: dict(zip(heads, zip(*rows))) for run, rows in rows_by_run.items()}


def column(name, seed, label, table, head):
    return np.array(runs_of(name, table)[seed, label][head], float)


@functools.cache
def read_csv(path):
    """The rows of a CSV file, by their heads, as text."""
    with open(path, encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def claim_rows():
    """The rows of the table of claims, by their ids."""
    return {row["claim"]: row for row in read_csv(KEPT / "claims.csv")}


def half_interval(differences):
    count = len(differences)
    return STUDENTS_T[count] * np.std(differences, ddof=1) / math.sqrt(count)


def text(differences, digits):
    """The mean and half of the 95 % interval, by Student's t."""
    mean, half = np.mean(differences), half_interval(differences)
    return f"{mean:+.{digits}f} ± {half:.{digits}f}"


@functools.cache
def clients_at_target(name, seed, label, target, above=0):
    """How many clients reach a target (or exceed it) in each round, and of how many."""
    data = runs_of(name, "clients")[seed, label]
    shape = len({*data["round"]}), len({*data["client"]})
    right, examples = (
        np.array(data[x], int).reshape(shape) for x in ("correct", "examples")
    )
    there = (
        100 * right > target * examples if above else 100 * right >= target * examples
    )
    return there.sum(axis=1), shape[1]


def rounds(name, seed, label, columns=COLUMNS, above=0):
    """(target, share) -> the first round in which that share of the clients reaches it.

    With `above` a client has to exceed the target.
    """
    first_round = {}
    for target, share in columns:
        there, clients = clients_at_target(name, seed, label, target, above)
        enough = there * 100 >= share * clients
        if enough.any():
            first_round[target, share] = int(np.flatnonzero(enough)[0]) + 1
    return first_round


def printed_table(name):
    """The rows of a table that a paper prints."""
    return read_csv(KEPT.parent / "paper" / f"{name}.csv")


def printed_rounds(table, label):
    """(target, share) -> the rounds that a table of DA's or PMC's has for a weighting.

    Columns with a dash, or with a gain over a dash, are omitted.
    """
    if table == "da_table1":
        ordering, _, adjusted = label.partition(" ")
        study = "Final" if adjusted else "MCA" if "," in ordering else "Ind"
        alone = {"DS": "Dataset size (base)", "MD": "Model divergence"}
        alone["LD"] = "Label diversity"
        row = alone.get(ordering) or ordering.replace(",", "≻").title()
        return {
            (int(line["target_accuracy_pct"]), int(line["column"][:-1])): float(number)
            for line in printed_table(table)
            if (line["study"], line["row"]) == (study, row)
            and line["column"].endswith("%")
            and (number := line["value"])
        }
    rows = {}
    for line in printed_table(table):
        if line["devices"] != "Avg." and line["value"]:
            cell = int(line["target_accuracy_pct"]), int(line["devices"][:-1])
            rows.setdefault(line["experiment"], {})[cell] = float(line["value"])
    base = rows["DS (baseline)"]
    if label == "DS":
        return base
    gains = rows[label.replace("MD", "MW").replace(",", "≻")]
    return {cell: base[cell] - gains[cell] for cell in gains if cell in base}


def weights(criteria, orderings):
    """ordering -> the weights of a cohort's clients, by eq. 3 and 4 of DA.

    `criteria` has, by their names, the values of the K clients.
    """
    shares = {name: values / values.sum() for name, values in criteria.items()}
    weights_by_ordering = {}
    for ordering in orderings:
        score = sum(np.cumprod([shares[name] for name in ordering], axis=0))
        weights_by_ordering[ordering] = score / score.sum()
    return weights_by_ordering


def cohorts(name, seed, label):
    """The criteria of each round's cohort, by their names."""
    cohort = runs_of(name, "cohort")[seed, label]
    number = np.array(cohort["round"], int)
    values = {x: np.array(cohort[x], float) for x in ("DS", "LD", "MD")}
    for number_of_round in np.unique(number):
        yield {name: each[number == number_of_round] for name, each in values.items()}


class Part(NamedTuple):
    """A number of a claim: values minus base under each seed, and the paper's number.

    Attributes:
        name: what it is called in the table of claims.
        folders: the folders of the runs.
        values: the compared value under each seed; empty if unknown.
        base: the baseline's value under each seed, or a number.
        relation: the range that the paper claims: a word and its limits.
        printed: the lowest and the highest number that the paper prints, if any.
        digits: decimals that are shown.
        columns: how many of the paper's columns are compared; empty for all.
        alike: whether both sides weigh the clients alike in every round.
        lacking: whether the runs have fewer rounds than the claim needs.
    """

    name: str
    folders: Sequence[str]
    values: Sequence[float]
    base: Sequence[float]
    relation: Sequence = ("more than 0",)
    printed: Sequence[float] = ()
    digits: int = 1
    columns: str = ""
    alike: bool = False
    lacking: bool = False


MORE, LESS = ("more than 0",), ("less than 0",)


def limits(word, *numbers):
    """The least and the most that a relation allows."""
    return {
        "more than 0": lambda: (0, math.inf),
        "less than 0": lambda: (-math.inf, 0),
        "within": lambda size: (-size, size),
        "between": lambda least, most: (least, most),
        "at most": lambda most: (-math.inf, most),
        "at least": lambda least: (least, math.inf),
    }[word](*numbers)


SHORT = "not run far enough"
WORST_FIRST = ("not reproduced", SHORT, "open", "reproduced")


def verdict_on(part):
    """The verdict on a number, as `docs/claims.md` says it under "How to read it"."""
    of_a_sign = part.relation[0] in ("more than 0", "less than 0")
    of_a_size = part.relation[0] in ("within", "between")
    if part.alike and of_a_sign:
        return "not reproduced"
    if part.alike and part.relation[0] == "within":
        return "reproduced"
    # The papers' networks have no ReLU after the convolutions.
    other_network = any(folder.endswith("_relu") for folder in part.folders)
    if len(part.values) < 5 or part.lacking or other_network:
        return SHORT
    least, most = limits(*part.relation)
    differences = np.subtract(part.values, part.base)
    mean, half = np.mean(differences), half_interval(differences)
    low, high = mean - half, mean + half
    if part.columns and part.printed:
        if max(part.printed) <= least or min(part.printed) >= most:
            return SHORT  # In these columns the paper's own table does not show it.
    if part.columns and of_a_size:
        return SHORT
    if low > most or high < least:
        return "not reproduced"
    if least <= low and high <= most and not (of_a_sign and 0 in (low, high)):
        return "reproduced"
    if part.printed and not of_a_size:
        if max(part.printed) < low or min(part.printed) > high:
            return "not reproduced"
    return SHORT if part.columns else "open"


def text_of(part):
    """A number as the table of claims has it; empty where it is not known."""
    if not len(part.values):
        return ""

    def signed(number):
        # NumPy's round has 0.0 for 0.05, which a float exceeds.
        return f"{round(float(number), part.digits) + 0.0:+.{part.digits}f}"

    differences = np.subtract(part.values, part.base)
    words = ", ".join(filter(None, [part.name, part.columns]))
    words += f" {signed(np.mean(differences))}"
    if len(differences) >= 5:
        words += f" ± {half_interval(differences):.{part.digits}f}"
    if len(differences) > 1 and np.std(part.base) > 0:
        # Two runs of the base under other seeds differ by the root of two deviations.
        floor = math.sqrt(2 / len(differences)) * np.std(part.base, ddof=1)
        words += f" (noise floor {floor:.{part.digits}f})"
    if part.printed:
        words += ", printed " + " to ".join(dict.fromkeys(map(signed, part.printed)))
    return words
