"""The published tables: what follows from other cells is recomputed.

Each check gathers the cells that do not agree and compares them with the ones known
(results/paper/README.md names them all): one more fails, and so does one less.
"""

import csv
import itertools
import math
import pathlib
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import published
from tff_pmc.reports.rounds_to_target import rounds_to_target

FOLDER = pathlib.Path(__file__).parents[1] / "results" / "paper"
NAMES = sorted(path.stem for path in FOLDER.glob("*.csv"))
NEVER = math.inf
SHARES = [f"{share}%" for share in range(10, 100, 10)]


def cells(name):
    """(the columns that say which cell) -> the text on the page."""
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    table = {tuple(row[:-2]): row[-2] for row in rows}
    assert len(table) == len(rows), "a cell is there twice"
    return table


def number(printed):
    return Fraction(printed.replace(",", "."))


def rounds(printed):
    return NEVER if printed == "—" else number(printed)


def cut(value, printed):
    """The value with its decimals cut to as many as are printed."""
    scale = 10 ** len(printed.replace(",", ".").partition(".")[2])
    return Fraction(math.floor(value * scale), scale)


def rounded(value, printed):
    scale = 10 ** len(printed.replace(",", ".").partition(".")[2])
    return Fraction(round(value * scale), scale)


def steps_down(line):
    """The neighbors of a line of which the second is smaller than the first."""
    names = list(line)
    return [(a, b) for a, b in zip(names, names[1:]) if line[b] < line[a]]


# All files.


def test_the_ten_tables_are_there_and_described():
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    described = [
        line
        for line in readme.splitlines()
        if line.startswith("| `") and ".csv" in line
    ]
    assert sorted(line.split("`")[1] for line in described) == [
        f"{name}.csv" for name in NAMES
    ]
    assert len(NAMES) == 10
    for line in described:
        with open(FOLDER / line.split("`")[1], encoding="utf-8") as file:
            columns = file.readline().strip().split(",")
        assert columns[-2:] == ["printed", "value"]
        assert all(f"`{column}`" in line for column in columns[:-2]), line


@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_the_printed_number(name):
    with open(FOLDER / f"{name}.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["printed"] == "—":
                assert row["value"] == "", row
            else:
                assert Fraction(row["value"]) == number(row["printed"]), row


# DA, Table 1.

DA = cells("da_table1")
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


def test_da_every_cell_is_there():
    assert set(DA) == {
        (target, study, row, column)
        for target in ("75", "80")
        for study, rows in DA_ROWS.items()
        for row in rows
        for column in [*DA_SINGLE, *DA_PARTS]
    }


def test_da_means_recompute_and_their_decimals_are_cut():
    wrong = set()
    for (target, study, row, column), printed in DA.items():
        if (study, row) == ("Final", "Mean"):
            continue  # Of its six runs one is printed: see the next test.
        if row != "Mean" and column not in DA_PARTS:
            continue
        parts = [
            rounds(DA[target, study, of, share])
            for of in (DA_SIX if row == "Mean" else [row])
            for share in DA_PARTS.get(column, [column])
        ]
        exact = sum(parts) / len(parts)
        if printed == "—" or exact == NEVER:
            right = printed == "—" and exact == NEVER
        else:
            right = cut(exact, printed) == number(printed)
            if not right:
                assert rounded(exact, printed) == number(printed)
        if not right:
            wrong.add((target, study, row, column))
    assert wrong == DA_ROUNDED_NOT_CUT


def test_da_final_means_are_sums_of_six_whole_numbers_and_agree():
    def sums(target, share):
        printed = DA[target, "Final", "Mean", share]
        if printed == "—":
            return [NEVER]
        near = math.floor(number(printed) * 6)
        tried = range(near, near + 7)
        return [n for n in tried if cut(Fraction(n, 6), printed) == number(printed)]

    for target, (column, parts) in itertools.product(("75", "80"), DA_PARTS.items()):
        printed = DA[target, "Final", "Mean", column]
        possible = [
            "—" if NEVER in pair else cut(Fraction(sum(pair), 12), printed)
            for pair in itertools.product(*(sums(target, share) for share in parts))
        ]
        assert possible, (target, column)
        assert ("—" if printed == "—" else number(printed)) in possible


def test_da_no_cell_is_impossible():
    """More devices, or a higher target, are never reached sooner."""
    lines = {key[:3] for key in DA}
    for line in lines:
        assert steps_down({s: rounds(DA[(*line, s)]) for s in DA_SINGLE}) == [], line
    for _, *rest in DA:
        assert rounds(DA[("75", *rest)]) <= rounds(DA[("80", *rest)])


def test_da_a_share_of_the_devices_is_rounded_up():
    """The text's 0.2 x 371 = 75: with 74 devices 20 % are not there yet."""
    correct = np.array([[1] * n + [0] * (371 - n) for n in (74, 75)])
    ones = np.ones(371, int)
    assert rounds_to_target(correct, ones, [75], [20]) == {(75, 20): 2}


# PMC, Tables 2, 4, 6: rounds of the baseline and gains over it.

PMC = {n: cells(f"pmc_table{n}") for n in (2, 4, 6)}
PMC_TARGETS = {n: list(dict.fromkeys(key[2] for key in PMC[n])) for n in PMC}
PMC_EXPERIMENTS = {n: list(dict.fromkeys(key[0] for key in PMC[n])) for n in PMC}
BASELINE = "DS (baseline)"
CENSORED_AT = 100  # The rounds of PMC's CelebA runs.

# Table 6, each at a target: share of the devices, and a larger one reached sooner.
PMC_IMPOSSIBLE = {
    (6, "CB≻DS≻IS", "70", "50%", "60%"),
    (6, "CB≻IS≻DS", "70", "40%", "50%"),
}
PMC_GAIN_OVER_A_DASH = {(6, "DS≻CB≻IS", "80", "70%"): "43"}
PMC_AT_ROUND_100 = {
    ("IS", "70", "80%"),
    ("IS", "80", "60%"),
    ("IS", "85", "50%"),
    ("IS≻DS≻CB", "70", "80%"),
    ("IS≻DS≻CB", "80", "60%"),
    ("IS≻DS≻CB", "85", "50%"),
    ("IS≻CB≻DS", "70", "70%"),
    ("IS≻CB≻DS", "70", "80%"),
    ("IS≻CB≻DS", "80", "60%"),
    ("IS≻CB≻DS", "85", "50%"),
    ("CB≻IS≻DS", "70", "80%"),
}


def baseline(n, target, share):
    return PMC[n][BASELINE, "rounds", target, share]


def columns(n, target):
    return [s for s in SHARES if (BASELINE, "rounds", target, s) in PMC[n]]


def gained(n, experiment, target):
    table = PMC[n]
    return {s: table[experiment, "gain", target, s] for s in columns(n, target)}


def lines(n):
    others = [name for name in PMC_EXPERIMENTS[n] if name != BASELINE]
    return list(itertools.product(others, PMC_TARGETS[n]))


def rounds_of(n, experiment, target):
    """Rounds of a line, from its gains; a dash of the baseline is round 100."""
    if experiment == BASELINE:
        return {s: rounds(baseline(n, target, s)) for s in columns(n, target)}
    result = {}
    for share, gain in gained(n, experiment, target).items():
        base = rounds(baseline(n, target, share))
        start = CENSORED_AT if base == NEVER else base
        result[share] = NEVER if gain == "—" else start - number(gain)
    return result


@pytest.mark.parametrize("n", PMC)
def test_pmc_every_cell_is_there(n):
    ends = {6: {"70": 8, "80": 7, "85": 5}}.get(n, dict.fromkeys(PMC_TARGETS[n], 9))
    names = ["DS", *("IS CB" if n == 6 else "LD MW").split()]
    orderings = ["≻".join(order) for order in itertools.permutations(names)]
    expected = set()
    for target, end in ends.items():
        expected |= {(BASELINE, "rounds", target, s) for s in SHARES[:end]}
        for name in [*names[1:], *orderings]:
            shares = [*SHARES[:end], "Avg."]
            expected |= {(name, "gain", target, s) for s in shares}
    assert set(PMC[n]) == expected


@pytest.mark.parametrize("n", PMC)
def test_pmc_averages_are_the_sum_of_the_gains_over_nine(n):
    """Dashes, and in Table 6 the columns that are not there, count as 0."""
    for name, target in lines(n):
        gains = gained(n, name, target).values()
        exact = Fraction(sum(0 if g == "—" else int(g) for g in gains), 9)
        printed = PMC[n][name, "gain", target, "Avg."]
        assert number(printed) == rounded(exact, printed), (name, target)


def test_pmc_averages_of_the_text_divide_by_the_columns_reached():
    text = []
    for target in PMC_TARGETS[6]:
        gains = [int(g) for g in gained(6, "CB", target).values() if g != "—"]
        text.append(f"{sum(gains) / len(gains):.1f}")
    assert text == ["8.6", "11.5", "13.0"]


def test_pmc_rounds_are_possible_but_for_two_cells():
    """More devices, or a higher target, are never reached sooner."""
    wrong = set()
    for n, targets in PMC_TARGETS.items():
        for name in PMC_EXPERIMENTS[n]:
            table = {target: rounds_of(n, name, target) for target in targets}
            for target, line in table.items():
                assert min(line.values()) >= 1, (n, name, target)
                wrong |= {(n, name, target, *pair) for pair in steps_down(line)}
            for share in SHARES:
                reached = {t: line[share] for t, line in table.items() if share in line}
                wrong |= {(n, name, share, *pair) for pair in steps_down(reached)}
    assert wrong == PMC_IMPOSSIBLE


def test_pmc_a_gain_needs_a_baseline_but_for_one_cell():
    """Where the baseline has a dash so has the gain, and only there."""
    odd = {}
    for n in PMC:
        for name, target in lines(n):
            for share, gain in gained(n, name, target).items():
                if (gain == "—") != (baseline(n, target, share) == "—"):
                    odd[n, name, target, share] = gain
    assert odd == PMC_GAIN_OVER_A_DASH


def test_pmc_celeba_runs_that_never_reach_count_as_round_100():
    at_the_end = set()
    for name, target in lines(6):
        for share, value in rounds_of(6, name, target).items():
            assert value <= CENSORED_AT or value == NEVER
            if value == CENSORED_AT:
                at_the_end.add((name, target, share))
    assert at_the_end == PMC_AT_ROUND_100


# PMC, Tables 3, 5, 7: right and wrong.

OUTCOMES = {n: cells(f"pmc_table{n}") for n in (3, 5, 7)}


@pytest.mark.parametrize("n, total, ds_wrong", [(3, 10000, 98), (5, 10000, 131)])
def test_pmc_mnist_outcomes_add_up_and_pair_as_by_chance(n, total, ds_wrong):
    for right, wrong, table in outcomes(n):
        assert right + wrong == total
        assert table["X", "X"] + table["X", "✓"] == ds_wrong
        # One order of samples would leave most of the errors in common.
        by_chance = ds_wrong * wrong / total
        assert 0 <= table["X", "X"] <= 4 and by_chance < 2


def test_pmc_celeba_outcomes_add_up():
    for right, wrong, table in outcomes(7):
        assert right + wrong == 19319
        assert table["X", "X"] + table["X", "✓"] == 2393
        assert 1 < table["X", "X"] / (2393 * wrong / 19319) < 1.31


def outcomes(n):
    """Right, wrong and the four cells of each experiment: all eight of them."""
    names = list(dict.fromkeys(key[0] for key in OUTCOMES[n]))
    assert len(names) == 8
    for name in names:
        pairs = itertools.product("X✓", repeat=2)
        table = {pair: int(OUTCOMES[n][(name, *pair)]) for pair in pairs}
        right, wrong = (table["X", o] + table["✓", o] for o in "✓X")
        yield right, wrong, table


def test_pmc_tables_6_and_7_agree_once_two_names_are_exchanged():
    """Rank correlation of the mean gain with the final accuracy."""
    gain, accuracy = {}, {}
    for name in PMC_EXPERIMENTS[6][1:]:
        averages = [PMC[6][name, "gain", t, "Avg."] for t in PMC_TARGETS[6]]
        gain[name] = float(sum(map(number, averages)))
        accuracy[name] = sum(int(OUTCOMES[7][name, ds, "✓"]) for ds in "X✓")
    names = {"DS": "DS", "IS": "CB", "CB": "IS"}
    exchanged = {
        "≻".join(names[part] for part in name.split("≻")): value
        for name, value in accuracy.items()
    }
    ranks = [pd.Series(values).rank() for values in (gain, accuracy, exchanged)]
    assert round(ranks[0].corr(ranks[1]), 2) == 0.07
    assert round(ranks[0].corr(ranks[2]), 2) == 0.74


# AdaFed, Table 1.


def test_adafed_samples():
    table = cells("adafed_table1")
    clients = [str(client) for client in range(1, 7)]
    assert set(table) == set(itertools.product(clients, "0123456789"))
    sums = [sum(int(table[client, c]) for c in "0123456789") for client in clients]
    assert sums == [190, 1710, 1780, 1230, 2040, 3160]
    assert sum(sums) == 10110


# Dual, Tables IV and V.

DUAL_TEST_SAMPLES = 416  # Table III says 510.
DUAL_MISPRINTS = {("Dual-Criterion Weighted", "MCC"): ("0.98588", "0.98558")}


def dual(name):
    """(algorithm, clients) -> metric -> the text on the page."""
    result = {}
    for (algorithm, clients, metric), printed in cells(name).items():
        result.setdefault((algorithm, clients), {})[metric] = printed
    return result


def fits(hits, samples, printed):
    return round(hits / samples, 5) == float(printed)


def test_dual_table_5_has_416_test_samples_and_not_510():
    found = {416: 0, 510: 0}
    for line in dual("dualcriterion_table5").values():
        for samples in found:
            counts = range(samples + 1)
            found[samples] += any(fits(n, samples, line["Accuracy"]) for n in counts)
    assert found == {416: 8, 510: 0}


def test_dual_table_5_follows_from_the_true_and_false_answers():
    """Accuracy, precision and F1 fix them; MCC follows, but for one cell."""
    wrong = {}
    for (algorithm, _), line in dual("dualcriterion_table5").items():
        tp, fp, fn, tn = the_one_matrix(line)
        assert tp + fn == 204, algorithm
        norm = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        follows = f"{(tp * tn - fp * fn) / norm:.5f}"
        if float(follows) != float(line["MCC"]):
            wrong[algorithm, "MCC"] = (line["MCC"], follows)
    assert wrong == DUAL_MISPRINTS


def the_one_matrix(line):
    samples = DUAL_TEST_SAMPLES
    right = round(float(line["Accuracy"]) * samples)
    matrices = [
        (tp, fp, samples - right - fp, right - tp)
        for tp in range(1, right + 1)
        for fp in range(samples - right + 1)
        if fits(tp, tp + fp, line["Precision"])
        and fits(2 * tp, 2 * tp + samples - right, line["F1 Score"])
    ]
    assert len(matrices) == 1, line
    return matrices[0]


def test_dual_table_4_is_possible():
    """With ten classes of one size, MCC >= (accuracy - .1) / .9.

    The covariance of answers and labels is accuracy - .1, and MCC divides it by
    at most .9, which it is when all classes are answered equally often.
    """
    table = dual("dualcriterion_table4")
    algorithms = {key[0] for key in dual("dualcriterion_table5")}
    assert set(table) == set(itertools.product(algorithms, ["C1&C2&C3", "C1&C2&C3&C4"]))
    uneven = set()
    for (algorithm, _), line in table.items():
        assert all(0 < float(printed) < 1 for printed in line.values())
        least = (float(line["Accuracy"]) - 0.1) / 0.9
        assert float(line["MCC"]) >= least
        if float(line["MCC"]) > least + 0.001:
            uneven.add(algorithm)
    assert uneven == {"Differential Privacy"}


# The module.


def test_a_table_as_data():
    table = published.table("da_table1")
    cell = table[(table["row"] == "Mean") & (table["column"] == "High mean")]
    assert list(cell["printed"]) == ["481.6", "417.4", "—", "—"]
    assert list(cell["value"][:2]) == [481.6, 417.4]
    assert cell["value"][2:].isna().all()


def test_the_decimal_comma_is_kept_in_the_print_alone():
    table = published.table("pmc_table2")
    row = table[table["devices"] == "Avg."].iloc[0]
    assert (row["printed"], row["value"]) == ("-0,11", -0.11)


def test_a_missing_table_is_named(monkeypatch, tmp_path):
    with pytest.raises(published.PublishedTableMissing, match="no_such"):
        published.table("no_such")
    monkeypatch.setattr(published, "FOLDER", str(tmp_path))
    with pytest.raises(published.PublishedTableMissing, match="source checkout"):
        published.table("da_table1")


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
    joined = published.beside(ours, theirs, keys)
    expected = ["row", "column", "ours", "printed", "published", "difference"]
    assert list(joined) == expected
    assert list(joined["row"] + joined["column"]) == ["b1", "a1", "a2", "c1"]
    assert joined["printed"].fillna("none").tolist() == ["9", "4", "—", "none"]
    assert joined["difference"].fillna(99).tolist() == [-1.5, 99, 99, 99]
    with pytest.raises(ValueError, match="one-to-one"):
        published.beside(ours, pd.concat([theirs, theirs]), keys)


def test_rounds_as_text():
    texts = [published.rounds_text(v) for v in (10.0, 22.5, 41 + 5 / 6, math.nan)]
    assert texts == ["10", "22.5", "41.83", "—"]


@pytest.mark.parametrize(
    "n, names", [(2, "DS LD MD"), (4, "DS LD MD"), (6, "DS IS CB")]
)
def test_our_labels_as_pmc_prints_them(n, names):
    names = names.split()
    labels = [*names, *map(",".join, itertools.permutations(names))]
    printed = {published.pmc_experiment(label) for label in labels}
    assert printed == set(PMC_EXPERIMENTS[n])
