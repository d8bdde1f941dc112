"""AdaFed's Table 1 and Dual's Tables IV and V: what follows from other cells."""

import itertools

import numpy as np
import pytest

from tff_pmc.reports.papers.dual_cells import measures

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
