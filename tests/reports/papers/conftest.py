"""The papers' printed numbers, and PMC's as runs."""

import csv
import math
import pathlib
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tff_pmc.record.read import Run

FOLDER = pathlib.Path(__file__).parents[3] / "results" / "paper"
SHARES = [f"{share}%" for share in range(10, 100, 10)]
CB_BEFORE = ("CB≻DS≻IS", "CB≻IS≻DS")
"""The rows of Table 6 with cells that cannot be."""


class Page:
    """The published tables as printed, read without the package."""

    folder = FOLDER
    names = sorted(path.stem for path in FOLDER.glob("*.csv"))
    never = math.inf

    @staticmethod
    def cells(name):
        """(the columns that say which cell) -> the text on the page."""
        with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        table = {tuple(row[:-2]): row[-2] for row in rows}
        assert len(table) == len(rows), "a cell is there twice"
        return table

    @staticmethod
    def number(printed):
        if printed.endswith("%"):
            return Fraction(printed[:-1]) / 100
        return Fraction(printed.replace(",", "."))

    @classmethod
    def rounds(cls, printed):
        return cls.never if printed == "—" else cls.number(printed)

    @staticmethod
    def cut(value, printed):
        """The value with its decimals cut to as many as are printed."""
        scale = 10 ** len(printed.replace(",", ".").partition(".")[2])
        return Fraction(math.floor(value * scale), scale)

    @staticmethod
    def rounded(value, printed):
        scale = 10 ** len(printed.replace(",", ".").partition(".")[2])
        return Fraction(round(value * scale), scale)

    @staticmethod
    def steps_down(line):
        """The neighbors of a line of which the second is smaller than the first."""
        names = list(line)
        return [(a, b) for a, b in zip(names, names[1:]) if line[b] < line[a]]

    @classmethod
    def by_line(cls, number):
        """Of PMC's Tables 2, 4 and 6: (experiment, target) -> column -> number."""
        found = {}
        for (name, _, target, column), text in cls.cells(f"pmc_table{number}").items():
            value = np.nan if text == "—" else float(cls.number(text))
            found.setdefault((name, int(target)), {})[column] = value
        return found


@pytest.fixture(scope="session")
def page():
    """The published tables as printed."""
    return Page


@pytest.fixture
def says_of_five():
    """A function that gives the verdict on five differences: the rule in NumPy."""

    def verdict(differences, sign, tolerance=0, within=(), printed=(), part=False):
        half = 2.7764451 * np.std(differences, ddof=1) / np.sqrt(5)
        low, high = np.mean(differences) - half, np.mean(differences) + half
        least, most = {
            "more": (0, np.inf),
            "less": (-np.inf, 0),
            "none": (-tolerance, tolerance),
            "not more": (-np.inf, tolerance),
            "not less": (-tolerance, np.inf),
            "within": within,
        }[sign]
        holds = low >= least and high <= most
        if sign in ("more", "less"):
            holds &= 0 not in (low - least, high - most)
        if part and len(printed) and not any(least < p < most for p in printed):
            return "not run far enough"
        if sign not in ("none", "within") and len(printed):
            if not holds and (max(printed) < low or min(printed) > high):
                return "not reproduced"
        fails = low > most or high < least
        rest = "not run far enough" if part else "open"
        return "reproduced" if holds else "not reproduced" if fails else rest

    return verdict


class Given(Run):
    """A run whose accuracies are those of its table of rounds."""

    @property
    def accuracy(self):
        return self.rounds["accuracy"].to_numpy(float)


@pytest.fixture
def kept(monkeypatch):
    """A function that makes a run of which the rounds to targets are given."""

    def given(reached, examples, targets, devices, reach):
        return {(t, s): reached[t, s] for t in targets for s in devices}

    def make(label, seed, experiment="", reached=None, rounds=60, **parts):
        own = {name: parts.pop(name) for name in ("cohort",) if name in parts}
        info = {"settings": {"batch_seed": seed, "experiment": experiment, **parts}}
        info["data"] = {"name": "mnist", "clients": 7}
        table = pd.DataFrame({"round": range(1, rounds + 1)})
        path = f"{experiment}/{seed}/{label}"
        return Given(label, info, table, table, reached, None, path=path, **own)

    monkeypatch.setattr("tff_pmc.reports.rounds_to_target.rounds_to_target", given)
    return make


@pytest.fixture
def from_rounds(run_of):
    """A function that makes a run of ten devices from the rounds of their arrivals.

    The k-th has `target` % from round `arrivals[k]` on, else nothing; NaN: never.
    """

    def make(label, arrivals, target, rounds):
        line = np.array([*arrivals, np.nan])
        hits = np.arange(1, rounds + 1)[:, np.newaxis] >= line
        return run_of(label, hits * target, [100] * 10)

    return make


@pytest.fixture
def published_as_runs(from_rounds):
    """A function that makes the runs that a published table describes.

    A dash, or a censored run, never arrives.
    """

    def make(number, target, rounds, labels=str):
        cells = Page.by_line(number)
        base = cells["DS (baseline)", target]
        runs = [from_rounds("DS", _line(base, rounds), target, rounds)]
        for (name, goal), gains in cells.items():
            if goal != target or name == "DS (baseline)" or name in CB_BEFORE:
                continue
            # A run of DS that did not arrive counts as the last round.
            arrivals = {
                share: (rounds if np.isnan(base.get(share, np.nan)) else base[share])
                - gain
                for share, gain in gains.items()
                if share in SHARES
            }
            label = labels(name.replace("≻", ",").replace("MW", "MD"))
            runs.append(from_rounds(label, _line(arrivals, rounds), target, rounds))
        return runs

    return make


def _line(by_share, rounds):
    line = np.array([by_share.get(share, np.nan) for share in SHARES], float)
    return np.where(line >= rounds, np.nan, line)  # Censored: it never arrived.


@pytest.fixture
def celeba_runs(from_rounds):
    """Three runs with CelebA's criteria: DS, a faster one, one that never arrives."""
    return [
        from_rounds("DS", 9 * [3], 85, 5),
        from_rounds("CB", 9 * [1], 85, 5),
        from_rounds("CB,DS,IS", 9 * [np.nan], 85, 5),
    ]
