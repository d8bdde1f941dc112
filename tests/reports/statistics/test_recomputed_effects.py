"""The effects of kept runs, from their files by NumPy and SciPy alone."""

import collections
import csv
import gzip
import json
import math
import pathlib
import re

import numpy as np
import pytest
from scipy import stats

from tff_pmc.record.results import read_results
from tff_pmc.reports.tables import effect

KEPT = pathlib.Path(__file__).resolve().parents[3] / "results" / "reproduced"


def lines(folder, name):
    with gzip.open(KEPT / folder / f"{name}.csv.gz", "rt") as file:
        yield from csv.DictReader(file)


def counts_of(folder):
    """(seed, label) -> correct counts [rounds, clients], and sizes [clients]."""
    by_round = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in lines(folder, "clients"):
        counts = int(line["correct"]), int(line["examples"])
        by_round[int(line["seed"]), line["label"]][int(line["round"])].append(counts)
    arrays = {}
    for run, rounds in by_round.items():
        array = np.array([rounds[number] for number in sorted(rounds)])
        arrays[run] = array[..., 0], array[0, :, 1]
    return arrays


def late_mean(values, length):
    """The mean over the second half of the first rounds; the middle one counts."""
    return float(np.mean(values[:length][length // 2 :]))


def accuracy(counts, sizes, length):
    return late_mean(counts.sum(axis=1) / sizes.sum(), length)


def worst_tenth(counts, sizes, length):
    shares = np.sort(counts / sizes, axis=1)
    return late_mean(shares[:, : math.ceil(len(sizes) / 10)].mean(axis=1), length)


def jain(counts, sizes, length):
    variation = stats.variation(counts / sizes, axis=1)
    return late_mean(1 / (1 + variation**2), length)


def first_round(counts, sizes, target, above):
    """The round in which half of the clients reach a target, or infinity."""
    hundredths = 100 * counts - target * sizes
    reached = (hundredths > 0) if above else (hundredths >= 0)
    enough = np.flatnonzero(reached.sum(axis=1) * 2 >= len(sizes))
    return enough[0] + 1 if len(enough) else math.inf


def limits(differences):
    """The mean and the ends of its interval, by SciPy's."""
    mean, error = np.mean(differences), stats.sem(differences)
    if not error:
        return [mean] * 3
    interval = stats.t.interval(0.95, len(differences) - 1, loc=mean, scale=error)
    return [mean, *interval]


def signs(ours, theirs, shortest):
    """The numbers of seeds in which ours is known to be later, and sooner."""
    later = sooner = 0
    for a, b, length in zip(ours, theirs, shortest):
        # What a run did not reach, it reaches after its last round.
        known = max(a, b) < math.inf or min(a, b) <= length
        later += known and a > b
        sooner += known and a < b
    return later, sooner


@pytest.mark.parametrize(
    ("folder", "baseline", "kinds"),
    [
        # At 90 % FedAvg does not arrive, at 95 % none does.
        ("adafed_2", "FedAvg", {"mean", "signs", "none"}),
        # Each run ended when it had reached all targets; they count above them.
        ("mnist_table2_long", "DS", {"mean"}),
        ("mnist_table4", "DS", {"mean", "none"}),
    ],
)
def test_means_and_intervals_equal_scipys(folder, baseline, kinds):
    settings = json.loads((KEPT / folder / "experiment.json").read_text())["settings"]
    above = settings.get("reach") == "above"
    runs, seen = counts_of(folder), set()
    seeds = sorted({seed for seed, _ in runs})
    table = effect.report(read_results(str(KEPT / folder))).tables["effect"]
    table = table.set_index(["row", "measure"])
    labels = {label for _, label in runs} - {baseline}
    assert {*table.index.get_level_values("row")} == labels
    for label in labels:
        pairs = [(runs[seed, label], runs[seed, baseline]) for seed in seeds]
        shortest = [min(len(ours[0]), len(base[0])) for ours, base in pairs]
        for name, measure in (
            ("accuracy", accuracy),
            ("worst tenth", worst_tenth),
            ("Jain's index", jain),
        ):
            differences = [
                measure(*ours, length) - measure(*base, length)
                for (ours, base), length in zip(pairs, shortest)
            ]
            row = table.loc[label, name]
            shown = row[["mean", "low", "high"]].tolist()
            np.testing.assert_allclose(shown, limits(differences), atol=1e-12)
            assert row["seeds"] == len(seeds) and row["rounds"] == min(shortest)
            assert row["verdict"] == (
                "better" if shown[1] > 0 else "worse" if shown[2] < 0 else "not shown"
            )
        for target in settings["targets"]:
            ours, theirs = (
                [first_round(*pair[side], target, above) for pair in pairs]
                for side in (0, 1)
            )
            row = table.loc[label, f"rounds to {target} %"]
            shown = row[["mean", "low", "high"]].tolist()
            if np.isfinite([ours, theirs]).all():
                seen.add("mean")
                differences = np.subtract(ours, theirs)
                np.testing.assert_allclose(shown, limits(differences), atol=1e-12)
                later, sooner = (differences > 0).sum(), (differences < 0).sum()
            else:
                is_signs = np.isfinite([ours, theirs]).any()
                seen.add("signs" if is_signs else "none")
                assert np.isnan(shown).all()
                assert row["verdict"] == ("censored" if is_signs else "not reached")
                later, sooner = signs(ours, theirs, shortest)
            assert (row["more_in"], row["less_in"]) == (later, sooner)
    assert seen == kinds


@pytest.mark.parametrize(
    ("folder", "row", "page"),
    [
        ("dual_table4_images", "Dual-criterion, 3 clients", "dual_criterion"),
        ("dual_table4_four", "Dual-criterion, 4 clients", "dual_criterion"),
        ("mnist_table4_relu", "", "pmc"),
    ],
)
def test_the_pages_quote_the_effects(folder, row, page):
    """In points, and how many intervals exclude 0."""
    results = read_results(str(KEPT / folder))
    results.about["baseline"] = "Weighted mean" if row else "DS"
    report = effect.report(results)
    words = re.search(
        r"In (\d+ of \d+) comparisons.*; about ([\d.]+) would", report.text
    )
    if row:
        table = report.tables["effect"].set_index(["row", "measure"])
        mean, half = 100 * table.loc[(row, "accuracy"), ["mean", "interval"]]
        quotes = [f"{mean:.2f} ± {half:.2f}"]
    else:
        quotes = [f"In {words[1]} comparisons", f"about {words[2]} ("]
    text = " ".join((KEPT.parents[1] / "docs" / f"{page}.md").read_text().split())
    for quote in quotes:
        assert quote in text
