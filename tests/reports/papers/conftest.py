"""The papers' printed numbers, and PMC's as runs."""

import csv
import math
import pathlib
from fractions import Fraction

import numpy as np
import pytest
from made import made

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
def arriving():
    """A function that makes runs of ten devices from the rounds of their arrivals.

    By label: the k-th device has `target` % from round `line[k]` on, else nothing; NaN:
    never.
    """

    def make(lines, target, rounds, **options):
        number = np.arange(1, rounds + 1)[:, np.newaxis]
        hits = {
            label: number >= np.array([*line, np.nan]) for label, line in lines.items()
        }
        correct = {label: of * target for label, of in hits.items()}
        return made(correct, [100] * 10, **options)

    return make


@pytest.fixture
def published_as_runs(arriving):
    """A function that makes the runs that a published table describes.

    A dash, or a censored run, never arrives.
    """

    def make(number, target, rounds, labels=str, **options):
        cells = Page.by_line(number)
        base = cells["DS (baseline)", target]
        runs = {"DS": _line(base, rounds)}
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
            runs[label] = _line(arrivals, rounds)
        return arriving(runs, target, rounds, **options)

    return make


def _line(by_share, rounds):
    line = np.array([by_share.get(share, np.nan) for share in SHARES], float)
    return np.where(line >= rounds, np.nan, line)  # Censored: it never arrived.


CELEBA = {"DS": 9 * [3], "CB": 9 * [1], "CB,DS,IS": 9 * [np.nan]}
"""DS, a faster run, and one that never arrives, by their rounds to 85 %."""


@pytest.fixture
def celeba_runs(arriving):
    """Three runs with CelebA's criteria, as `CELEBA` has them, of five rounds."""
    return arriving(CELEBA, 85, 5)
