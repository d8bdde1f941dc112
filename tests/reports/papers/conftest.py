"""The papers' printed numbers, and PMC's as runs."""

import csv
import pathlib

import numpy as np
import pytest
from small_results import results_of_seed

FOLDER = pathlib.Path(__file__).parents[3] / "results" / "paper"
SHARES = [f"{share}%" for share in range(10, 100, 10)]
CB_BEFORE = ("CB≻DS≻IS", "CB≻IS≻DS")
"""The rows of Table 6 with cells that cannot be."""


def printed_lines(number):
    """Of PMC's Tables 2, 4 and 6: (experiment, target) -> column -> number.

    They are read without the package. NaN stands for a dash.
    """
    lines = {}
    with open(FOLDER / f"pmc_table{number}.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            line = row["experiment"], int(row["target_accuracy_pct"])
            value = float(row["value"] or "nan")
            lines.setdefault(line, {})[row["devices"]] = value
    return lines


@pytest.fixture(scope="session")
def pmc_lines():
    """The function `printed_lines`."""
    return printed_lines


@pytest.fixture
def runs_from_arrivals():
    """A function that makes runs of ten devices from the rounds of their arrivals.

    By label: the k-th device has `target` % from round `line[k]` on, else nothing; NaN:
    never.
    """

    def make(lines, target, rounds, **options):
        number = np.arange(1, rounds + 1)[:, np.newaxis]
        hits = {
            label: number >= np.array([*line, np.nan]) for label, line in lines.items()
        }
        correct = {label: is_hit * target for label, is_hit in hits.items()}
        return results_of_seed(correct, [100] * 10, **options)

    return make


@pytest.fixture
def published_as_runs(runs_from_arrivals):
    """A function that makes the runs that a published table describes.

    A dash, or a censored run, never arrives.
    """

    def make(number, target, rounds, labels=str, **options):
        cells = printed_lines(number)
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
        return runs_from_arrivals(runs, target, rounds, **options)

    return make


def _line(by_share, rounds):
    line = np.array([by_share.get(share, np.nan) for share in SHARES], float)
    return np.where(line >= rounds, np.nan, line)  # Censored: it never arrived.


CELEBA = {"DS": 9 * [3], "CB": 9 * [1], "CB,DS,IS": 9 * [np.nan]}
"""DS, a faster run, and one that never arrives, by their rounds to 85 %."""


@pytest.fixture
def celeba_runs(runs_from_arrivals):
    """Three runs with CelebA's criteria, as `CELEBA` has them, of five rounds."""
    return runs_from_arrivals(CELEBA, 85, 5)
