"""DA's Table 1: whatever follows from other cells is recomputed."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tff_pmc.reports.rounds_to_target import rounds_to_target

DA_PARTS = {"Low mean": ("20%", "30%"), "Mid mean": ("40%", "50%")}
DA_PARTS["High mean"] = ("70%", "75%")
DA_SINGLE = [share for parts in DA_PARTS.values() for share in parts]
DA_SIX = ["≻".join(order) for order in itertools.permutations(["Ds", "Ld", "Md"])]
DA_ROWS = {
    "Ind": ["Dataset size (base)", "Model divergence", "Label diversity"],
    "MCA": [*DA_SIX, "Mean"],
    "Final": ["Md≻Ds≻Ld", "Mean"],
}
DA_ROUNDED_NOT_CUT = {("75", "MCA", "Mean", "70%")}


@pytest.fixture(scope="module")
def da(page):
    """(target, study, row, column) -> the text on the page."""
    return page.cells("da_table1")


def test_da_every_cell_is_there(da):
    assert set(da) == {
        (target, study, row, column)
        for target in ("75", "80")
        for study, rows in DA_ROWS.items()
        for row in rows
        for column in [*DA_SINGLE, *DA_PARTS]
    }


def test_da_means_recompute_and_their_decimals_are_cut(page, da):
    wrong = set()
    for (target, study, row, column), printed in da.items():
        if (study, row) == ("Final", "Mean"):
            continue  # Of its six runs one is printed: see the next test.
        if row != "Mean" and column not in DA_PARTS:
            continue
        parts = [
            page.rounds(da[target, study, of, share])
            for of in (DA_SIX if row == "Mean" else [row])
            for share in DA_PARTS.get(column, [column])
        ]
        exact = sum(parts) / len(parts)
        if printed == "—" or exact == page.never:
            right = printed == "—" and exact == page.never
        else:
            right = page.cut(exact, printed) == page.number(printed)
            if not right:
                assert page.rounded(exact, printed) == page.number(printed)
        if not right:
            wrong.add((target, study, row, column))
    assert wrong == DA_ROUNDED_NOT_CUT


def test_da_final_means_are_sums_of_six_whole_numbers_and_agree(page, da):
    def sums(target, share):
        printed = da[target, "Final", "Mean", share]
        if printed == "—":
            return [page.never]
        near = math.floor(page.number(printed) * 6)
        tried = range(near, near + 7)
        return [
            n
            for n in tried
            if page.cut(Fraction(n, 6), printed) == page.number(printed)
        ]

    for target, (column, parts) in itertools.product(("75", "80"), DA_PARTS.items()):
        printed = da[target, "Final", "Mean", column]
        possible = [
            "—" if page.never in pair else page.cut(Fraction(sum(pair), 12), printed)
            for pair in itertools.product(*(sums(target, share) for share in parts))
        ]
        assert possible, (target, column)
        assert ("—" if printed == "—" else page.number(printed)) in possible


def test_da_no_cell_is_impossible(page, da):
    """More devices, or a higher target, are never reached sooner."""
    lines = {key[:3] for key in da}
    for line in lines:
        assert (
            page.steps_down({s: page.rounds(da[(*line, s)]) for s in DA_SINGLE}) == []
        ), line
    for _, *rest in da:
        assert page.rounds(da[("75", *rest)]) <= page.rounds(da[("80", *rest)])


def test_da_a_share_of_the_devices_is_rounded_up():
    """Footnote 3's 0.2 x 371 = 75 devices: with 74 of them 20 % are not there yet.

    It says when a share of the devices has reached a target, not how many train.
    """
    correct = np.array([[1] * n + [0] * (371 - n) for n in (74, 75)])
    ones = np.ones(371, int)
    assert rounds_to_target(correct, ones, [75], [20]) == {(75, 20): 2}


def test_da_the_two_numbers_that_study_a_compares_are_of_other_rows(da):
    """Its text holds 25.5 and 27 against each other as Md's and Ld's."""
    low = [da["75", "Ind", row, "Low mean"] for row in DA_ROWS["Ind"]]
    assert low == ["25.5", "27", "28.5"]  # Of dataset size, Md and Ld.
