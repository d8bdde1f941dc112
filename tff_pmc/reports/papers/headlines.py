"""One number of each table and figure of the papers, and the same number here.

For a page that shows in one screen how far the kept runs are from the papers. What the
numbers decide is said by the claims (`claims_page`), not here. They are the
`[[headline]]` rows of the papers' tables (`claim_tables`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import statistics
import types
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers.judging import by_seed
from tff_pmc.reports.papers.quantities import label_of, round_of_accuracy
from tff_pmc.reports.rounds_to_target import HALF, rounds_of

LAST = 5
"""The number of last rounds over which a mean is taken."""


class Headline(NamedTuple):
    """A number of a paper, and how runs give the same.

    `measure` takes the run, and the one that it is held against if there is a `base`,
    and gives the number, None where it is not reached, or a `RecordError` where a
    record does not have it. `run` and `base` are labels, as `quantities.label_of` has
    them for so many `clients`, `form` is how the number is written, and `settings` are
    the values that a run must have for its number to be this one.
    """

    paper: str
    place: str
    experiment: str
    says: str
    printed: str
    measure: Callable[..., Optional[float]]
    run: str
    base: str = ""
    clients: int = 0
    form: str = "{:.0f}"
    settings: Mapping[str, Any] = types.MappingProxyType({})

    @property
    def labels(self) -> list[str]:
        """The labels of the runs that it is of."""
        return [label for label in (self.run, self.base) if label]


def numbers(headline: Headline, runs: Sequence[Run]) -> tuple[str, list[Run]]:
    """Returns our number; of several seeds the median, the lowest and the highest.

    Where it is not reached under a seed it counts as later than all others. Of each
    seed those runs count that claims are judged by (`judging.by_seed`). Text, and the
    runs that it is of, are empty where no seed has them.
    """
    fitting = [run for run in runs if has(run, headline.settings)]
    named = functools.partial(label_of, clients=headline.clients)
    least = getattr(headline.measure, "keywords", {}).get("round", 0)
    values: list[float] = []
    used: list[Run] = []
    with contextlib.suppress(RecordError):
        for own in by_seed(fitting, headline.labels, named, least).values():
            sides = [own[label] for label in headline.labels]
            with contextlib.suppress(RecordError):
                value = headline.measure(*sides)
                values.append(math.inf if value is None else value)
                used += sides
    if not values:
        return "", []

    def text(value: float) -> str:
        return headline.form.format(value) if value < math.inf else "not reached"

    middle = text(statistics.median(values))
    if len(values) > 1:
        span = f"{text(min(values))} to {text(max(values))}"
        middle += f" ({span}, {len(values)} seeds)"
    return middle, used


def has(run: Run, settings: Mapping[str, Any]) -> bool:
    """Returns whether a run has settings, of which an older record may lack some."""
    return all(run.settings.get(name, own) == own for name, own in settings.items())


def _round_of_the_same_accuracy(run: Run, base: Run, *, round: int) -> Optional[float]:
    """Returns the round in which the base has the accuracy of one of the run's."""
    ours = run.rounds["accuracy"]
    if len(ours) < round:
        raise RecordError(f"there is no round {round}")
    return round_of_accuracy(base, 100 * ours.iloc[round - 1])


def _lead_at_the_end(run: Run, base: Run, *, column: str) -> float:
    """Returns a lead, the mean of the last rounds that both have."""
    common = min(len(run.rounds), len(base.rounds))
    own, other = (one.rounds[column][:common][-LAST:].mean() for one in (run, base))
    return float(own - other)


NUMBERS: Mapping[str, Callable[..., Optional[float]]] = {
    "round of half": lambda run, *, target: rounds_of(run, (target,))[target, HALF],
    "round of the same accuracy": _round_of_the_same_accuracy,
    "lead at the end": _lead_at_the_end,
    # Its accuracy, or the lead of that over another's.
    "best round": lambda run, base=None: float(
        run.accuracy.max() - (base.accuracy.max() if base else 0.0)
    ),
}
"""How numbers are measured, by the names that the tables have for it."""
