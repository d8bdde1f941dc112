"""PMC: numbers of its page, from the kept records by NumPy alone."""

import csv
import itertools
import math
import re

import numpy as np
import pytest
from recomputing import (
    COLUMNS,
    KEPT,
    PAGES,
    SEEDS,
    STUDENTS_T,
    cohorts,
    column,
    half_interval,
    page_text,
    printed_table,
    rounds,
    runs_of,
    text,
    weights,
)

SHARES = range(10, 100, 10)
LATE = [column for column in COLUMNS if column[0] == 95]
PMC = (KEPT.parents[1] / "docs" / "pmc.md").read_text("utf-8")
LONG = [("mnist_table4_long", seed) for seed in SEEDS]


def printed(table, row):
    """(target, share) -> what PMC's table has in a row; without what is empty."""
    return {
        (int(line["target_accuracy_pct"]), int(line["devices"][:-1])): float(number)
        for line in printed_table(f"pmc_table{table}")
        if line["experiment"] == row and line["devices"] != "Avg."
        if (number := line["value"])
    }


def early(name, seed, above=0):
    """The rounds of DS, of which the first 30 count."""
    first_rounds = rounds(name, seed, "DS", above=above)
    return {column: number for column, number in first_rounds.items() if number <= 30}


@pytest.mark.parametrize(("name", "table"), [("mnist_table4", 4), ("mnist_table2", 2)])
def test_the_cells_over_seeds_are_medians_and_ends(name, table):
    with open(KEPT / name / f"table{table}_seeds.csv", encoding="utf-8") as file:
        cell_by_key = {
            (
                *(line["experiment"], line["reach"]),
                *(int(line["target_accuracy_pct"]), line["devices"]),
            ): line
            for line in csv.DictReader(file)
        }
    seeds = sorted({seed for seed, _ in runs_of(name, "rounds")})
    assert len(seeds) > 4
    ds, ld = (
        [rounds(name, seed, measure) for seed in seeds] for measure in ("DS", "LD")
    )
    num_known = 0
    above = [rounds(name, seed, "DS", above=1) for seed in seeds]
    for target, share in COLUMNS:
        cell = cell_by_key["DS (baseline)", "above", target, f"{share}%"]
        median = np.median([line.get((target, share), math.inf) for line in above])
        assert float(cell["median"] or "inf") == median
        base = [line.get((target, share), math.inf) for line in ds]
        gains = [a - line.get((target, share), math.inf) for a, line in zip(base, ld)]
        for values, row in ((base, "DS (baseline)"), (gains, "LD")):
            cell = cell_by_key[row, "at_least", target, f"{share}%"]
            if row == "LD" and not np.isfinite(values).all():
                assert {cell[x] for x in ("median", "lowest", "highest")} == {""}
                continue
            num_known += 1
            for name_of, measure in (
                ("median", np.median),
                ("lowest", min),
                ("highest", max),
            ):
                assert float(cell[name_of] or "inf") == measure(values)
    assert num_known > len(COLUMNS)


@pytest.mark.parametrize(
    ("network", "folders"),
    [
        ("no ReLU, Glorot uniform", ["mnist_table4", "mnist_table4_ld"]),
        ("no ReLU, Glorot normal", ["mnist_kernels_normal"]),
        ("ReLU, Glorot uniform", ["mnist_table4_relu"]),
        ("ReLU, Glorot normal", ["mnist_kernels_normal_relu"]),
    ],
)
def test_the_rounds_that_chose_the_network_are_on_the_page(network, folders):
    lines = re.findall(rf"^\| {network} \| (.*) \|$", PMC, re.M)
    first, second = (line.split(" | ") for line in lines)
    keys = {(name, seed) for name in folders for seed, _ in runs_of(name, "rounds")}
    at_least, above = ([early(*key, above) for key in keys] for above in (0, 1))

    def inside(targets, runs=at_least):
        count = 0
        for target, share in COLUMNS:
            values = [printed_round.get((target, share)) for printed_round in runs]
            if target in targets and None not in values:
                half = STUDENTS_T[len(keys)] * np.std(values, ddof=1)
                half *= math.sqrt(1 + 1 / len(keys))
                printed_round = printed(4, "DS (baseline)")[target, share]
                count += abs(printed_round - np.mean(values)) <= half
        return count

    for cell, key in zip(first, [(70, 50), (70, 90), (80, 50), (80, 90), (90, 50)]):
        values = [run[key] for run in at_least if key in run]
        words = f"{min(values)} to {max(values)}"
        if len(values) < len(keys):
            words = f"{len(values)} of {len(keys)} seeds reach it"
        assert cell == words
    assert first[-1] == f"{inside((70, 80, 90))} of 27"
    by_target = [f"{inside((70, 80))} of 18", f"{inside((90,))} of 9"]
    assert second == [*by_target, f"{inside((70, 80, 90), above)} of 27"]


def ends(values, form):
    """The median, and in brackets the lowest and the highest."""
    texts = [np.median(values), min(values), max(values)]
    texts = [f"{round(x, 1) + 0:{form}}".replace("+0.0", "0.0") for x in texts]
    return texts[0] if len({*texts}) == 1 else f"{texts[0]} ({' to '.join(texts[1:])})"


def test_the_late_columns_of_ds_are_on_the_page():
    part = PMC.split("**Do the late columns agree, too?**")[1].split("\n\n**")[0]
    lines = re.findall(r"^\| (\d+) %, (ours|paper) \| (.*) \|$", part, re.M)
    shown = {(int(target), side): cells.split(" | ") for target, side, cells in lines}
    runs, inside = [rounds(*side, "DS") for side in LONG], []
    for target in (70, 80, 90, 95):
        ours = np.array([[run[target, k] for k in SHARES] for run in runs])
        assert shown[target, "ours"] == [ends(cell, "g") for cell in ours.T]
        base = np.array([printed(4, "DS (baseline)")[target, k] for k in SHARES])
        assert shown[target, "paper"] == [f"{number:.0f}" for number in base]
        inside.append(np.sum((ours.min(axis=0) <= base) & (base <= ours.max(axis=0))))
    sooner = 1 - np.median(ours, axis=0) / base
    low, high = (f"{100 * x:.0f}" for x in (sooner[:-1].min(), sooner[:-1].max()))
    last = f"{100 * sooner[-1]:.0f}"
    words = f"by {low} to {high} % in the first eight columns, and by {last} %"
    page = " ".join(part.split())
    assert words in page
    above = [rounds(*side, "DS", above=1) for side in LONG]
    ends_of = [[run.get((95, k), math.inf) for run in above] for k in SHARES]
    num_above = sum(min(x) <= number <= max(x) for x, number in zip(ends_of, base))
    *others, last = inside
    words = f"in {others[0]}, {others[1]}, {others[2]} and {last} of the nine columns"
    assert words in page and f"in {num_above} of nine" in page
    readme = (KEPT.parents[1] / "README.md").read_text("utf-8")
    table = re.findall(r"^\| (?:share|\d+ %,).*", part, re.M)
    assert len(table) == 9 and "\n".join([table[0], "|---|" + 9 * "---:|"]) in readme
    assert "\n".join(table[1:]) in readme


def test_the_long_runs_are_on_the_page():
    """Their first 30 rounds were run on other processors before."""
    part = PMC.split("**Run to the last column")[1].split("\n\n**")[0]
    lines = dict(re.findall(r"^\| ([A-Z,]+) \| (.*) \|$", part, re.M))
    words = " ".join(part.split())
    labels = sorted({label for _, label in runs_of(LONG[0][0], "rounds")})
    assert sorted(["DS", *lines]) == labels
    at_least, above = (
        {
            x: [rounds(*run_of_seed, x, above=rule) for run_of_seed in LONG]
            for x in labels
        }
        for rule in (0, 1)
    )

    def saved(label, group, runs=at_least):
        pairs = zip(runs["DS"], runs[label])
        return [np.mean([ds[c] - other[c] for c in group]) for ds, other in pairs]

    reached_above = [
        c for c in LATE if all(c in run for each in above.values() for run in each)
    ]
    assert reached_above == LATE[:7]
    groups = [[(target, k) for k in SHARES] for target in (70, 80, 90)]
    groups = [(group, at_least) for group in [*groups, LATE, LATE[6:], COLUMNS]]
    groups.append((reached_above, above))
    sure = 0
    for label, line in lines.items():
        row = printed(4, label.replace("MD", "MW").replace(",", "≻"))
        cells = []
        for group, runs in groups:
            differences = saved(label, group, runs)
            sure += abs(np.mean(differences)) > half_interval(differences)
            number = text(differences, 1).replace("-0.0", "0.0").replace("+0.0", "0.0")
            cells.append(f"{number} ({np.mean([row[c] for c in group]):+.1f})")
        assert line.split(" | ") == cells
    number = ["no", "one", "two", "three", "four", "five", "six", "seven"][sure]
    assert f"{number} of the table's {len(lines) * len(groups)} intervals" in words
    differences = saved("LD", LATE)
    assert f"by {min(differences):.1f} to {max(differences):.1f} rounds" in words
    both = np.add(saved("LD", LATE[6:]), saved("MD", LATE[6:])) / 2
    mean = text(both, 1).lstrip("+")
    assert f"DS is {mean} rounds later than the mean of LD and MD" in words
    readme, fidelity = map(page_text, PAGES)
    at_95 = {x: text(saved(x, LATE), 1).lstrip("+") for x in lines}
    names, means = (
        f"{', '.join(parts[:-1])} and {parts[-1]}"
        for parts in ([*lines], [*at_95.values()])
    )
    assert f"{names} are {means} rounds sooner than FedAvg" in readme
    for label in lines:
        verb = " is" if label == "LD" else ""
        assert f"{label}{verb} {at_95[label]} sooner" in fidelity
    whole = text(saved("LD", COLUMNS), 1).lstrip("+")
    assert f"LD is {whole} rounds sooner" in fidelity
    pairs = [
        (first_round, at_least[label][seed][column])
        for label in at_least
        for seed in SEEDS
        for column, first_round in rounds("mnist_table4", seed, label).items()
    ]
    other = [abs(a - b) for a, b in pairs if a != b]
    count = f"{len(pairs)} rounds that were reached there, {len(pairs) - len(other)}"
    assert f"Of the {count} are the same" in words and len(other) == 7
    assert f"Seven differ, by {min(other)} to {max(other)} rounds." in words
    lengths = {
        max(run.values()) for run_of_seed in at_least.values() for run in run_of_seed
    }
    assert f"in rounds {min(lengths)} to {max(lengths)}" in words


def test_md_and_md_ld_ds_are_apart_in_table_4_and_not_here():
    part = PMC.split("**MD and MD,LD,DS are nearly")[1].split("\n\n")[0]
    words = " ".join(part.split())
    first, two = (
        [rounds(*group, label) for group in LONG] for label in ("MD", "MD,LD,DS")
    )
    is_equal = [a[c] == b[c] for a, b in zip(first, two) for c in COLUMNS]
    assert f"{sum(is_equal)} of their {len(is_equal)} rounds" in words
    apart = [np.mean([a[c] - b[c] for c in COLUMNS]) for a, b in zip(first, two)]
    mean = text(apart, 1).replace("+0.0", "0.0").replace("-0.0", "0.0")
    assert f"difference is {mean} rounds" in words
    of_others = [
        [abs(np.mean([a[c] - b[c] for c in group])) for group in (COLUMNS, LATE)]
        for (i, a), (j, b) in itertools.product(enumerate(first), enumerate(two))
        if i != j
    ]
    most, most_late = np.max(of_others, axis=0)
    sentence = f"are at most {most:.1f} rounds apart, and {most_late:.1f} at 95 %"
    assert f"{sentence} ({len(of_others)} pairs)" in words
    sentence = f"at most {most:.1f} rounds apart even under different seeds"
    assert sentence in page_text("docs/fidelity.md")
    moved = weight_moved("MD", "MD,LD,DS")
    assert f"{100 * moved:.1f} % of the total weight".lstrip("0") in words
    rows = {first["experiment"] for first in printed_table("pmc_table4")}
    table = {row: printed(4, row) for row in rows if row != "DS (baseline)"}
    gap = {c: table["MW≻LD≻DS"][c] - table["MW"][c] for c in COLUMNS}
    mean, last = (np.mean([gap[c] for c in group]) for group in (COLUMNS, LATE))
    assert f"it is {mean:.1f} rounds, and {last:.1f} at 95 %" in words
    assert f"the paper has them {mean:.1f} rounds apart" in words
    assert all(
        abs(np.mean([first[c] for c in LATE])) < last for first in table.values()
    )
    saved = {row: np.mean([first[c] for c in COLUMNS]) for row, first in table.items()}
    ends_of = [min(saved, key=saved.get), max(saved, key=saved.get)]
    assert ends_of == ["MW", "MW≻LD≻DS"]  # The lowest and the highest row.


def weight_moved(*labels):
    """The share of a cohort's weight by which two weightings differ, on average."""
    orderings = [tuple(label.split(",")) for label in labels]
    moved = []
    for group in LONG:
        for criteria in cohorts(*group, "DS"):
            first, two = weights(criteria, orderings).values()
            moved.append(abs(two - first).sum() / 2)
    return np.mean(moved)


def test_md_and_md_ds_ld_are_nearer_still():
    words = " ".join(
        PMC.split("**MD,DS,LD is nearer still")[1].split("\n\n")[0].split()
    )
    moved = weight_moved("MD", "MD,DS,LD")
    assert (
        f"it differs in {100 * moved:.2f} % of the weight".replace(" 0.", " .") in words
    )
    first, two = (
        [rounds(*group, label) for group in LONG] for label in ("MD", "MD,DS,LD")
    )
    is_equal = [a[c] == b[c] for a, b in zip(first, two) for c in COLUMNS]
    assert f"{sum(is_equal)} of the {len(is_equal)} rounds are the same" in words
    for columns, form in (
        (COLUMNS, "the mean difference is {} rounds"),
        (LATE, "at 95 % it is {}"),
    ):
        apart = [np.mean([a[c] - b[c] for c in columns]) for a, b in zip(first, two)]
        mean = text(apart, 1).replace("+0.0", "0.0").replace("-0.0", "0.0")
        assert form.format(mean.lstrip("+")) in words
    gaps = [
        np.mean([printed(4, "MW≻DS≻LD")[c] - printed(4, "MW")[c] for c in columns])
        for columns in (COLUMNS, LATE)
    ]
    assert "two {:.1f} rounds apart, and {:.1f} at 95 %".format(*gaps) in words


def test_the_late_columns_of_ld_md_ds_on_iid_data_are_on_the_page():
    name, row = "mnist_table2_long", "LD≻MW≻DS"
    (part,) = re.findall(r"\| LD,MD,DS, IID \|.*?\n\n", PMC, re.S)
    words = " ".join(
        PMC.split("In the last column alone, ")[1].partition("\n\n")[0].split()
    )
    lines = dict(re.findall(r"^\| ([a-z ]+) \| (.*) \|$", part, re.M))
    groups = [[column for column in COLUMNS if column[0] < 95], LATE, LATE[6:]]
    theirs = printed(2, row)
    means = [np.mean([theirs[column] for column in group]) for group in groups]
    assert lines.pop("paper").split(" | ") == [f"{mean:+.1f}" for mean in means]
    seeds = sorted({seed for seed, _ in runs_of(name, "rounds")})
    for above, line in enumerate(lines.values()):
        pairs = [
            [rounds(name, seed, label, above=above) for label in ("DS", "LD,MD,DS")]
            for seed in seeds
        ]
        saved = [
            [
                np.mean([ds[column] - other[column] for column in group])
                for ds, other in pairs
            ]
            for group in groups
        ]
        assert line.split(" | ") == [text(difference, 1) for difference in saved]
        last = [ds[95, 90] - other[95, 90] for ds, other in pairs]
        assert f"{min(last):+d} to {max(last):+d}" in words
    assert [*lines] == ["at least the target", "above the target"]


@pytest.mark.parametrize(
    ("data", "table", "name"),
    [("IID", 2, "mnist_table2_long"), ("non-IID", 4, "mnist_table4_long")],
)
def test_both_rules_of_reaching_a_target_are_on_the_page(data, table, name):
    part = PMC.split("### At least the target, or above it?")[1].split("\n### ")[0]
    lines = re.findall(rf"^\| {data}, (9.) %, (.*?) \| (.*) \|$", part, re.M)
    shown = {(int(target), rule): line.split(" | ") for target, rule, line in lines}
    paper = printed(table, "DS (baseline)")
    seeds = sorted({seed for seed, _ in runs_of(name, "rounds")})
    words = " ".join(part.split())
    words = words.partition("With non-IID data")[0 if data == "IID" else 2]
    lengths = [len(column(name, seed, "DS", "rounds", "round")) for seed in seeds]

    def median(values):
        """Infinite after the end of a run that might have arrived in the next round."""
        until = min(
            n
            for n, x in zip([*lengths, math.inf], [*values, math.inf])
            if x == math.inf
        )
        later = sorted(values)[len(values) // 2]
        return np.median(values) if later <= until else math.inf

    off, inside = [], []
    for above, rule in enumerate(("at least", "above")):
        runs = [rounds(name, seed, "DS", above=above) for seed in seeds]
        values = {c: [run.get(c, math.inf) for run in runs] for c in COLUMNS}
        for target in (90, 95):
            columns = [column for column in COLUMNS if column[0] == target]
            medians = [median(values[column]) for column in columns]
            cells = [f"{cell_value:g}".replace("inf", "—") for cell_value in medians]
            assert shown[target, rule] == cells
            assert shown[target, "paper"] == [
                f"{paper[cell_value]:g}" for cell_value in columns
            ]
        deviations = [
            100 * (m / paper[cell_value] - 1) for m, cell_value in zip(medians, columns)
        ]
        off.append(
            [cell_value for cell_value in deviations if math.isfinite(cell_value)]
        )
        inside.append(sum(min(v) <= paper[c] <= max(v) for c, v in values.items()))
    first = f"{abs(min(off[1])):.0f} % sooner and {max(off[1]):.0f} % later"
    assert f"between {first}" in words
    if data == "IID":
        number = {7: "seven", 8: "eight", 9: "nine"}[sum(x < 0 for x in off[0])]
        assert f"in {number} of nine columns, by up to {-min(off[0]):.0f} %" in words
        first = f"in {inside[0]} of all 36 columns of Table 2 by the first rule, and in"
        assert f"{first} {inside[1]} by the second" in words
        last = f"above 95 % in round {medians[-1]:g} (median; paper: {paper[95, 90]:g})"
        for path in PAGES:
            page = page_text(path)
            assert last in page and f"{inside[1]} of the 36 rounds" in page
    else:
        assert f"is {-max(off[0]):.0f} to {-min(off[0]):.0f} % sooner in all" in words
        number = {7: "seven", 8: "eight", 9: "nine"}[len(off[1])]
        assert f"later in the {number} where it is known" in words
        assert f"paper's number in {inside[0]} and in {inside[1]} of Table 4" in words
        deviations = (
            f"holds {inside[1]} of Table 4's 36 rounds ({inside[0]} at or above"
        )
        assert deviations in page_text("README.md")
