"""Whom each row favors: the page, its table and its figure."""

import numpy as np
import pandas as pd
import pytest
from small_results import join_results, results_of_seed

from tff_pmc.reports import Report, page_model
from tff_pmc.reports.statistics import weight_statistics
from tff_pmc.reports.tables import client_weights

CLIENTS = "abcdefgh"


def cohort_of(weights, **criteria):
    """Returns the cohort of two rounds in which all clients train alike."""
    rows = {"client": [*CLIENTS], **criteria, "excluded": 0, "weight": weights}
    return pd.concat([pd.DataFrame({"round": k, **rows}) for k in (1, 2)])


def runs_of(*cohorts, labels=("LD",)):
    """Returns runs, each seed with a cohort, in which the first label has it."""
    counts = {label: [[1, 2], [2, 2]] for label in labels}
    return join_results(
        results_of_seed(counts, [3, 3], seed=seed, tables={"cohort": cohort})
        for seed, cohort in enumerate(cohorts)
    )


def blocks_of(report, kind):
    (page,) = report.pages.values()
    return [block for block in page.blocks if isinstance(block, kind)]


def test_the_clients_of_the_largest_weights_are_named_with_their_criteria():
    cohort = pd.DataFrame(
        {
            "round": [1, 1, 1, 2, 2],
            "client": ["a", "b", "c", "a", "b"],
            "relative": [0.1, 0.2, 0.3, 0.1, 0.25],  # The code of a criterion.
            "excluded": [0, 0, 1, 0, 0],
            "weight": [0.25, 0.75, 0.0, 0.5, 0.5],
        }
    )
    results = runs_of(cohort)
    columns = ["seed", "label", "round", "client", "weight", "relative"]
    assert [*weight_statistics.relative_weights(results)] == columns
    _, clients = blocks_of(client_weights.report(results), page_model.Table)
    assert clients.grid == [
        ["run", "client", "rounds in the cohort", "mean weight, equal: 1", "relative"],
        ["LD", "b", "2", "1.25", "0.225"],  # (2 * .75 + 2 * .5) / 2: two clients count.
        ["LD", "a", "2", "0.75", "0.1"],
    ]


def test_a_row_has_its_correlation_and_quartiles_by_each_criterion():
    """By hand: the weight falls with LD, and DS is equal for all."""
    weights = np.array([8, 7, 6, 5, 4, 3, 2, 1]) / 36
    cohort = cohort_of(weights, DS=600.0, LD=np.arange(1.0, 9))
    report = client_weights.report(runs_of(cohort))
    by_criterion, clients = blocks_of(report, page_model.Table)
    pairs = [f"{pair / 36 * 8 / 2:.2f}" for pair in (8 + 7, 6 + 5, 4 + 3, 2 + 1)]
    assert by_criterion.grid[1:] == [
        ["LD", "DS", *5 * [page_model.MISSING]],
        ["LD", "LD", "-1.00", *pairs],
    ]
    assert clients.grid[1] == ["LD", "a", "2", f"{8 / 36 * 8:.2f}", "600", "1"]
    assert len(clients.grid) == 1 + client_weights.MAX_SHOWN
    assert "nan" not in report.pages["weights"].markdown()
    table = report.tables["weights"].set_index(["criterion", "quantity"])
    assert table.loc[("LD", "rank_correlation"), "mean"] == pytest.approx(-1)
    assert table.loc["DS", "mean"].isna().all() and not table.loc["DS", "seeds"].any()


def test_several_seeds_are_means_and_ranges():
    values = np.arange(1.0, 9)
    cohorts = [cohort_of(w / w.sum(), LD=values) for w in (values, values[::-1])]
    report = client_weights.report(runs_of(*cohorts))
    by_criterion, clients = blocks_of(report, page_model.Table)
    assert by_criterion.grid[1][2:4] == [
        "0.00 (-1.00 to 1.00)",
        f"1.00 ({1.5 / 4.5:.2f} to {7.5 / 4.5:.2f})",
    ]
    assert [row[1:3] for row in clients.grid[1:3]] == [["0", "h"], ["1", "a"]]
    table = report.tables["weights"].set_index("quantity")
    assert table.loc["rank_correlation", "seeds"] == 2
    np.testing.assert_allclose(
        table.loc["quartile_4", ["mean", "lowest", "highest"]].astype(float),
        [1, 1.5 / 4.5, 7.5 / 4.5],
        rtol=1e-5,
    )
    (axes, *_) = report.figures["weights"].axes
    lines = [line.get_ydata()[0] for line in axes.get_lines()[:3]]
    # Medians, smallest and largest of the cohorts: of both seeds the same.
    np.testing.assert_allclose(lines, [1, 1 / 4.5, 8 / 4.5])
    assert len(axes.collections) == 3


@pytest.mark.parametrize("size", [8, 7])
def test_a_row_that_weighs_all_alike_has_one_line(size):
    """Also where the recorded digits of the weights do not sum to 1."""
    cohort = cohort_of(round(1 / size, 7), LD=np.arange(1.0, 9))
    report = client_weights.report(
        runs_of(cohort[cohort["client"].isin([*CLIENTS[:size]])])
    )
    (page,) = report.pages.values()
    assert [block.texts for block in page.blocks] == [
        ["LD: every client has the same weight."]
    ]


def test_a_row_shows_the_criteria_that_it_recorded():
    """`H` is recorded for a row that weighs all alike, and shown for none."""
    values = np.arange(1.0, 9)
    cohort = pd.concat(
        [
            cohort_of(values / 36, LD=values).assign(seed=0, label="LD"),
            cohort_of(values / 36, F=values, DS=values).assign(seed=0, label="q"),
            cohort_of(1 / 8, H=values).assign(seed=0, label="median"),
        ]
    )
    report = client_weights.report(runs_of(cohort, labels=("LD", "q", "median")))
    by_criterion, clients = blocks_of(report, page_model.Table)
    assert [row[:2] for row in by_criterion.grid[1:]] == [
        ["LD", "LD"],
        ["q", "F"],
        ["q", "DS"],
    ]
    assert clients.grid[0][4:] == ["LD", "F", "DS"]
    assert clients.grid[1][4:] == ["8", "—", "—"]
    assert report.tables["weights"]["criterion"].nunique() == 4


def test_a_row_without_criteria_has_only_its_clients():
    report = client_weights.report(runs_of(cohort_of(np.arange(1.0, 9) / 36)))
    by_criterion, clients = blocks_of(report, page_model.Table)
    assert len(by_criterion.grid) == 1 and not len(report.tables["weights"])
    assert clients.grid[1] == ["LD", "h", "2", f"{8 / 4.5:.2f}"]


def test_without_weights_on_record_there_is_no_page():
    assert client_weights.report(runs_of(cohort_of(np.nan))) == Report()
