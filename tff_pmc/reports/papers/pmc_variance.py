"""PMC's section 4.2 on runs: do criteria of higher variance give better models?

The paper's advice is to take criteria whose scores differ most between clients. Here
each of the nine orderings has the coefficient of variation of the weights by its first
criterion alone, as the mean over the cohorts of all runs, the rounds that it gained,
and its best accuracy. Spearman's rank correlation shows whether the coefficient agrees
with the two. Nine orderings have only three first criteria: their ranks have ties, so
that a correlation is not a test by itself.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from tff_pmc import scores
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import REPORTS, Report, page_model, single_seed_only
from tff_pmc.reports.statistics import weight_statistics
from tff_pmc.reports.statistics.rounds_table import AVERAGE, rounds_cells
from tff_pmc.reports.statistics.rounds_to_target import pmc_average, targets_of
from tff_pmc.reports.statistics.run_notes import (
    caveat_notes,
    condition_notes,
    mark_incomplete_data,
)

TITLE = "PMC, section 4.2: the first criterion's variance, and what an ordering gained"
VARIATION, BEST = "coefficient_of_variation", "best_accuracy"


@single_seed_only
def report(results: Results) -> Report:
    """Returns `variance.csv` and `variance.md` of orderings under one seed."""
    try:
        table = orderings(results)
    except RecordError as error:
        return Report(f"The variance of section 4.2 is omitted: {error}")
    correlation_by_column = correlations(table)
    words = [
        f"Rank correlation with {name.replace('_', ' ')}: "
        + ("not known for every ordering." if np.isnan(rho) else f"{rho:+.2f}.")
        for name, rho in correlation_by_column.items()
    ]
    notes = [
        *condition_notes(results.only(label=results.labels[0])),
        *caveat_notes(results.only(label=results.labels[0])),
        *words,
        "Orderings that share their first criterion have tied ranks, and each ran "
        "once. This shows how the numbers lie, not that one is the cause of the other.",
    ]
    grid = [
        [
            "ordering",
            "first criterion",
            "its coefficient of variation",
            *correlation_by_column,
        ]
    ]
    for label, row in table.iterrows():
        values = [row["first"], f"{row[VARIATION]:.4f}"]
        values += [
            page_model.format_number(row[name], ".4g") for name in correlation_by_column
        ]
        grid.append([str(label), *values])
    parts, marked = {"Orderings": grid}, mark_incomplete_data(table, results)
    return Report.from_grids("variance", TITLE, notes, parts, marked, digits=6)


def orderings(results: Results) -> pd.DataFrame:
    """Returns one row per run under one seed whose label is an ordering.

    The columns are `first` (criterion), `coefficient_of_variation`, `gain at T %` for
    each target that all devices' columns of DS reach (rounds saved over DS, the mean of
    nine columns), and `best_accuracy`. Fewer than three first criteria are a
    `RecordError`.
    """
    variation = _variations(results)
    orders = {label: label.split(",") for label in results.labels}
    first = {
        label: codes[0] for label, codes in orders.items() if {*codes} <= {*variation}
    }
    if len({*first.values()}) < 3:
        raise RecordError("it needs runs of orderings with three first criteria")
    rounds = results.rounds.assign(
        accuracy=results.rounds["correct"] / results.rounds["examples"]
    )
    table = pd.DataFrame({"first": first})
    table[VARIATION] = table["first"].map(variation)
    table = table.join(_gains(results))
    table[BEST] = rounds.groupby("label")["accuracy"].max()
    return table


def correlations(table: pd.DataFrame) -> dict[str, float]:
    """Returns column -> Spearman's rank correlation with the variation, +1 as claimed.

    NaN for a column that is unknown for an ordering, or the same for all.
    """
    variation = table[VARIATION].rank()
    return {
        name: float(variation.corr(values.rank()))
        if values.notna().all() and values.nunique() > 1
        else math.nan
        for name, values in table.iloc[:, 2:].items()
    }


def _variations(results: Results) -> dict[str, float]:
    """Returns criterion -> the coefficient of variation of weights by it alone.

    It is the mean over all cohorts; excluded clients have no weight.
    """
    cohorts = [raw for _, raw, _ in weight_statistics.cohorts(results)]
    if not cohorts:
        raise RecordError("no run has its cohort.csv")
    criteria = list(results.setting("criteria"))
    for name in ("normalization", "criteria_ranges"):
        results.setting(name)  # One for all runs.
    normalization = weight_statistics.normalization_of(results.runs.iloc[0])

    def variation(code: str) -> float:
        score = scores.prioritized((code,), criteria)
        weights = (scores.participant_weights(c, score, normalization) for c in cohorts)
        return float(np.mean([scores.coefficient_of_variation(w) for w in weights]))

    return {code: variation(code) for code in criteria}


def _gains(results: Results) -> pd.DataFrame:
    """Returns the mean gains over DS, one column per target that DS reaches."""
    targets = targets_of(results)
    if BASELINE not in results.labels or not targets:
        return pd.DataFrame(index=results.labels)
    cells = rounds_cells(
        results,
        targets,
        baseline=dict.fromkeys(results.labels, BASELINE),
        averages={AVERAGE: pmc_average},
    )
    of_ds = cells[(cells["label"] == BASELINE) & (cells["quantity"] == "rounds")]
    is_reached = of_ds.groupby("target", sort=False)["value"].agg(
        lambda rounds: rounds.notna().all()
    )
    gains = cells[cells["column"] == AVERAGE].pivot(
        index="label", columns="target", values="value"
    )
    gains_by_label = gains.loc[results.labels, is_reached.index[is_reached]]
    return gains_by_label.rename_axis(None, axis=1).rename(
        columns="gain at {} %".format
    )


REPORTS.register("pmc_variance", report)
