"""From a round's outcome to the rows of its record, and to the words of the bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_pmc.experiments.record import measures, rows
from tff_pmc.systems.rounds import Round
from tff_pmc.systems.setup import Setup


def tables_of(
    setup: Setup,
    round_num: int,
    chosen: Sequence[int],
    outcome: Round,
    measured: np.ndarray,
    more: Mapping[str, float],
) -> dict[str, list[dict[str, Any]]]:
    """The rows of a round by the name of the file, in the order of writing.

    Args:
        setup: of the run.
        round_num: from 1.
        chosen: the clients of the round.
        outcome: the result of the round.
        measured: correctly classified test examples of each client, [K], or the sums
            of their losses.
        more: further columns of `rounds.csv`.
    """
    settings, data = setup.settings, setup.data
    measure = measures.measure_of(data)
    names, sizes = data.client_ids, np.asarray(data.test_examples.sizes, np.int64)
    train = outcome.metrics["client_work"]["train"]
    raw = np.asarray(train["criteria_by_client"], float)[chosen]
    excluded = np.asarray(train["excluded_by_client"])[chosen] > 0
    in_force = outcome.in_force
    row = {
        **rows.round_row(round_num, measured, sizes, outcome.metrics, measure),
        "ordering": in_force.label,
        "testing_rounds": len(outcome.tested),
        **more,
    }
    counted = rows.without(raw, excluded)
    return {
        "rounds": [row],
        "clients": rows.client_rows(round_num, names, measured, sizes, measure),
        "cohort": rows.cohort_rows(
            round_num, settings, in_force, names, chosen, raw, excluded
        ),
        "weights": rows.weight_rows(round_num, settings, in_force, counted),
        "candidates": rows.candidate_rows(round_num, outcome.tested),
        "groups": rows.group_rows(
            round_num, data.client_table.values, measured, sizes, measure
        ),
    }


def words_of(row: Mapping[str, Any], seconds: float, measure: measures.Measure) -> str:
    """A round in the words of the progress bar.

    Args:
        row: its row of `rounds.csv`.
        seconds: how long it took.
        measure: what the model is measured by.
    """
    percentiles = "/".join(
        f"{row[f'{measure.prefix}p{p}']:.2f}" for p in measures.PERCENTILES
    )
    name = measure.mean.replace("_", " ")
    text = f"{name} {row[measure.mean]:.3f}, p10/50/90 {percentiles}, {seconds:.1f} s"
    tested = row["testing_rounds"]
    if tested:
        candidates = "candidate" if tested == 1 else "candidates"
        text += f", tested {tested} {candidates} and kept {row['ordering']}"
    return text
