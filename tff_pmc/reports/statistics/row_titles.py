"""How reports display the rows of results."""

from __future__ import annotations

from tff_pmc.record.results import BASELINE, Results


def row_titles(results: Results) -> dict[str, str]:
    """Returns label -> the name that reports display, in the order of the labels.

    The ordering `DS` is federated averaging, and displayed as `FedAvg (DS)`.
    """
    return {
        label: f"FedAvg ({label})" if label == BASELINE else label
        for label in results.labels
    }
