"""What every run says in a few numbers: its last and its best round.

They are the accuracy over all clients' test examples (PMC eq. 10), and `SPREAD`, how it
is spread over the clients. The best round is the first with the highest accuracy: it is
chosen on the test examples that it is reported on.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.measures import (
    Floats,
    client_means,
    jain_index,
    percentile,
    worst_tenth,
)
from tff_pmc.record.read import Run, with_caveat
from tff_pmc.reports import Report, paired
from tff_pmc.reports.pages import (
    Block,
    Heading,
    Items,
    Page,
    Table,
    grid_text,
    number,
)
from tff_pmc.reports.paired import BySeed
from tff_pmc.reports.rounds_to_target import HALF, rounds_of, targets_of, untested


class Measure(NamedTuple):
    """A figure of how accuracy is spread over clients, and its name for a reader.

    `of` takes accuracies from 0 to 1, [..., clients], and returns [...].
    """

    title: str
    of: Callable[[Floats], Floats]


SPREAD: Mapping[str, Measure] = {
    "p10": Measure("10th percentile", lambda found: percentile(found, 10)),
    "worst_tenth": Measure("mean of worst tenth", worst_tenth),
    # The clients are all, and no sample.
    "standard_deviation": Measure("standard deviation", lambda x: x.std(axis=-1)),
    "jain_index": Measure("Jain's index", jain_index),
}
"""The figures by their names in files, of the clients that have test examples.

Each client counts alike, however many it has. Li, Sanjabi, Beirami and Smith, "Fair
Resource Allocation in Federated Learning" (ICLR 2020), compare the worst tenth of the
devices and the variance; Jain's index is from Jain, Chiu and Hawe (DEC TR-301, 1984).
"""

COLUMNS = ("experiment", "quantity", "target_accuracy_pct", "devices", "value")
"""The columns of `results.csv`."""

_TITLE = "Accuracy over all test examples, and how it is spread over the clients"
_NOTE = "best: the round of the highest accuracy, which is chosen on the same examples"
_TITLES = {
    "accuracy": "accuracy",
    **{name: measure.title for name, measure in SPREAD.items()},
}
_LAST = "The last round, where nothing else is said"
_ROUNDS = "Rounds until half of the devices reach the target"
_CELLS = (
    f"Mean ± half of its 95 % interval (from {paired.MIN_SEEDS} seeds on), and in "
    "brackets the lowest and the highest seed. Where some seeds do not reach a target "
    "there is no mean."
)
_OVER_SEEDS = {
    "last_accuracy": "last accuracy",
    "best_accuracy": "best accuracy",
    **{f"last_{name}": one.title for name, one in SPREAD.items()},
}


def measured(
    correct: npt.NDArray[np.int64], examples: npt.NDArray[np.int64]
) -> dict[str, Floats]:
    """Returns the figures of `SPREAD`, [...], of correct examples, int [..., K]."""
    found = client_means(correct, examples)
    return {name: measure.of(found) for name, measure in SPREAD.items()}


def rounds(run: Run) -> dict[str, dict[str, float]]:
    """The figures of a run's `last` and `best` round.

    They are the `round`, from 1, its `accuracy`, and those of `SPREAD`. The last round
    is the last that was tested.
    """
    accuracy, found = run.accuracy, {}
    every = int(run.settings.get("evaluate_every", 1))
    last = max(len(accuracy) // every * every, 1) - 1
    places = {"last": last, "best": int(accuracy.argmax())}
    for which, place in places.items():
        spread = measured(run.correct[place], run.examples)
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
    clients: dict[str, None] = {}
    for run in runs:
        tested, every = int((run.examples > 0).sum()), len(run.examples)
        few = f" of {every}, who have tests" if tested < every else ""
        clients[f"{tested}{few}"] = None
    title = f"{_TITLE} ({' or '.join(clients)})"
    return "\n".join([title, grid_text(lines, 2), _NOTE]) + left_out(runs)


def left_out(
    runs: Iterable[Run], name_of: Callable[[Run], str] = lambda run: run.label
) -> str:
    """Returns a line for each name whose runs left trainings out; or nothing."""
    found: dict[str, tuple[int, int]] = {}
    for run in runs:
        if "excluded" in run.rounds:
            out, of = found.get(name_of(run), (0, 0))
            counts = run.rounds["excluded"].sum(), run.rounds["clients"].sum()
            found[name_of(run)] = out + counts[0], of + counts[1]
    return "".join(
        f"\n{name}: {out} of {of} trainings were left out, as not finite or above "
        "--max_update_norm"
        for name, (out, of) in found.items()
        if out
    )


def seeds_report(by_seed: BySeed, *, baseline: str = "") -> Report:
    """Returns `seeds.csv` and its page: figures of runs over the seeds.

    They are those of `tidy_rows`, and the rounds until half of the devices reach each
    target. They say how good each run is, and how much of that is the seed's. Nothing
    is held against the baseline here: whether two runs differ is `effect`'s question.
    """
    runs = paired.every(by_seed)
    targets = targets_of(runs)
    rounds = [
        (run.label, f"rounds_to_{target}", target, f"{HALF}%", found)
        for run in runs
        for (target, _), found in rounds_of(run, targets, [HALF]).items()
    ]
    figures = tidy_rows(runs)
    figures = pd.concat([figures, table_of(rounds)]) if rounds else figures
    goals = {f"rounds_to_{target}": f"{target} %" for target in targets}
    return over_seeds(by_seed, figures, _OVER_SEEDS, {_ROUNDS: goals})


def over_seeds(
    by_seed: BySeed,
    figures: pd.DataFrame,
    shown: Mapping[str, str],
    more: Mapping[str, Mapping[str, str]] = types.MappingProxyType({}),
) -> Report:
    """Returns `seeds.csv` of figures under each seed, and its page.

    The table has a row a run and quantity: `experiment`, `quantity`, `seeds` (of those
    that have the figure), `mean`, `standard_deviation` (of a sample: divided by the
    number of seeds less one; empty for one seed), `interval` (half the 95 % one of the
    mean, by Student's t; empty below `paired.MIN_SEEDS`), `lowest` and `highest`. Where
    some seeds do not have a figure, as a target that they do not reach, there is no
    mean. The text has the quantities that are `shown`, by their headings; the page has
    `more`, too, under headings of their own.
    """
    labels, count = paired.labels(by_seed), len(by_seed)
    values = figures.groupby(["experiment", "quantity"], sort=False)["value"]
    spread = {"standard_deviation": "std", "lowest": "min", "highest": "max"}
    table = values.agg(seeds="count", mean="mean", **spread)
    table.loc[table["seeds"] < count, ["mean", "standard_deviation"]] = math.nan
    interval = paired.half_interval(table["standard_deviation"], count)
    table.insert(3, "interval", interval)

    def cell(label: str, quantity: str) -> str:
        row = table.loc[(label, quantity)]
        deviation = number(row["standard_deviation"], ".4f")
        return f"{row['mean']:.4f}" + (f" ± {deviation}" if deviation else "")

    lines = [["", *shown.values()]]
    lines += [[label, *(cell(label, name) for name in shown)] for label in labels]
    text = (
        f"Mean ± standard deviation over {count} seeds; of the last round, "
        f"where nothing else is said\n{grid_text(lines)}"
        f"{left_out(paired.every(by_seed))}"
    )
    notes = untested(paired.every(by_seed)) if more else []
    blocks: list[Block] = [Items([_CELLS, *notes])]
    for heading, names in {_LAST: shown, **more}.items():
        grid = [["", *names.values()]]
        for label in labels:
            rows = [table.loc[(label, name)] for name in names]
            grid.append([label, *(_over_seeds(row, count) for row in rows)])
        blocks += [Heading(heading), Table(grid)] if names else []
    page = Page(f"Over {count} seeds", blocks)
    marked = with_caveat(table.reset_index(), paired.every(by_seed))
    return Report(text, {"seeds": marked}, {"seeds": page}, digits=6)


def _over_seeds(row: pd.Series[float], count: int) -> str:
    """Returns the mean, its interval and the range of a quantity over seeds."""
    form, of_range = (".1f", "g") if row.name[1].startswith("rounds") else (".3f",) * 2
    span = " to ".join(number(row[name], of_range) for name in ("lowest", "highest"))
    if row["seeds"] < count:
        arrived = f"{row['seeds']:.0f} of {count} seeds"
        return f"{arrived} ({span})" if row["seeds"] else arrived
    half = number(row["interval"], form)
    return f"{row['mean']:{form}}{half and f' ± {half}'} ({span})"
