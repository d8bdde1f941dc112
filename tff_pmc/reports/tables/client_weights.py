"""Whom each row favors: the clients' weights, from the record of the cohorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.figures import run_labels, weights_plot
from tff_pmc.reports.page_model import (
    MISSING,
    Block,
    Heading,
    Items,
    Page,
    Table,
    format_number,
)
from tff_pmc.reports.statistics import weight_statistics
from tff_pmc.reports.statistics.row_titles import row_titles

MAX_SHOWN = 5
"""The clients of a row that the page names."""

_EQUAL = 1e-6
"""Relative weights this close to 1 are equal: a record has seven digits."""

_WEIGHT = (
    "A weight is divided by the mean weight of the round's clients, excluded clients "
    "apart: 1 is an equal weight."
)
_CORRELATION = (
    "Rank correlation: Spearman's, between the clients' weights and a criterion, each "
    "relative to the round's cohort and averaged over a client's rounds. 1: the larger "
    "the criterion, the larger the weight; -1: the smaller; 0: the weight does not "
    f"follow it. {MISSING}: the criterion is equal for all clients."
)
_QUARTILES = (
    "Quartiles: the mean weight of each quarter of the clients, from the lowest to the "
    f"highest values of the criterion. {MISSING}: likewise, or below four clients."
)
_HEAD = ("rank correlation", "lowest quartile", "second", "third", "highest quartile")


def report(results: Results) -> Report:
    """Returns `weights.csv`, `weights.png` and a page: whom the weights favor.

    The table has how the weights follow each recorded criterion, as the page has,
    which also names the clients of the largest mean weight. It is empty where no
    weights were recorded.
    """
    relative = weight_statistics.relative_weights(results)
    if not len(relative):
        return Report()
    far = relative["relative"].sub(1).abs().groupby(relative["label"]).max()
    equal = [label for label in results.labels if far.get(label, 1.0) < _EQUAL]
    unequal = [x for x in results.labels if x in far.index and x not in equal]
    by_criterion = _over_seeds(weight_statistics.weights_by_criterion(results))
    titles = row_titles(results)
    notes = [f"{titles[label]}: every client has the same weight." for label in equal]
    blocks: list[Block] = [Items(notes)] if notes else []
    if unequal:
        seeds = len(results.seeds)
        shown = min(MAX_SHOWN, relative["client"].nunique())
        notes += [_WEIGHT, _CORRELATION, _QUARTILES]
        if seeds > 1:
            notes += [f"Means over {seeds} seeds, in brackets the lowest and highest."]
        blocks = [Items(notes)]
        blocks += [Table(_criterion_grid(by_criterion, titles, unequal, seeds), left=2)]
        blocks += [
            Heading(f"The {shown} clients with the largest mean weight"),
            "Criteria are means over the client's rounds. cohort.csv has every client "
            "of every round.",
            Table(_client_grid(results, titles, unequal), left=2 if seeds == 1 else 3),
        ]
    figure = weights_plot.weights_plot(relative, title=run_labels.title_of(results))
    return Report(
        tables={"weights": by_criterion.reset_index()},
        pages={"weights": Page("Who is favored: weights of the clients", blocks)},
        figures={"weights": figure},
        digits=6,
    )


def _over_seeds(by_criterion: pd.DataFrame) -> pd.DataFrame:
    """Returns `seeds`, `mean`, `lowest`, `highest` by label, criterion and quantity."""
    keys = ["label", "criterion", "quantity"]
    long = by_criterion.melt(
        id_vars=["seed", *keys[:2]],
        value_vars=[*weight_statistics.CRITERION_STATISTICS],
        var_name="quantity",
        ignore_index=False,
    ).sort_index(kind="stable")
    values = long.groupby(keys, sort=False)["value"]
    return values.agg(seeds="count", mean="mean", lowest="min", highest="max")


def _criterion_grid(
    by_criterion: pd.DataFrame,
    titles: Mapping[str, str],
    labels: Sequence[str],
    seeds: int,
) -> list[list[str]]:
    grid = [["run", "by", *_HEAD]]
    recorded = by_criterion.index.get_level_values("label")
    for label in (label for label in labels if label in {*recorded}):
        of_label = by_criterion.loc[label]
        for code in dict.fromkeys(of_label.index.get_level_values("criterion")):
            rows = of_label.loc[code]
            cells = [
                _mean_and_range(rows.loc[name], seeds)
                for name in weight_statistics.CRITERION_STATISTICS
            ]
            grid.append([titles[label], str(code), *cells])
    return grid


def _mean_and_range(row: pd.Series[float], seeds: int) -> str:
    mean = format_number(row["mean"], ".2f", MISSING)
    if seeds == 1 or mean == MISSING:
        return mean
    return f"{mean} ({row['lowest']:.2f} to {row['highest']:.2f})"


def _client_grid(
    results: Results, titles: Mapping[str, str], labels: Sequence[str]
) -> list[list[str]]:
    by_client = weight_statistics.weights_by_client(results)
    shown = by_client[by_client.index.get_level_values("label").isin(labels)]
    codes = [*shown.drop(columns=["rounds", "weight"]).dropna(axis=1, how="all")]
    of_seeds = len(results.seeds) > 1
    grid = [["run", *["seed"] * of_seeds, "client", "rounds in the cohort"]]
    grid[0] += ["mean weight, equal: 1", *codes]
    for label in labels:
        of_row = shown.xs(label, level="label", drop_level=False)
        count = min(MAX_SHOWN, of_row.index.get_level_values("client").nunique())
        largest = of_row.nlargest(count, "weight")
        for key, row in largest.iterrows():
            names = dict(zip([*RUN_KEY, "client"], key))
            seed = [str(names["seed"])] * of_seeds
            values = [_significant(row[code]) for code in codes]
            cells = [f"{row['rounds']:.0f}", f"{row['weight']:.2f}", *values]
            grid.append([titles[label], *seed, str(names["client"]), *cells])
    return grid


def _significant(value: float) -> str:
    """Returns a criterion with four digits; of a count all digits."""
    return format_number(value, ".0f" if abs(value) >= 1000 else ".4g", MISSING)


REPORTS.register("weights", report)
