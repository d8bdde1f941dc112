"""The judges of rounds: from runs, and what a claim's table says, to an answer.

A judge takes the runs of each of the claim's experiments and the keys of the claim
(`claim_tables`), by their names.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tff_pmc.record.read import BASELINE, Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import judging
from tff_pmc.reports.papers.judging import (
    MORE,
    NOT_REPRODUCED,
    REPRODUCED,
    Answer,
    Cells,
    Measure,
    Rows,
    Runs,
    by_seed,
    each,
    labels_of,
    mean_rounds,
    together,
)


def _over_base(
    runs: Runs,
    measures: Rows,
    base: str,
    of: Callable[[float, float], tuple[float, float]],
    **options: Any,
) -> tuple[list[Measure], list[Run]]:
    """Returns measures of runs' and the base's rounds, as less, and all runs."""
    seeds = by_seed(together(runs), labels_of(measures, base))
    found = []
    for row, run, columns, cells in each(measures):
        # The base's rounds first: should they lack, the message is of them.
        theirs = [-mean_rounds(one[base], cells, name=base) for one in seeds]
        ours = [-mean_rounds(one[run], cells) for one in seeds]
        own, other = zip(*map(of, ours, theirs))
        name = row.named(run=run, columns=columns, base=base)
        found.append(Measure(name, own, other, row.sign, **options))
    return found, judging.all_runs(seeds)


def rounds_saved(
    runs: Runs,
    *,
    measures: Rows,
    base: str = BASELINE,
    tolerance: float = 0.0,
    times: int = 1,
    shows_clients: bool = False,
) -> Answer:
    """Judges the rounds until targets that runs save over `base`, mean over the cells.

    `tolerance` is in rounds. `times` is a factor of their own rounds, for "less than
    half". With `shows_clients` the number says how many clients there were.
    """

    def of(own: float, other: float) -> tuple[float, float]:
        return times * own, other

    found, used = _over_base(runs, measures, base, of, tolerance=tolerance)
    number, verdict, why = judging.judged(found, used)
    if shows_clients:
        clients = {int(run.data["clients"]) for run in used}
        number += f" ({' or '.join(map(str, sorted(clients)))} clients)"
    return number, verdict, why


def share_of_rounds(
    runs: Runs, *, measures: Rows, base: str = BASELINE, tolerance: float = 0.0
) -> Answer:
    """Judges the rounds that runs need beyond those of `base`, as a share of those."""

    def of(own: float, other: float) -> tuple[float, float]:
        return own / other - 1, 0.0

    options = {"tolerance": tolerance, "digits": 2}
    return judging.judged(*_over_base(runs, measures, base, of, **options))


def best_of_some(runs: Runs, *, measures: Rows, of: Sequence[str]) -> Answer:
    """Judges the rounds that the best of a row's runs saves over the best other.

    `of` has the labels of these runs and of the others.
    """
    seeds = by_seed(together(runs), of)
    found = []
    for row in measures:
        others = [label for label in of if label not in row.runs]
        for columns, cells in row.columns.items():
            own = [_best(one, row.runs, cells) for one in seeds]
            other = [_best(one, others, cells) for one in seeds]
            name = row.named(run=", ".join(row.runs), columns=columns)
            found.append(Measure(name, own, other, row.sign))
    return judging.judged(found, judging.all_runs(seeds))


def _best(runs: Mapping[str, Run], labels: Sequence[str], cells: Cells) -> float:
    """Returns the fewest rounds of some runs, as less."""
    return max(-mean_rounds(runs[label], cells) for label in labels)


def gains_compared(runs: Runs, *, measures: Rows, quantity: str) -> Answer:
    """Judges whether runs gain more in some columns than in others, over the baseline.

    Of two experiments the columns are of the first, and those that are taken from them
    (`minus`) of the second. `quantity` is one of `QUANTITIES`.
    """
    seeds = [by_seed(own, labels_of(measures)) for own in runs.values()]
    count = min(map(len, seeds))
    found = []
    for row in measures:
        ((minus, theirs),) = row.minus.items()
        other = [QUANTITIES[quantity](one, row.runs, theirs) for one in seeds[-1]]
        ((columns, ours),) = row.columns.items()
        own = [QUANTITIES[quantity](one, row.runs, ours) for one in seeds[0]]
        name = row.named(columns=columns, minus=minus)
        found.append(Measure(name, own[:count], other[:count], row.sign))
    used = [run for of_experiment in seeds for run in judging.all_runs(of_experiment)]
    return judging.judged(found, used)


def _gains(runs: Mapping[str, Run], label: str, cells: Cells) -> float:
    base = mean_rounds(runs[BASELINE], cells, name=BASELINE)
    return base - mean_rounds(runs[label], cells)


def _largest_gain(
    runs: Mapping[str, Run], labels: Sequence[str], cells: Cells
) -> float:
    return max(_gains(runs, label, cells) for label in labels)


def _cells_that_lose(
    runs: Mapping[str, Run], labels: Sequence[str], cells: Cells
) -> float:
    each = itertools.product(labels, cells)
    return float(sum(_gains(runs, label, [cell]) < 0 for label, cell in each))


QUANTITIES = {"largest gain": _largest_gain, "cells that lose": _cells_that_lose}
"""What is compared: the mean gain of the best run, or how many cells lose rounds."""


def testing_rounds(runs: Runs) -> Answer:
    """Judges whether no round tests more than m! candidates."""
    adjusted = [
        run
        for run in together(runs)
        if run.adjustment != "fixed" and "testing_rounds" in run.rounds
    ]
    if not adjusted:
        raise RecordError("no adjusted run is kept")
    bound = max(math.factorial(len(run.settings["priority"])) for run in adjusted)
    worst = max(int(run.rounds["testing_rounds"].max()) for run in adjusted)
    verdict = REPRODUCED if worst <= bound else NOT_REPRODUCED
    number = f"{worst} at most, of {bound} possible"
    count = sum(len(run.rounds) for run in adjusted)
    return number, verdict, f"in {count} adjusted rounds, as it has to be"


def epochs_and_batches(
    runs: Runs, *, own: Sequence[int], columns: Mapping[str, Cells]
) -> Answer:
    """Judges whether no E and B but `own`, the paper's, bring DS to a target sooner."""
    found: dict[tuple[int, ...], list[Run]] = {}
    for run in together(runs):
        if run.label == BASELINE:
            key = run.settings["local_epochs"], run.settings["batch_size"]
            found.setdefault((int(key[0]), int(key[1])), []).append(run)
    words = "E = {} and B = {}".format(*own)
    if len(found) < 2 or tuple(own) not in found:
        raise RecordError(
            f"only {words} is kept; run DS with other --local_epochs and --batch_size"
        )
    # A run that does not arrive counts by its length: only equal ones are compared.
    bases = {_seed_and_length(run): run for run in found.pop(tuple(own))}
    ((name, cells),) = columns.items()
    measures, used = [], []
    for (epochs, batch), others in sorted(found.items()):
        pairs = [(bases.get(_seed_and_length(run)), run) for run in others]
        both = [(base, run) for base, run in pairs if base is not None]
        if not both:
            raise RecordError(
                f"no run with {words} has the seed and the rounds of the one "
                f"with E = {epochs} and B = {batch}"
            )
        ours = [-mean_rounds(base, cells, name=BASELINE) for base, _ in both]
        theirs = [-mean_rounds(run, cells) for _, run in both]
        over = f"{name}, over E = {epochs}, B = {batch}"
        measures.append(Measure(over, ours, theirs, MORE))
        used += [run for pair in both for run in pair]
    return judging.judged(measures, used)


def _seed_and_length(run: Run) -> tuple[int, int]:
    return int(run.settings.get("batch_seed", 0)), len(run.rounds)


JUDGES: Mapping[str, Callable[..., Answer]] = {
    "rounds saved": rounds_saved,
    "share of rounds": share_of_rounds,
    "best of some": best_of_some,
    "gains compared": gains_compared,
    "testing rounds": testing_rounds,
    "epochs and batches": epochs_and_batches,
}
"""The judges by the names that tables of claims have for them."""
