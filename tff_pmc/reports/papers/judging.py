"""How claims on differences between runs are judged, under the same rule for all.

A claim is made of measures. A measure is a difference under each seed, with the sign
that the paper's words give it. Below five seeds nothing is decided. From five on the
95 % interval of the mean decides: on the claimed side of 0 the measure is reproduced,
on the other side it is not, and an interval with 0 in it leaves it undecidable. Where
the paper says that there is no difference, the interval is held against a tolerance.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tff_pmc.models import MODELS
from tff_pmc.record.read import BASELINE, Run
from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports import paired
from tff_pmc.reports.kept import rounds_of

VERDICTS = REPRODUCED, NOT_REPRODUCED, UNDECIDABLE = (
    "reproduced",
    "not reproduced",
    "undecidable",
)
"""What a judge answers; a claim whose runs are missing is not judged."""

SIGNS = MORE, LESS, NONE, NOT_MORE, NOT_LESS = (
    *("more", "less"),
    *("none", "not more", "not less"),
)
"""What a paper says of a difference: above 0, below 0, or none, within a tolerance."""

Answer = tuple[str, str, str]
"""Our number as text, the verdict, and why."""

Seeds = Sequence[Mapping[str, Run]]
"""The runs under each seed, by their labels."""

Cells = Sequence[tuple[int, int]]
"""Columns of a published table: (target accuracy, share of the devices), percent."""

Runs = Mapping[str, Sequence[Run]]
"""The name of an experiment -> its runs."""


class Row(NamedTuple):
    """What a paper says of some runs: a measure for each run and set of columns.

    Attributes:
        runs: their labels.
        columns: a name for the reader -> the cells.
        minus: the same of the other side, where that is of other columns.
        sign: one of `judging.SIGNS`.
        name: what the measure is of, with `{run}`, `{columns}`, `{minus}`, `{base}`.
    """

    runs: Sequence[str]
    columns: Mapping[str, Cells]
    minus: Mapping[str, Cells]
    sign: str
    name: str

    def named(self, **parts: str) -> str:
        """Returns the measure's name, of the parts of it that are there."""
        every = {"run": "", "columns": "", "minus": "", "base": "", **parts}
        return self.name.format(**every).strip()


Rows = Sequence[Row]


class Measure(NamedTuple):
    """A difference under each seed, and what the paper says of it.

    Attributes:
        name: what it is of, for the reader.
        own: the one side under each seed.
        base: the other side, under the same seeds; the difference is own minus base.
        sign: one of `SIGNS`.
        tolerance: how far from 0 the difference may be and still be none.
        digits: decimals that are shown.
    """

    name: str
    own: Sequence[float]
    base: Sequence[float]
    sign: str
    tolerance: float = 0.0
    digits: int = 1


def judged(
    measures: Iterable[Measure], runs: Iterable[Run] = (), *, least_rounds: int = 0
) -> Answer:
    """Returns the answer to a claim: every measure has to hold for it to be reproduced.

    A caveat of the data of `runs`, those that were measured, leaves it undecidable,
    whatever the numbers; so do runs of fewer rounds than `least_rounds`.
    """
    found = list(measures)
    stats = [paired.difference(one.own, one.base) for one in found]
    numbers = "; ".join(_number(one, stat) for one, stat in zip(found, stats))
    caveats = _caveats(list(runs), least_rounds)
    if caveats:
        return numbers, UNDECIDABLE, "; ".join(caveats)
    seeds = stats[0]["seeds"]
    if seeds < paired.MIN_SEEDS:
        count = "one seed" if seeds == 1 else f"{seeds} seeds"
        return numbers, UNDECIDABLE, f"{count}; below five nothing is decided"
    verdicts = [
        verdict(stat["mean"], stat["interval"], one.sign, one.tolerance)
        for one, stat in zip(found, stats)
    ]
    for word, how in ((NOT_REPRODUCED, "contradicted"), (UNDECIDABLE, "left open")):
        failing = [one.name for one, own in zip(found, verdicts) if own == word]
        if failing:
            return numbers, word, f"{how} by {', '.join(failing)}"
    return numbers, REPRODUCED, "every 95 % interval lies where the claim puts it"


def verdict(mean: float, half: float, sign: str, tolerance: float = 0.0) -> str:
    """Returns what an interval, mean and half width, says of a difference."""
    if math.isnan(mean) or math.isnan(half):
        return UNDECIDABLE
    low, high = mean - half, mean + half
    if sign in (MORE, LESS):
        if sign == LESS:
            low, high = -high, -low
        return REPRODUCED if low > 0 else NOT_REPRODUCED if high < 0 else UNDECIDABLE
    above, below = sign != NOT_LESS, sign != NOT_MORE
    if (above and low > tolerance) or (below and high < -tolerance):
        return NOT_REPRODUCED
    within = (high <= tolerance or not above) and (low >= -tolerance or not below)
    return REPRODUCED if within else UNDECIDABLE


def _number(measure: Measure, stat: Mapping[str, float]) -> str:
    form = f".{measure.digits}f"
    text = f"{measure.name} {stat['mean']:+{form}}"
    if not math.isnan(stat["interval"]):
        text += f" ± {stat['interval']:{form}}"
    # It is 0 where the other side is a constant, which no seed moves.
    if stat["noise_floor_of_mean"] > 0:
        text += f" (noise floor {stat['noise_floor_of_mean']:{form}})"
    return text


def _caveats(runs: Sequence[Run], least_rounds: int) -> list[str]:
    """Returns why runs are not the paper's experiment; nothing where they may be."""
    data = sorted({run.data_caveat for run in runs if run.data_caveat})
    found = [f"not on the paper's data: {'; '.join(data)}"] if data else []
    found += sorted(
        {f"with {other_reading(run)}" for run in runs if other_reading(run)}
    )
    parts = {image_fraction(run) for run in runs} - {1.0}
    found += [f"on {part:g} of the images" for part in sorted(parts)]
    shortest = min((len(run.rounds) for run in runs), default=least_rounds)
    if shortest < least_rounds:
        found.append(f"after {shortest} rounds, fewer than {least_rounds}")
    return found


def other_reading(run: Run) -> str:
    """Returns what a run's network has and its paper's text has not; "" for nothing."""
    settings = run.settings
    model = settings.get("model", "mnist_cnn")  # The oldest records name none.
    relu = model in MODELS and settings.get("conv_activation") == "relu"
    if relu and MODELS[model]().conv_activation != "relu":
        return "ReLU after the convolutions, which the text does not have"
    return ""


def in_the_papers_reading(runs: Iterable[Run]) -> list[Run]:
    """Returns those of the runs that have their paper's network."""
    return [run for run in runs if not other_reading(run)]


def image_fraction(run: Run) -> float:
    """Returns the part of the images that a run's data set has; 1 for all of them."""
    return float(run.data.get("options", {}).get("image_fraction", 1))


def by_seed(
    runs: Iterable[Run],
    labels: Sequence[str],
    label_of: Callable[[Run], str] = lambda run: run.label,
) -> list[dict[str, Run]]:
    """Returns label -> run for each seed that has a run of every label.

    Only runs that stand in one folder are held against each other: they were made by
    one command. Runs of another reading than the paper's count where there are no
    others. Of two such folders under one seed the one with more of the data set
    counts, then that with the longer runs, then that with more runs. A run whose label
    is empty is passed over.

    Raises:
        RecordError: no seed has; the message names the labels that are missing.
    """
    runs = list(runs)
    own_reading = in_the_papers_reading(runs)
    if 0 < len(own_reading) < len(runs):
        with contextlib.suppress(RecordError):
            return by_seed(own_reading, labels, label_of)
    found: dict[tuple[str, int], dict[str, Run]] = {}
    for run in runs:
        seed = int(run.settings.get("batch_seed", 0))
        if label_of(run):
            together = found.setdefault((os.path.dirname(run.path), seed), {})
            together.setdefault(label_of(run), run)
    chosen: dict[int, dict[str, Run]] = {}
    for (_, seed), own in found.items():
        other = chosen.get(seed)
        if {*labels} <= {*own} and (other is None or _worth(own) > _worth(other)):
            chosen[seed] = own
    if not chosen:
        seen = {label for own in found.values() for label in own}
        missing = [label for label in labels if label not in seen]
        if not missing:
            raise RecordError(f"no folder of runs has all of {_listed(labels)}")
        were = "was" if len(missing) == 1 else "were"
        raise RecordError(f"{_listed(missing)} {were} not run")
    return [chosen[seed] for seed in sorted(chosen)]


def _listed(labels: Sequence[str]) -> str:
    """Returns labels as words; semicolons, because orderings have commas."""
    *others, last = labels
    return f"{'; '.join(others)} and {last}" if others else last


def _worth(runs: Mapping[str, Run]) -> tuple[float, int, int]:
    part = min(image_fraction(run) for run in runs.values())
    return part, min(len(run.rounds) for run in runs.values()), len(runs)


def all_runs(seeds: Seeds) -> list[Run]:
    """Returns the runs of all seeds."""
    return [run for runs in seeds for run in runs.values()]


def mean_rounds(run: Run, cells: Cells, *, name: str = "") -> float:
    """Returns the mean over cells of the rounds until they are reached.

    A run that does not arrive counts as arriving in its last round, as in PMC's Table
    6. One with a `name` has to: others are held against it.

    Raises:
        TooShortError: a run that has to arrive did not.
    """
    targets = tuple(dict.fromkeys(target for target, _ in cells))
    shares = tuple(dict.fromkeys(share for _, share in cells))
    reached, last = rounds_of(run, targets, shares), len(run.rounds)
    for target, share in cells:
        if name and reached[target, share] is None:
            raise TooShortError(
                f"the kept run of {name} ends in round {last}, before {share} % of the "
                f"devices reach {target} %"
            )
    return sum(reached[cell] or last for cell in cells) / len(cells)


def together(runs: Runs) -> list[Run]:
    """Returns the runs of all experiments."""
    return [run for own in runs.values() for run in own]


def labels_of(measures: Rows, base: str = BASELINE) -> list[str]:
    """Returns the labels that measures need, each once."""
    every = (run for row in measures for run in row.runs)
    return list(dict.fromkeys([base, *every]))


def each(measures: Rows) -> Iterator[tuple[Row, str, str, Cells]]:
    """Returns each measure's row, run, and name and cells of its columns."""
    for row in measures:
        columns = row.columns or {"": ()}
        for run, (name, cells) in itertools.product(row.runs, columns.items()):
            yield row, run, name, cells
