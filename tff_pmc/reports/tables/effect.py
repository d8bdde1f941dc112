"""The paired report: how runs differ from a baseline under the same seeds.

A run with one seed proves nothing: seeds alone move the rounds to a target by more than
orderings do. Here every run is compared with its baseline under the same seed
(partition, initial weights, cohorts, batches), seed by seed, and with the A/A control:
the baseline compared with itself under other seeds.

There is one report, on orderings, on algorithms, or on how accuracy is spread over the
clients; these differ in what they measure. Of orderings there are also the distances of
their weights. A regression has the test loss in the place of accuracy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable, Mapping
from typing import Any, Callable, NamedTuple

import pandas as pd

from tff_pmc import scores
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports import REPORTS, Report
from tff_pmc.reports.page_model import (
    MISSING,
    Block,
    Heading,
    Items,
    Page,
    Table,
    format_number,
)
from tff_pmc.reports.statistics import measures, paired_statistics, run_summary
from tff_pmc.reports.statistics.paired_statistics import MIN_SEEDS
from tff_pmc.reports.statistics.rounds_to_target import (
    reach_rule,
    reach_sentence,
    recorded_targets,
)
from tff_pmc.reports.statistics.run_notes import (
    caveat_notes,
    condition_notes,
    early_stop_notes,
    mark_incomplete_data,
)
from tff_pmc.reports.statistics.weight_statistics import (
    WEIGHT_STATISTICS,
    cohorts,
    normalization_of,
)

FIRST_ROUNDS = 5
"""The number of rounds of an algorithm that count as early."""

WEIGHT_COLUMNS = (*WEIGHT_STATISTICS, "from_first")
"""The columns on the weights of orderings."""

_LATE = "{}: the mean over the second half of the rounds; for rounds, less is better"
_BEST = "The best round is chosen on the examples that are reported"

Values = dict[str, "pd.Series[float]"]
"""Measures by name, each by seed and label."""


class ComparisonKind(NamedTuple):
    """What the paired report is on: its word for runs, and what it measures.

    `measures` takes runs whose means are not rounded, and the column of `rounds` that
    they are measured by.
    """

    noun: str
    note: str
    measures: Callable[[Results, str], Values]


def report(results: Results, kind: ComparisonKind) -> Report:
    """Returns `effect.csv` and `effect.md`; nothing of one seed or of one label.

    A difference is the run's measure minus that of `results.baseline` under the same
    seed and, of algorithms, on the same data. The measures, of the test examples of all
    clients, are

    - of orderings: `accuracy`, the mean over the second half of the rounds; `best
      accuracy`, that of the best round; and `rounds to T %`, until half of the devices
      reach the target;
    - of algorithms: the mean over the first five rounds (if there are more), over all
      rounds, that of the best round and that of the last;
    - of their spread: `accuracy` as of orderings, that of each round's worst tenth of
      the clients, Jain's index, and the rounds to the first target.

    Without each client's figures on record those of accuracy alone are left.

    A run that never reaches a target has a count of rounds that is only known to be
    larger than its length: it is censored. Where either side is, under any seed, a mean
    would depend on when the runs ended, and only the signs are given.

    The columns are the run's label, under the name of the kind; of algorithms,
    `baseline`; `measure`; those of `paired.difference` (`more` rounds than DS are
    worse); and of orderings, before the verdict, `WEIGHT_COLUMNS`: how unequal the
    weights
    are, and how far (total variation) from those of the baseline and, `from_first`,
    from those by the ordering's first criterion alone, each as the mean over the
    cohorts of the baseline's runs. Eight orderings and several measures are many
    comparisons: one in twenty verdicts is chance.

    Raises:
        RecordError: a run has no baseline, or the seeds do not have the same runs.
    """
    # One seed proves nothing, and the baseline alone has no effect.
    if len(results.seeds) < 2 or len(results.labels) < 2:
        return Report()
    base_of = _baselines(results, kind)
    measured = kind.measures(
        run_summary.with_exact_means(results), run_summary.results_metric(results).mean
    )
    runs = pd.MultiIndex.from_frame(results.runs[RUN_KEY])
    values = pd.DataFrame(measured).reindex(runs)
    rows = paired_statistics.differences(values, base_of)
    if kind is ORDERINGS:
        of_rows = _weights_of(results).reindex(
            rows["label"].map(paired_statistics.ordering_of)
        )
        for name in WEIGHT_COLUMNS:
            rows.insert(len(rows.columns) - 1, name, of_rows[name].to_numpy())
    else:
        rows.insert(1, "baseline", rows["label"].map(base_of))
    rows = rows.rename(columns={"label": kind.noun})
    blocks = [
        *_intro(results, kind, values),
        *_early_stop_items(results),
        *(early_stop_notes if kind is ALGORITHMS else caveat_notes)(results),
        *(_weights(rows, results.baseline) if kind is ORDERINGS else ()),
        *_differences(rows, kind.noun, results.baseline),
    ]
    page = Page(f"Is there an effect? {results.setting('experiment', '')}", blocks)
    table = mark_incomplete_data(rows, results)
    return Report(page.markdown(), {"effect": table}, {"effect": page}, digits=6)


def _baselines(results: Results, kind: ComparisonKind) -> dict[str, str]:
    """Returns label -> the label of its baseline: of algorithms, that on its data."""
    labels, baseline = paired_statistics.check_paired(results), results.baseline
    if kind is ORDERINGS:
        if baseline not in labels:
            raise RecordError(
                f"the baseline {baseline} is not among the runs: {', '.join(labels)}"
            )
        length = (
            paired_statistics.planned_length(results)
            .groupby("label", sort=False)
            .first()
        )
        for label in labels:
            if length[label] != length[labels[0]]:
                raise RecordError(
                    f"{label} has {length[label]} rounds, and {labels[0]} has "
                    f"{length[labels[0]]}: compare runs of equal length"
                )
        return dict.fromkeys(labels, baseline)
    runs = results.runs.drop_duplicates("label")
    # The plain baseline comes first: not, for example, one with another server
    # optimizer.
    plain = runs[(runs["title"] == baseline) | (runs["label"] == baseline)]
    on_data = dict(zip(plain["note"][::-1], plain["label"][::-1]))
    for label, note in zip(runs["label"], runs["note"]):
        if note not in on_data:
            raise RecordError(f"{label}: there is no run of {baseline} on its data")
    return {label: on_data[note] for label, note in zip(runs["label"], runs["note"])}


def _weights_of(results: Results) -> pd.DataFrame:
    """Returns the `WEIGHT_COLUMNS` of each ordering, means over the baseline's cohorts.

    A label that is no ordering of their criteria is left out; of an adjusted ordering
    it is the initial one. There are none where the runs recorded no raw criteria.
    """
    bases = results.only(label=results.baseline)
    criteria = bases.setting("criteria", ())
    base = paired_statistics.ordering_of(results.baseline)
    named = dict.fromkeys([base, *map(paired_statistics.ordering_of, results.labels)])
    orderings = [
        ordering for ordering in named if {*ordering.split(",")} <= {*criteria}
    ]
    by_ordering = {
        ordering: scores.prioritized(ordering.split(","), criteria)
        for ordering in [
            *orderings,
            *(ordering.split(",")[0] for ordering in orderings),
        ]
    }
    rows = []
    for _, raw, _ in cohorts(bases):
        weights = {
            ordering: scores.participant_weights(
                raw, score, normalization_of(bases.runs.iloc[0])
            )
            for ordering, score in by_ordering.items()
        }
        for ordering in orderings:
            shares, first_shares = weights[ordering], weights[ordering.split(",")[0]]
            base_shares = weights.get(base)
            statistics = (
                scores.coefficient_of_variation(shares),
                scores.effective_clients(shares),
                math.nan
                if base_shares is None
                else scores.total_variation(shares, base_shares),
                scores.total_variation(shares, first_shares),
            )
            rows.append((ordering, *statistics))
    table = pd.DataFrame(rows, columns=["ordering", *WEIGHT_COLUMNS])
    means: pd.DataFrame = table.groupby("ordering", sort=False).mean().astype(float)
    return means


def _ordering_measures(results: Results, column: str) -> Values:
    return {
        column: measures.second_half(results, column),
        f"best {column.replace('_', ' ')}": measures.best_round(results, column),
        **measures.rounds_of_half(results, recorded_targets(results)),
    }


def _algorithm_measures(results: Results, column: str) -> Values:
    measured = {}
    if (results.length > FIRST_ROUNDS).any():
        early = measures.mean_of_rounds(results, 1, FIRST_ROUNDS, column)
        measured[f"rounds 1 to {FIRST_ROUNDS}"] = early
    return {
        **measured,
        "all rounds": measures.mean_of_rounds(results, 1, column=column),
        "best round": measures.best_round(results, column),
        "last round": measures.last_round(results, column),
    }


ORDERINGS = ComparisonKind("ordering", _LATE, _ordering_measures)
ALGORITHMS = ComparisonKind("algorithm", _BEST, _algorithm_measures)
SPREAD = ComparisonKind("algorithm", _LATE, run_summary.spread_measures)

orderings = functools.partial(report, kind=ORDERINGS)
algorithms = functools.partial(report, kind=ALGORITHMS)
spread = functools.partial(report, kind=SPREAD)

REPORTS.register("ordering_effect", orderings)
REPORTS.register("algorithm_effect", algorithms)
REPORTS.register("spread_effect", spread)


def _intro(results: Results, kind: ComparisonKind, values: pd.DataFrame) -> list[Block]:
    """Returns what is compared and how the numbers are read, and the runs' means."""
    what, baseline = kind.noun, results.baseline
    data = "" if kind is ORDERINGS else "on the same data and "
    of_rounds = any(name.startswith("rounds to") for name in values)
    rule = f" {reach_sentence(reach_rule(results))}" if of_rounds else ""
    means = values.groupby(level="label").mean().reindex(results.labels)
    lines = [
        [str(label), *(_plain(value, name) for name, value in row.items())]
        for label, row in means.iterrows()
    ]
    notes = [
        f"Each {what} minus {baseline} {data}under the same seed: mean ± half the 95 % "
        "interval.",
        f"The noise floor is the standard deviation of {baseline} minus {baseline} "
        "under another seed: of one such difference, and of the mean of "
        f"{len(results.seeds)}, to compare the means with.",
        "A seed decides the initial weights, the cohorts, the batches and what of the "
        "data is drawn at random.",
        f"{kind.note.format(run_summary.metric_word(results).capitalize())}.{rule}",
    ]
    return [
        Items(notes),
        f"Seeds: {', '.join(map(str, results.seeds))}; under the first:",
        Items(condition_notes(results.only(seed=results.seeds[0]))),
        "Means over the seeds:",
        Table([["", *means], *lines]),
    ]


def _early_stop_items(results: Results) -> list[Block]:
    """Returns how runs count that a callback has ended, if there are some."""
    if paired_statistics.planned_length(results).equals(results.length):
        return []
    return ["Runs ended early: each counts with the rounds that it has."]


def _plain(value: float, measure: Hashable) -> str:
    return format_number(value, f".{_digits(measure)}f", MISSING)


def _digits(measure: Hashable) -> int:
    return 1 if str(measure).startswith("rounds to") else 4


def _weights(rows: pd.DataFrame, baseline: str) -> list[Block]:
    """Returns how unequal the weights of orderings are, and their distances."""
    head = ["ordering", "coefficient of variation", "effective clients"]
    head += [f"total variation from {baseline}", "from its own first criterion"]
    grid = [head]
    for row in rows.drop_duplicates("ordering").to_dict("records"):
        figures = zip(
            (row[name] for name in WEIGHT_COLUMNS), (".4f", ".2f", ".4f", ".4f")
        )
        cells = [format_number(value, form, MISSING) for value, form in figures]
        grid.append([str(row["ordering"]), *cells])
    blocks: list[Block] = [
        f"How far apart the weights are, on the cohorts of the runs of {baseline} "
        f"(total variation: the share of weight that moves away from {baseline}, or "
        "from the ordering's own first criterion alone):",
        Table(grid),
    ]
    if rows["total_variation"].isna().any():
        blocks.append(f"{MISSING}: no ordering of the criteria of {baseline}'s runs.")
    return blocks


def _differences(rows: pd.DataFrame, what: str, baseline: str) -> list[Block]:
    """Returns a table for each measure, and below them what was found."""
    blocks: list[Block] = []
    for measure, part in rows.groupby("measure", sort=False):
        digits = _digits(measure)
        grid = [[what, f"minus {baseline}", "noise floor", "of the mean", "effect"]]
        for row in part.to_dict("records"):
            names = ("noise_floor", "noise_floor_of_mean")
            floors = [format_number(row[name], f".{digits}f") for name in names]
            cells = [str(row[what]), _mean(row, digits), *floors, str(row["verdict"])]
            grid.append(cells)
        blocks += [Heading(str(measure)), Table(grid)]
    blocks += _closing(rows)
    if rows["mean"].isna().any():
        blocks.append(
            f"Censored: under some seed the {what} or {baseline} did not reach the "
            "target before the runs ended, so no mean is known. Only the seeds in "
            "which one is known to be later are counted. There is no noise floor where "
            f"a run of {baseline} did not reach it."
        )
    return blocks


def _closing(rows: pd.DataFrame) -> list[str]:
    """Returns sentences on the number of differences found, and expected by chance."""
    counts, lines = rows["verdict"].value_counts(), []
    outside = int(counts.reindex(["more", "less"]).sum())
    decided = outside + int(counts.get("not shown", 0))
    if decided:
        lines.append(
            f"In {outside} of {decided} comparisons the interval excludes 0; about "
            f"{decided / 20:.1f} would do so by chance."
        )
    if (rows["seeds"] < MIN_SEEDS).any():
        lines.append(f"With fewer than {MIN_SEEDS} seeds there is no verdict.")
    return lines


def _mean(row: Mapping[Hashable, Any], digits: int) -> str:
    """Returns the mean and its interval; of censored rounds, the signs alone."""
    if math.isnan(row["mean"]):
        return (
            f"later in {row['more_in']} and earlier in {row['less_in']} of "
            f"{row['seeds']} seeds"
        )
    interval = format_number(row["interval"], f".{digits}f")
    return f"{row['mean']:+.{digits}f}{interval and f' ± {interval}'}"
