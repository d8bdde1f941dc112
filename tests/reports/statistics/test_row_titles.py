"""The names of rows that reports display."""

import pytest
from small_results import of_seeds

from tff_pmc.reports.statistics.row_titles import (
    COMMON_NOTES,
    row_titles,
    with_short_labels,
)


def test_the_ordering_ds_is_displayed_as_federated_averaging():
    counts = {label: [[3, 1]] for label in ("DS", "LD,DS", "q-FFL")}
    titles = row_titles(of_seeds({0: counts, 1: counts}, [4, 4]))
    assert titles == {"DS": "FedAvg (DS)", "LD,DS": "LD,DS", "q-FFL": "q-FFL"}
    assert [*titles] == ["DS", "LD,DS", "q-FFL"]


@pytest.mark.parametrize(
    ("titles", "labels", "short", "common"),
    [
        (
            ["FedAvg", "FedProx"],
            ["FedAvg, 200 clients", "FedProx, mu 1, 200 clients"],
            ["FedAvg", "FedProx, mu 1"],
            ["200 clients"],
        ),
        (
            ["FedAvg", "Prioritized"],
            ["FedAvg, prox 1, 9 clients", "LD,DS, prox 1, 9 clients"],
            ["FedAvg", "LD,DS"],
            ["prox 1", "9 clients"],
        ),
        # An algorithm's own name has a comma; one row keeps its label.
        (
            ["AdaFed, weights only", "AdaFed, weights only, times samples"],
            ["AdaFed, weights only", "AdaFed, weights only, times samples"],
            ["AdaFed, weights only", "AdaFed, weights only, times samples"],
            None,
        ),
        (["FedAvg"], ["FedAvg, 9 clients"], ["FedAvg, 9 clients"], None),
    ],
)
def test_settings_that_all_rows_share_are_not_in_their_labels(
    titles, labels, short, common
):
    counts = {label: [[number, 1]] for number, label in enumerate(labels)}
    notes = [label.split(", ")[-1] if common else "" for label in labels]
    runs = {"title": titles, "note": notes}
    results = of_seeds({0: counts, 1: counts}, [4, 4], runs=runs, baseline=labels[-1])
    shortened = with_short_labels(results)
    assert shortened.labels == short and shortened.baseline == short[-1]
    assert shortened.about.get(COMMON_NOTES) == common
    assert [*shortened.clients["label"].unique()] == short
    assert not (common and shortened.runs["note"].any())
    assert (
        shortened.only(label=short[-1]).rounds["correct"].tolist() == [len(labels)] * 2
    )
