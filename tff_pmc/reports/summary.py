"""What every run says in a few numbers: its last and its best round.

They are the accuracy over all clients' test examples (PMC eq. 10), and the figures of
`fairness` on how it is spread over the clients. The best round is the first with the
highest accuracy: it is chosen on the test examples that it is reported on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.record.read import Run, with_caveat
from tff_pmc.reports import Report, fairness, paired
from tff_pmc.reports.pages import grid_text, number
from tff_pmc.reports.paired import BySeed

COLUMNS = ("experiment", "quantity", "target_accuracy_pct", "devices", "value")
"""The columns of `results.csv`."""

_TITLE = "Accuracy over all test examples, and how it is spread over the clients"
_NOTE = "best: the round of the highest accuracy, which is chosen on the same examples"
_TITLES = {
    "accuracy": "accuracy",
    **{name: measure.title for name, measure in fairness.MEASURES.items()},
}
_OVER_SEEDS = {
    "last_accuracy": "last accuracy",
    "best_accuracy": "best accuracy",
    **{f"last_{name}": one.title for name, one in fairness.MEASURES.items()},
}


def rounds(run: Run) -> dict[str, dict[str, float]]:
    """The figures of a run's `last` and `best` round.

    They are the `round`, from 1, its `accuracy`, and those of `fairness.MEASURES`.
    """
    accuracy, found = run.accuracy, {}
    places = {"last": len(accuracy) - 1, "best": int(accuracy.argmax())}
    for which, place in places.items():
        spread = fairness.measured(run.correct[place], run.examples)
        values = {"accuracy": accuracy[place], **spread}
        own = {name: float(value) for name, value in values.items()}
        found[which] = {"round": place + 1, **own}
    return found


def tidy_rows(runs: Sequence[Run]) -> pd.DataFrame:
    """Returns the figures of `rounds` in the form of `results.csv`.

    The quantities are `last_round`, `last_accuracy`, `last_p10`, `last_worst_tenth`,
    `last_standard_deviation` and `last_jain_index`, and the same of the `best`; they
    have no target, and `all` as their devices. Values have six decimals.
    """
    return table_of(
        [
            (run.label, f"{which}_{name}", None, "all", round(value, 6))
            for run in runs
            for which, figures in rounds(run).items()
            for name, value in figures.items()
        ]
    )


def table_of(rows: Sequence[Any]) -> pd.DataFrame:
    """Returns rows of `results.csv` as a table with its types, also without rows."""
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    # Nullable integers: a summary has no target.
    return table.astype({"target_accuracy_pct": "Int64", "value": float})


def text(runs: Sequence[Run]) -> str:
    """Returns the figures of `rounds` as a table for a terminal.

    A run whose last round is its best has one line, the others have two.
    """
    lines = [["", "", "round", *_TITLES.values()]]
    for run in runs:
        found = rounds(run)
        if found["last"]["round"] == found["best"]["round"]:
            found = {"last and best": found["last"]}
        for which, figures in found.items():
            cells = [f"{figures[name]:.4f}" for name in _TITLES]
            lines.append([run.label, which, f"{figures['round']}", *cells])
    clients = dict.fromkeys(int((run.examples > 0).sum()) for run in runs)
    title = f"{_TITLE} ({' or '.join(map(str, clients))})"
    left_out = [
        f"{run.label}: {run.rounds['excluded'].sum()} of {run.rounds['clients'].sum()} "
        "trainings were left out, as not finite or above --max_update_norm"
        for run in runs
        if "excluded" in run.rounds and run.rounds["excluded"].any()
    ]
    return "\n".join([title, grid_text(lines, 2), _NOTE, *left_out])


def seeds_report(by_seed: BySeed, *, baseline: str = "") -> Report:
    """Returns `seeds.csv`: the figures of `tidy_rows` over the seeds.

    It says how good each run is, and how much of that is the seed's. Nothing is held
    against the baseline here: whether two runs differ is `effect`'s question.
    """
    return over_seeds(by_seed, tidy_rows(paired.every(by_seed)), _OVER_SEEDS)


def over_seeds(
    by_seed: BySeed, figures: pd.DataFrame, shown: Mapping[str, str]
) -> Report:
    """Returns `seeds.csv` of figures under each seed.

    It has a row a run and quantity: `experiment`, `quantity`, `seeds` (their number),
    `mean`, `standard_deviation` (of a sample: divided by the number of seeds less one;
    empty for one seed), `lowest` and `highest`. The text has the quantities that are
    `shown`, by their headings.
    """
    labels = paired.labels(by_seed)
    values = figures.groupby(["experiment", "quantity"], sort=False)["value"]
    spread = {"standard_deviation": "std", "lowest": "min", "highest": "max"}
    table = values.agg(seeds="count", mean="mean", **spread)

    def cell(label: str, quantity: str) -> str:
        row = table.loc[(label, quantity)]
        deviation = number(row["standard_deviation"], ".4f")
        return f"{row['mean']:.4f}" + (f" ± {deviation}" if deviation else "")

    lines = [["", *shown.values()]]
    lines += [[label, *(cell(label, name) for name in shown)] for label in labels]
    text = (
        f"Mean ± standard deviation over {len(by_seed)} seeds; of the last round, "
        f"where nothing else is said\n{grid_text(lines)}"
    )
    marked = with_caveat(table.reset_index(), paired.every(by_seed))
    return Report(text, {"seeds": marked}, digits=6)
