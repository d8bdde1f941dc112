"""The last and the best round of runs, and how accuracy is spread over the clients.

They are the accuracy over all clients' test examples (PMC eq. 10), and `SPREAD`, how it
is spread over the clients. The best round is the first with the highest accuracy: it is
chosen on the test examples that it is reported on. A regression has the test loss in
the place of accuracy, and the lowest is the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.client_statistics import (
    Floats,
    client_means,
    jain_index,
    percentile,
    worst_tenth,
)
from tff_pmc.record.metric import ACCURACY, LOSS, Metric
from tff_pmc.record.record_error import ClientsNotRecordedError, RecordError
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.statistics import paired_statistics
from tff_pmc.reports.statistics.rounds_to_target import (
    HALF,
    recorded_targets,
    rounds_to_target,
)


class Spread(NamedTuple):
    """A figure of how accuracy is spread over clients, and its name for a reader.

    `compute` takes the means of clients, [..., clients], and returns [...].
    """

    title: str
    compute: Callable[[Floats], Floats]


def _deviation(values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # It is NaN if a loss is infinite.
        deviation: Floats = values.std(axis=-1)
    return deviation


_DEVIATION = Spread("standard deviation", _deviation)

SPREAD: Mapping[str, Spread] = {
    "p10": Spread("10th percentile", lambda values: percentile(values, 10)),
    "worst_tenth": Spread("mean of worst tenth", worst_tenth),
    # The clients are all, and no sample.
    "standard_deviation": _DEVIATION,
    "jain_index": Spread("Jain's index", jain_index),
}
"""The figures by their names in files, of the clients that have test examples.

Each client counts alike, however many it has. Li, Sanjabi, Beirami and Smith, "Fair
Resource Allocation in Federated Learning" (ICLR 2020), compare the worst tenth of the
devices and the variance; Jain's index is from Jain, Chiu and Hawe (DEC TR-301, 1984).
"""

LOSS_SPREAD: Mapping[str, Spread] = {
    "p90": Spread("90th percentile", lambda values: percentile(values, 90)),
    "worst_tenth": Spread("mean of worst tenth", lambda values: -worst_tenth(-values)),
    "standard_deviation": _DEVIATION,
}
"""The same of losses, of which the highest are the worst."""

COLUMNS = ("experiment", "quantity", "target_accuracy_pct", "devices", "value")
"""The columns of `results.csv`."""

_METRIC_WORDS = {ACCURACY.mean: "accuracy", LOSS.mean: "loss"}


def results_metric(results: Results) -> Metric:
    """Returns what the models of runs are measured by: accuracy, or the loss.

    Raises:
        RecordError: it is the one of some runs, and the other of others.
    """
    recorded = [metric for metric in (ACCURACY, LOSS) if metric.mean in results.rounds]
    if len(recorded) != 1:
        raise RecordError(
            "some runs have accuracies and others losses"
            if recorded
            else "the runs have neither accuracies nor losses"
        )
    return recorded[0]


def metric_word(results: Results) -> str:
    """Returns the word for what the models are measured by: accuracy, or loss."""
    return _METRIC_WORDS[results_metric(results).mean]


def spread_of(measure: Metric) -> Mapping[str, Spread]:
    """Returns `SPREAD`, or that of losses."""
    return SPREAD if measure is ACCURACY else LOSS_SPREAD


def replace_rounds(results: Results, rounds: pd.DataFrame) -> Results:
    """Returns the same runs with another table of rounds."""

    def read(name: str) -> pd.DataFrame:
        table: pd.DataFrame = rounds if name == "rounds" else getattr(results, name)
        return table

    return Results(results.runs, read, path=results.path, about=results.about)


def with_exact_means(results: Results) -> Results:
    """Returns runs whose means over all test examples are not rounded.

    They are the sums over the examples; a record has six decimals of the means.
    """
    measure = results_metric(results)
    mean = results.rounds[measure.total] / results.rounds["examples"]
    return replace_rounds(results, results.rounds.assign(**{measure.mean: mean}))


def spread_statistics(
    sums: npt.NDArray[Any],
    examples: npt.NDArray[np.int64],
    spread: Mapping[str, Spread] = SPREAD,
) -> dict[str, Floats]:
    """Returns the figures of `SPREAD`, [...], of correct examples, int [..., K]."""
    means = client_means(sums, examples)
    return {name: statistic.compute(means) for name, statistic in spread.items()}


def spread_by_round(results: Results, rounds: Any = None) -> pd.DataFrame:
    """Returns the figures of `SPREAD` by seed, label and round.

    Rounds without a test have the values of the last one that was tested.

    Args:
        results: the runs.
        rounds: an index of the seeds, labels and tested rounds that are wanted; by
            default all rounds.

    Raises:
        ClientsNotRecordedError: a run recorded no clients.
    """
    measure, clients = results_metric(results), results.clients
    if not results.has_clients:
        raise ClientsNotRecordedError
    if rounds is not None:
        clients = clients[
            pd.MultiIndex.from_frame(clients[[*RUN_KEY, "round"]]).isin(rounds)
        ]
    tables = {}
    for key, part in clients.groupby(RUN_KEY, sort=False):
        wide = part.pivot(index="round", columns="client")
        sums, examples = wide[measure.total].to_numpy(), wide["examples"].to_numpy()
        figures = spread_statistics(sums, examples[0], spread_of(measure))
        tables[key] = pd.DataFrame(figures, index=wide.index)
    table = pd.concat(tables, names=RUN_KEY)
    if rounds is not None:
        return table.reindex(rounds)
    all_rounds = pd.MultiIndex.from_frame(results.rounds[[*RUN_KEY, "round"]])
    filled: pd.DataFrame = (
        table.reindex(all_rounds).groupby(level=RUN_KEY, sort=False).ffill()
    )
    return filled


def last_and_best(results: Results) -> pd.DataFrame:
    """Returns the figures of the `last` and the `best` round of each run.

    The index is the seed, the label, and which of the two it is. The columns are the
    `round`, from 1, its `accuracy` (or `test_loss`), and those of `SPREAD`, if all runs
    recorded their clients. The last round is the last that was tested.
    """
    measure, rows = results_metric(results), {}
    groups = dict(list(with_exact_means(results).rounds.groupby(RUN_KEY, sort=False)))
    for _, run in results.runs.iterrows():
        means = groups[run["seed"], run["label"]].set_index("round")[measure.mean]
        test_interval = run.get("evaluate_every", 1)
        test_interval = 1 if test_interval != test_interval else int(test_interval)
        last = max(len(means) // test_interval * test_interval, 1)
        # A loss that is not finite is never the best.
        best = means.idxmax() if measure is ACCURACY else _lowest(means)
        for which, number_of_round in (("last", last), ("best", int(best))):
            key = (run["seed"], run["label"], which)
            rows[key] = number_of_round, means[number_of_round]
    table = pd.DataFrame.from_dict(
        rows, orient="index", columns=["round", measure.mean]
    )
    table.index = pd.MultiIndex.from_tuples(table.index, names=[*RUN_KEY, "which"])
    if not results.has_clients:
        return table
    rounds = pd.MultiIndex.from_arrays(
        [table.index.get_level_values(name) for name in RUN_KEY] + [table["round"]]
    )
    spread = spread_by_round(results, rounds)
    return pd.concat([table, spread.set_index(table.index)], axis=1)


def _lowest(means: pd.Series[float]) -> int:
    finite = means.where(np.isfinite(means), math.inf).to_numpy()
    return int(means.index[finite.argmin()])


def tidy_rows(results: Results) -> pd.DataFrame:
    """Returns the figures of `last_and_best` in the form of `results.csv`.

    The quantities are `last_round`, `last_accuracy`, `last_p10`, `last_worst_tenth`,
    `last_standard_deviation` and `last_jain_index`, and the same of the `best`; they
    have no target, and `all` as their devices. Values have six decimals.
    """
    return results_table(
        [
            (label, f"{which}_{name}", None, "all", round(float(value), 6))
            for (_, label, which), figures in last_and_best(results).iterrows()
            for name, value in figures.items()
        ]
    )


def results_table(rows: Sequence[Any]) -> pd.DataFrame:
    """Returns rows of `results.csv` as a table with its types, also without rows."""
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    # Nullable integers: a summary has no target.
    return table.astype({"target_accuracy_pct": "Int64", "value": float})


def seed_statistics(results: Results) -> pd.DataFrame:
    """Returns the figures of runs over the seeds, as `seeds.csv` has them.

    They are those of `tidy_rows`, and the rounds until half of the devices reach each
    target. The index is the `experiment` and the `quantity`. The columns are `seeds`
    (of those that have the figure), `mean`, `standard_deviation` (of a sample: divided
    by the number of seeds less one; empty for one seed), `interval` (half the 95 % one
    of the mean, by Student's t; empty for one seed), `lowest` and
    `highest`. Where some seeds do not have a figure, as a target that they do not
    reach, there is no mean.
    """
    count, targets = len(results.seeds), recorded_targets(results)
    figures = tidy_rows(results)
    if targets:
        rounds = [
            (row.label, f"rounds_to_{row.target}", row.target, f"{HALF}%", row.rounds)
            for row in rounds_to_target(results, targets, [HALF]).itertuples()
        ]
        figures = pd.concat([figures, results_table(rounds)])
    values = figures.groupby(["experiment", "quantity"], sort=False)["value"]
    spread = {"standard_deviation": "std", "lowest": "min", "highest": "max"}
    table = values.agg(seeds="count", mean="mean", **spread)
    table.loc[table["seeds"] < count, ["mean", "standard_deviation"]] = math.nan
    interval = paired_statistics.half_interval(table["standard_deviation"], count)
    table.insert(3, "interval", interval)
    return table
