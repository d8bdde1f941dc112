"""The names of rows that reports display."""

from made import of_seeds

from tff_pmc.reports.statistics.row_titles import row_titles


def test_the_ordering_ds_is_displayed_as_federated_averaging():
    counts = {label: [[3, 1]] for label in ("DS", "LD,DS", "q-FFL")}
    titles = row_titles(of_seeds({0: counts, 1: counts}, [4, 4]))
    assert titles == {"DS": "FedAvg (DS)", "LD,DS": "LD,DS", "q-FFL": "q-FFL"}
    assert [*titles] == ["DS", "LD,DS", "q-FFL"]
