"""One number of each table and figure of the papers, and the same number here.

For a page that shows in one screen how far the kept runs are from the papers. What the
numbers decide is said by the claims (`claims_page`), not here. They are the
`[[headline]]` rows of the papers' tables (`claim_tables`).
"""

from __future__ import annotations

import math
import statistics
import types
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers.judging import Labeled, other_reading, seed_of
from tff_pmc.reports.papers.printed_rounds import SHARE
from tff_pmc.reports.papers.quantities import (
    FEDAVG,
    best_round,
    round_of_accuracy,
    row_of_dual,
)
from tff_pmc.reports.rounds_to_target import rounds_of

LAST = 5
"""The number of last rounds over which a mean is taken."""

Number = tuple[Optional[float], Sequence[Run]]
"""A number, None where it is not reached, and the runs that it is of."""


class Headline(NamedTuple):
    """A number of a paper, and how runs give the same.

    Attributes:
        paper: as in `tff_pmc.settings.papers.PAPERS`.
        place: the table or figure that it is of.
        experiment: the named experiment.
        says: what the number is.
        printed: the number as the paper has it.
        measure: the runs of one seed by their labels -> the number. A `KeyError` where
            a run is missing, a `RecordError` where a record is.
        form: how the number is written.
        settings: the values that a run must have for its number to be this one.
    """

    paper: str
    place: str
    experiment: str
    says: str
    printed: str
    measure: Callable[[Labeled], Number]
    form: str = "{:.0f}"
    settings: Mapping[str, Any] = types.MappingProxyType({})


def numbers(headline: Headline, runs: Sequence[Run]) -> tuple[str, list[Run]]:
    """Returns our number; of several seeds the median, the lowest and the highest.

    Where it is not reached under a seed it counts as later than all others. The longest
    run of a label and seed counts, of equal ones the first. Text, and the runs that it
    is of, are empty where no seed has them.
    """
    fitting = [
        run
        for run in runs
        if all(run.settings.get(k) == v for k, v in headline.settings.items())
    ]
    values, used = _measured(headline, [r for r in fitting if not other_reading(r)])
    if not values:
        values, used = _measured(headline, fitting)
    if not values:
        return "", []

    def text(value: float) -> str:
        return headline.form.format(value) if value < math.inf else "not reached"

    middle = text(statistics.median(values))
    if len(values) > 1:
        span = f"{text(min(values))} to {text(max(values))}"
        middle += f" ({span}, {len(values)} seeds)"
    return middle, used


def _measured(headline: Headline, runs: Sequence[Run]) -> tuple[list[float], list[Run]]:
    """Returns the number under each seed that has it, and the runs that it is of."""
    by_seed: dict[int, dict[str, Run]] = {}
    for run in sorted(runs, key=lambda run: -len(run.rounds)):
        by_seed.setdefault(seed_of(run), {}).setdefault(run.label, run)
    values: list[float] = []
    used: list[Run] = []
    for own in by_seed.values():
        try:
            value, of = headline.measure(own)
        except (KeyError, RecordError):
            continue
        values.append(math.inf if value is None else value)
        used += of
    return values, used


def _round_of_half(runs: Labeled, *, run: str, target: int) -> Number:
    reached = rounds_of(runs[run], (target,), (SHARE,))[target, SHARE]
    return reached, [runs[run]]


def _round_of_the_same_accuracy(runs: Labeled, *, run: str, round: int) -> Number:
    """Returns the round in which FedAvg has the accuracy of a run in one of its own."""
    ours = runs[run].rounds["accuracy"]
    if len(ours) < round:
        raise RecordError(f"there is no round {round}")
    reached = round_of_accuracy(runs[FEDAVG], 100 * ours.iloc[round - 1])
    return reached, [runs[run], runs[FEDAVG]]


def _lead_at_the_end(runs: Labeled, *, run: str, column: str) -> Number:
    """Returns a lead over FedAvg, the mean of the last rounds that both have."""
    both = [runs[FEDAVG], runs[run]]
    common = min(len(one.rounds) for one in both)
    base, own = (float(one.rounds[column][:common][-LAST:].mean()) for one in both)
    return own - base, both


def _best_round(runs: Labeled, *, run: str) -> Number:
    return best_round(runs, run) / 100, [runs[run]]


def _best_epoch(runs: Labeled, *, clients: int, minus: str = "") -> Number:
    """Returns the accuracy of the dual criterion, or its lead, at the best epoch."""
    rows: dict[str, Run] = {}
    for run in runs.values():
        rows.setdefault(row_of_dual(run, clients), run)
    best = best_round(rows, "dual") - (best_round(rows, minus) if minus else 0)
    return best / 100, [*runs.values()]


NUMBERS: Mapping[str, Callable[..., Number]] = {
    "round of half": _round_of_half,
    "round of the same accuracy": _round_of_the_same_accuracy,
    "lead at the end": _lead_at_the_end,
    "best round": _best_round,
    "best epoch": _best_epoch,
}
"""How numbers are measured, by the names that the tables have for it."""
