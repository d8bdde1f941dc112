"""PMC's section 4.2 on runs: do criteria of higher variance give better models?

The paper's advice is to take criteria whose scores differ most between clients. Here
each of the nine orderings has the coefficient of variation of the weights by its first
criterion alone, the mean over the rounds and runs that have `weights.csv`, and beside
it the rounds that it gained and its best accuracy. Spearman's rank correlation of the
two says whether they go together. Nine orderings are three first criteria: the ranks
have ties, and a correlation of them is no test by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tff_pmc.record.read import BASELINE, Run, conditions_of, with_caveat
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import REPORTS, Report, pages
from tff_pmc.reports.rounds_to_target import average, rounds_of, targets_of, untested

TITLE = "PMC, section 4.2: the first criterion's variance, and what an ordering gained"
VARIATION, BEST = "coefficient_of_variation", "best_accuracy"


def report(runs: Sequence[Run]) -> Report:
    """Returns `variance.csv` and `variance.md` of orderings under one seed."""
    try:
        table = orderings(runs)
    except RecordError as error:
        return Report(f"The variance of section 4.2 is left out: {error}")
    found = correlations(table)
    words = [
        f"Rank correlation with {name.replace('_', ' ')}: "
        + ("not known for every ordering." if np.isnan(rho) else f"{rho:+.2f}.")
        for name, rho in found.items()
    ]
    notes = [*conditions_of(runs[:1]), *untested(runs[:1]), *words]
    notes.append(
        "Orderings that share their first criterion have tied ranks, and each ran "
        "once. This shows how the numbers lie, not that one is the cause of the other."
    )
    grid = [["ordering", "first criterion", "its coefficient of variation", *found]]
    for label, row in table.iterrows():
        values = [row["first"], f"{row[VARIATION]:.4f}"]
        values += ["" if np.isnan(row[name]) else f"{row[name]:.4g}" for name in found]
        grid.append([str(label), *values])
    parts, marked = {"Orderings": grid}, with_caveat(table, runs)
    return pages.report("variance", TITLE, notes, parts, marked, digits=6)


def orderings(runs: Sequence[Run]) -> pd.DataFrame:
    """Returns a row for each run whose label is an ordering.

    The columns are `first` (criterion), `coefficient_of_variation`, `gain at T %` for
    each target that all devices' columns of DS reach (rounds saved over DS, the mean of
    nine columns), and `best_accuracy`. Fewer than three orderings are a `RecordError`.
    """
    tables = [run.weights for run in runs if VARIATION in run.weights]
    if not tables:
        raise RecordError("no run has its weights.csv")
    both = pd.concat(tables)
    # The weights by one criterion alone.
    single = both[~both["ordering"].str.contains("[,:]")]
    variation = single.groupby("ordering")[VARIATION].mean()
    rows = {}
    for run in runs:
        first = run.label.split(",")[0]
        if run.adjustment == "fixed" and first in variation:
            rows[run.label] = {
                "first": first,
                VARIATION: variation[first],
                **_gains(run, runs),
                BEST: float(np.max(run.accuracy)),
            }
    if len({row["first"] for row in rows.values()}) < 3:
        raise RecordError("it needs runs of orderings with three first criteria")
    return pd.DataFrame.from_dict(rows, orient="index")


def correlations(table: pd.DataFrame) -> dict[str, float]:
    """Returns column -> Spearman's rank correlation with the variation, +1 as claimed.

    A column that is not known of every ordering, or is the same for all, has NaN.
    """
    variation = table[VARIATION].rank()
    return {
        name: float(variation.corr(values.rank()))
        if values.notna().all() and values.nunique() > 1
        else float("nan")
        for name, values in table.iloc[:, 2:].items()
    }


def _gains(run: Run, runs: Sequence[Run]) -> dict[str, float]:
    base = next((other for other in runs if other.label == BASELINE), None)
    if base is None:
        return {}
    found = {}
    for target in targets_of(runs):
        own, start = (rounds_of(one, (target,)) for one in (run, base))
        if None not in start.values():
            last = len(run.rounds)
            gains = {key: (start[key] or 0) - (own[key] or last) for key in start}
            found[f"gain at {target} %"] = average(gains, target)
    return found


REPORTS.register("pmc_variance", report)
