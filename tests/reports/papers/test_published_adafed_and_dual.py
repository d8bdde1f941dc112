"""AdaFed's Table 1 and Dual's Tables IV and V: what follows from other cells."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from tff_pmc.record.record_error import TooShortError
from tff_pmc.reports.papers import dual_cells
from tff_pmc.reports.papers.claim_tables import claims
from tff_pmc.reports.papers.dual_cells import ALGORITHMS, measures
from tff_pmc.reports.papers.quantities import label_of

DUAL_TEST_SAMPLES = 416  # Table III says 510.
DUAL_MISPRINTS = {("Dual-Criterion Weighted", "MCC"): ("0.98588", "0.98558")}


@pytest.fixture(scope="module")
def dual(page):
    """A function that gives (algorithm, clients) -> metric -> the text on the page."""

    def read(name):
        result = {}
        for (algorithm, clients, metric), printed in page.cells(name).items():
            result.setdefault((algorithm, clients), {})[metric] = printed
        return result

    return read


def test_adafed_samples(page):
    table = page.cells("adafed_table1")
    clients = [str(client) for client in range(1, 7)]
    assert set(table) == set(itertools.product(clients, "0123456789"))
    sums = [sum(int(table[client, c]) for c in "0123456789") for client in clients]
    assert sums == [190, 1710, 1780, 1230, 2040, 3160]
    assert sum(sums) == 10110


def fits(hits, samples, printed):
    return round(hits / samples, 5) == float(printed)


def test_dual_table_5_has_416_test_samples_and_not_510(dual):
    found = {416: 0, 510: 0}
    for line in dual("dualcriterion_table5").values():
        for samples in found:
            counts = range(samples + 1)
            found[samples] += any(fits(n, samples, line["Accuracy"]) for n in counts)
    assert found == {416: 8, 510: 0}


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


def test_dual_table_4_is_possible(dual):
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


def test_dual_table_5_follows_from_the_true_and_false_answers(dual):
    """Accuracy, precision and F1 fix them; MCC follows, but for one cell."""
    wrong = {}
    for (algorithm, _), printed in dual("dualcriterion_table5").items():
        tp, fp, fn, tn = the_one_matrix(printed)
        assert tp + fn == 204, algorithm
        y_true = np.repeat([1, 0, 1, 0], [tp, fp, fn, tn])
        y_pred = np.repeat([1, 1, 0, 0], [tp, fp, fn, tn])
        for metric, value in measures(y_true, y_pred, positive=1).items():
            if round(value, 5) != float(printed[metric]):
                wrong[algorithm, metric] = (printed[metric], f"{value:.5f}")
    assert wrong == DUAL_MISPRINTS


@pytest.fixture
def row(kept):
    """A function that makes a run of Dual's with one accuracy, in ten epochs."""

    def make(system, accuracy=0.5, seed=0, clients=3, **settings):
        own = {"system": system, "judge_on": "test", **settings}
        run = kept(system, seed, rounds=10, **own)
        run.info["data"]["clients"] = clients
        run.rounds["accuracy"] = accuracy
        return run

    return make


def test_the_numbers_that_duals_claims_quote_are_those_of_its_tables(
    dual, row, monkeypatch
):
    """Precision with four clients is claimed, and the table has it second."""
    printed = dual("dualcriterion_table4")

    def cells(runs, table):
        (run,) = runs
        line = printed[ALGORITHMS[run.settings["system"]], dual_cells.clients_of(run)]
        values = [float(line[metric]) for metric in dual_cells.METRICS]
        return pd.DataFrame({"metric": dual_cells.METRICS, "ours_best_epoch": values})

    monkeypatch.setattr(dual_cells, "tidy_rows", cells)
    systems = {name: system for system, name in ALGORITHMS.items()}
    tables = {"dual_criterion": 4, "dual_criterion_obstacles": 5}
    runs = {
        experiment: [
            row(systems[name], float(line["Accuracy"]), seed, clients.count("C"))
            for (name, clients), line in dual(f"dualcriterion_table{number}").items()
            for seed in range(5)
        ]
        for experiment, number in tables.items()
    }
    quoted = 0
    for claim in claims("Dual"):
        own = {name: runs[name] for name in claim.experiments}
        if "tuned models" in claim.says:  # Its models have no row in the tables.
            with pytest.raises(TooShortError, match="^no run with --personalized_form"):
                claim.judge(own)
            continue
        number, verdict, *_ = claim.judge(own)
        second = "second in its own table" in claim.says
        assert verdict == ("not reproduced" if second else "reproduced"), claim.says
        parts = [re.findall(r"[+-]\d+\.\d\d", one) for one in number.split("; ")]
        gap = float(parts[0][0])
        for said in re.findall(r"\.\d{4}", claim.says):
            assert said == f"{abs(gap) / 100:.4f}"[1:]
            quoted += 1
        for ours, *printed_size in parts:  # Chance, .1, is no row of the table.
            assert printed_size == [ours] * ("chance" not in claim.says)
        assert number.endswith("(10 epochs)")
    assert quoted == 2


def test_other_readings_and_quantization_of_before_are_no_rows(row):
    text = row("personalized", personalized_form="text")
    assert label_of(text, 3) == "personalized (text)"
    assert label_of(row("dual"), 3) == "dual"
    for run in (
        row("dual", judge_on="server"),
        row("quantized", quantized_levels=256),
        row("trimmed"),
        row("dual", clients=4),
    ):
        assert label_of(run, 3) == ""
