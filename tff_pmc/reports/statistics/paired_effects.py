"""How rows differ from their baselines under the same seeds, in one table.

Data frames in, data frames out: `effects` compares orderings, algorithms, and the
rounds of any other program alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_pmc.record.metric import ACCURACY, LOSS
from tff_pmc.record.record_error import NotRecordedError, RecordError
from tff_pmc.record.results import BASELINE, RUN_KEY, Results
from tff_pmc.reports.statistics import measures, paired_statistics, run_summary
from tff_pmc.reports.statistics.rounds_to_target import (
    HALF,
    recorded_targets,
    rounds_to_target,
)
from tff_pmc.reports.statistics.row_titles import row_names, row_titles
from tff_pmc.settings.row_names import FED_AVG, find_baseline

COLUMNS = (
    *("row", "baseline", "measure", "seeds", "rounds", "mean", "low", "high"),
    *("deviation", "interval", "noise_floor", "noise_floor_of_mean"),
    *("more_in", "less_in", "verdict"),
)

NOT_REACHED, NOT_FINITE = "not reached", "not finite"
"""The verdicts where no difference exists: neither run reached the target under any
seed; a value is NaN or infinite, as after a training that diverged."""

ROUNDS_TO = "rounds to "
"""What the names of the measures of rounds begin with."""

SPREAD = {
    "worst_tenth": "worst tenth",
    "standard_deviation": "standard deviation over clients",
    "jain_index": "Jain's index",
}
"""The figures of `run_summary.SPREAD` that are compared, and their measures' names."""

_DEFAULT_BASELINES = (BASELINE, FED_AVG)


def effects(results: Results, baseline: str = "") -> pd.DataFrame:
    """Returns how each row differs from its baseline, measure by measure.

    Runs of a row and of its baseline are paired by seed, and compared over the rounds
    that both have: of a run that ended early those of the shorter one.

    Args:
        results: the runs, under one seed or several.
        baseline: the label or name of the row that the others are compared with, on
            the same data; by default that of the results, else FedAvg, else the first
            row.

    Returns:
        A table whose `attrs` have the `metric`; `titles`, label -> displayed name; and
        `conditions`, label -> what else a sentence on the row must say, such as `over
        the first 50 rounds`.
        One row per label that is not a baseline and per measure, with `COLUMNS`: `row`
        and `baseline` are labels; `seeds` that both have; `rounds` that are compared,
        the fewest of all seeds; `mean` of the differences, `low` and `high`, the limits
        of its 95 % confidence interval (empty for one seed); the others are those of
        `paired_statistics.difference`, except that the verdict `more` or `less` is
        called `better` or `worse` where that is known. The measures are those of
        `tff_pmc.effect`.

    Raises:
        RecordError: a row has no baseline on its data or no seed in common with it, or
            the runs have no metric.
    """
    return paired_effects(results, baselines(results, baseline))


def paired_effects(results: Results, base_of: Mapping[str, str]) -> pd.DataFrame:
    """Returns the table of `effects`; `base_of` is label -> the baseline's label."""
    metric, other_metrics = _metrics(results)
    per_round = _rounds_with_spread(results)
    spread = [name for name in SPREAD.values() if name in per_round]
    reached = _rounds_reached(results)
    rows, conditions = [], {}
    for label, base in base_of.items():
        if label == base:
            continue
        common = common_rounds(results, label, base)
        conditions[label] = _conditions(results, label, base, common)
        pair = per_round[
            per_round["label"].isin([label, base])
            & (per_round["round"] <= per_round["seed"].map(common))
        ]
        measured = _values(
            run_summary.replace_rounds(results, pair), metric, spread, other_metrics
        )
        for measure, values in {**measured, **reached}.items():
            by_label = values.unstack("label").loc[common.index, [label, base]]
            if measure in other_metrics and by_label.isna().any(axis=1).all():
                continue  # One of the two does not have it.
            compared = _cut_rounds(by_label, common) if measure in reached else by_label
            stat = paired_statistics.difference([*compared[label]], [*compared[base]])
            stat["low"] = stat["mean"] - stat["interval"]
            stat["high"] = stat["mean"] + stat["interval"]
            is_finite = bool(np.isfinite(by_label).any(axis=None))
            stat["verdict"] = _verdict(stat, measure, metric, is_finite)
            cells = {"row": label, "baseline": base, "measure": measure, **stat}
            rows.append({**cells, "rounds": int(common.min())})
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table.attrs = {
        "metric": metric,
        "titles": row_titles(results),
        "conditions": {label: words for label, words in conditions.items() if words},
    }
    return table


def _conditions(
    results: Results, label: str, base: str, common: pd.Series[int]
) -> list[str]:
    """Returns that a row and its baseline differ in the data, or in the rounds."""
    words = []
    runs = results.runs[results.runs["seed"] == common.index[0]].set_index("label")
    names = ("data_name", "data_clients", "data_options")
    data = [
        [str(runs.loc[row].get(name)) for name in names if name in runs]
        for row in (label, base)
    ]
    if data[0] != data[1]:
        words.append("on other data")
    lengths = results.length.unstack("label")[[label, base]].loc[common.index]
    if (common < lengths.max(axis=1)).any():
        span = " to ".join(map(str, dict.fromkeys([common.min(), common.max()])))
        words.append(f"over the first {span} rounds")
    return words


def run_measures(results: Results) -> pd.DataFrame:
    """Returns the measures of `effects` of each run, by seed and label.

    Each run counts with all its rounds. Rounds to a target that was not reached are
    infinite.
    """
    metric, other_metrics = _metrics(results)
    rounds = _rounds_with_spread(results)
    spread = [name for name in SPREAD.values() if name in rounds]
    values = _values(
        run_summary.replace_rounds(results, rounds), metric, spread, other_metrics
    )
    runs = pd.MultiIndex.from_frame(results.runs[RUN_KEY])
    return pd.DataFrame({**values, **_rounds_reached(results)}).reindex(runs)


def results_of_rounds(rounds: pd.DataFrame) -> Results:
    """Returns the rounds of any program as results, without clients and settings.

    Args:
        rounds: one row per seed, label and round (from 1), with these columns and one
            or more metrics, such as `accuracy`.

    Raises:
        RecordError: a column is missing, a round is below 1, or two rows are of one
            seed, label and round.
    """
    key = [*RUN_KEY, "round"]
    missing = [name for name in key if name not in rounds]
    if missing:
        raise RecordError(
            f"the rounds have the columns {', '.join(map(str, rounds.columns))}: "
            f"{' and '.join(missing)} must be added"
        )
    if rounds.empty or rounds["round"].min() < 1:
        raise RecordError(
            f"the rounds are numbered from {rounds['round'].min()}: number them from 1"
            if len(rounds)
            else "the data frame has no rounds: add one row per seed, label and round"
        )
    twice = rounds.duplicated(key)
    if twice.any():
        row = rounds[twice].iloc[0]
        raise RecordError(
            f"the rounds have two rows of seed {row['seed']}, label {row['label']}, "
            f"round {row['round']}: keep one"
        )
    rounds = rounds.assign(label=rounds["label"].astype(str))
    largest = rounds[ACCURACY.mean].max() if ACCURACY.mean in rounds else 0
    if largest > 1:
        raise RecordError(
            f"the rounds have an accuracy of {largest:g}: accuracies are shares from 0 "
            "to 1, so divide percentages by 100"
        )
    ordered = rounds.sort_values("round", kind="stable")
    runs = rounds[RUN_KEY].drop_duplicates().assign(note="", data_name="")
    return Results(runs.assign(title=runs["label"]), {"rounds": ordered}.get)


def baselines(results: Results, baseline: str = "") -> dict[str, str]:
    """Returns label -> the label of its baseline, which ran on the same data.

    Raises:
        RecordError: the baseline is not among the runs, or not on a row's data.
    """
    runs = results.runs.drop_duplicates("label")
    baseline = baseline or str(results.about.get("baseline") or "")
    if baseline:
        try:
            baseline = find_baseline(row_names(results), baseline)
        except ValueError as error:
            raise RecordError(f"the baseline {error}") from error
    else:
        names = {*runs["title"], *runs["label"]}
        choices = (*_DEFAULT_BASELINES, results.labels[0])
        baseline = next(name for name in choices if name in names)
    plain = runs[(runs["title"] == baseline) | (runs["label"] == baseline)]
    # The plain baseline comes first: not, for example, one with another server
    # optimizer.
    on_data = dict(zip(plain["note"][::-1], plain["label"][::-1]))
    for label, note in zip(runs["label"], runs["note"]):
        if note not in on_data:
            words = f"{label}: there is no run of {baseline} on its data"
            raise NotRecordedError(words)
    return {label: on_data[note] for label, note in zip(runs["label"], runs["note"])}


def common_rounds(results: Results, label: str, base: str) -> pd.Series[int]:
    """Returns the number of rounds that two rows have in common, by common seed.

    Raises:
        RecordError: they have no seed in common.
    """
    lengths = results.length
    pair = lengths[lengths.index.get_level_values("label").isin([label, base])]
    common: pd.Series[int] = pair.unstack("label").dropna().min(axis=1).astype(int)
    if common.empty:
        raise RecordError(
            f"{label} and {base} have no seed in common: run both under the same seeds"
        )
    return common


def is_lower_better(measure: str, metric: str = "") -> bool | None:
    """Returns whether less of a measure of `effects` is better; None if not known.

    `metric` is what the worst tenth and the deviation are of.
    """
    if measure.startswith(ROUNDS_TO) or measure == SPREAD["standard_deviation"]:
        return True
    if measure == SPREAD["jain_index"]:
        return False
    if measure == SPREAD["worst_tenth"]:
        measure = metric
    return measures.is_lower_better(measure)


def scale_and_unit(measure: str, metric: str) -> tuple[float, str]:
    """Returns the factor and the unit by which a measure of `effects` is displayed.

    Accuracies are displayed in points, of which a share of 1 has 100.
    """
    if measure.startswith(ROUNDS_TO):
        return 1.0, "rounds"
    of_clients = (SPREAD["worst_tenth"], SPREAD["standard_deviation"])
    if (metric if measure in of_clients else measure).endswith(ACCURACY.mean):
        return 100.0, "points"
    return 1.0, ""


def _metrics(results: Results) -> tuple[str, list[str]]:
    """Returns the column of `rounds` that runs are measured by, and other metrics."""
    rounds = results.rounds
    added = measures.model_metrics(results)
    usual = [metric.mean for metric in (ACCURACY, LOSS) if metric.mean in rounds]
    complete = rounds[usual].notna().groupby([rounds[name] for name in RUN_KEY]).any()
    if len(usual) > 1 and not complete.all(axis=None):
        run_summary.results_metric(results)  # It raises the error.
    metrics = [*usual, *added]
    if not metrics:
        raise RecordError("the rounds have no metric: add a column such as accuracy")
    return metrics[0], metrics[1:]


def _rounds_with_spread(results: Results) -> pd.DataFrame:
    """Returns the rounds with exact means, and with the columns of `SPREAD`."""
    rounds = results.rounds
    for usual in (ACCURACY, LOSS):
        if {usual.mean, usual.total, "examples"} <= {*rounds}:
            exact = rounds[usual.total] / rounds["examples"]
            rounds = rounds.assign(**{usual.mean: exact})
    if not results.has_clients:
        return rounds
    spread = run_summary.spread_by_round(results).rename(columns=SPREAD)
    names = [name for name in SPREAD.values() if name in spread]
    return rounds.join(spread[names], on=[*RUN_KEY, "round"])


def _rounds_reached(results: Results) -> dict[str, pd.Series[float]]:
    """Returns `rounds to T %` -> the round by seed and label, infinite for none."""
    targets = recorded_targets(results)
    if not targets:
        return {}
    reached = rounds_to_target(results, targets, [HALF])
    return {
        f"{ROUNDS_TO}{target} %": part.set_index(RUN_KEY)["rounds"].fillna(math.inf)
        for target, part in reached.groupby("target", sort=False)
    }


def _values(
    results: Results, metric: str, spread: Sequence[str], other_metrics: Sequence[str]
) -> dict[str, pd.Series[float]]:
    """Returns the measures of rounds by name, each by seed and label."""
    words = metric.replace("_", " ")
    values = {
        metric: measures.second_half(results, metric),
        f"last {words}": measures.last_round(results, metric),
    }
    if measures.is_lower_better(metric) is not None:
        values[f"best {words}"] = measures.best_round(results, metric)
    for name in (*spread, *other_metrics):
        values[name] = measures.second_half(results, name)
    return values


def _cut_rounds(pair: pd.DataFrame, common: pd.Series[int]) -> pd.DataFrame:
    """Returns rounds to a target that can be compared, by seed (rows) and label.

    If only one of the two runs reached it, the other is known to be later only if it
    had as many rounds.
    """
    rounds, limit = pair.to_numpy(float), common.to_numpy()[:, None]
    is_known = np.isfinite(rounds).all(axis=1, keepdims=True)
    cut = np.where(is_known | (rounds <= limit), rounds, math.inf)
    return pd.DataFrame(cut, pair.index, pair.columns)


def _verdict(
    stat: Mapping[str, Any], measure: str, metric: str, has_values: bool
) -> str:
    """Returns the verdict; `has_values` is whether any value is finite."""
    if math.isnan(stat["mean"]):
        if not measure.startswith(ROUNDS_TO):
            return NOT_FINITE
        if not has_values:
            return NOT_REACHED
    less_is_better = is_lower_better(measure, metric)
    if stat["verdict"] not in ("more", "less") or less_is_better is None:
        return str(stat["verdict"])
    return "better" if (stat["verdict"] == "less") == less_is_better else "worse"
