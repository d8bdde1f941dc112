"""The judges of accuracy: from runs, and what a claim's table says, to an answer.

A judge takes the runs of each of the claim's experiments and the keys of the claim
(`claim_tables`), by their names.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Union

from tff_pmc.record.read import BASELINE, Run
from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.papers import dual_cells, judging, pmc_variance
from tff_pmc.reports.papers.judging import (
    LESS,
    MORE,
    Answer,
    Measure,
    Rows,
    Runs,
    by_seed,
    each,
    together,
)

ACCURACIES: Mapping[str, Callable[[Run], float]] = {
    "best round": lambda run: float(run.accuracy.max()),
    "second half": lambda run: run.late_accuracy,
}
"""Which accuracy of a run a claim is `of`; of the second half it is the mean."""


def accuracy_gained(
    runs: Runs,
    *,
    measures: Rows,
    of: str,
    base: Union[str, float, Sequence[str]] = BASELINE,
    base_systems: Sequence[str] = (),
    lacking: str = "",
    clients: int = 0,
    tolerance: float = 0.0,
    digits: int = 1,
    least_rounds: int = 0,
) -> Answer:
    """Judges points of accuracy that runs gain over others, or over a number.

    `of` is one of `ACCURACIES`. `base` is the label of the run that they are held
    against, a number of points, or several labels: then the best of them. In its place
    `base_systems` has systems, of which it is each run. `lacking` is said where a run
    of the claim, or of these systems, is not there. With `clients` the runs are the
    rows of Dual's table with so many, and labels are systems.
    """
    every = together(runs)
    bases = [base]
    if base_systems:
        systems = [r.label for r in every if r.settings.get("system") in base_systems]
        bases = [*dict.fromkeys(systems)]
    label_of = functools.partial(_row_of_dual, clients=clients)
    needed = [run for row in measures for run in row.runs]
    if lacking and not (bases and {*needed} <= {label_of(run) for run in every}):
        raise TooShortError(lacking)
    others = [[*one] if isinstance(one, list) else [one] for one in bases]
    labels = [one for some in others for one in some if isinstance(one, str)]
    seeds = by_seed(every, [*dict.fromkeys([*labels, *needed])], label_of)

    def points(one: Mapping[str, Run], label: Union[str, float]) -> float:
        number = isinstance(label, (int, float))
        return float(label) if number else 100 * ACCURACIES[of](one[str(label)])

    found = []
    for (row, run, _, _), some in itertools.product(each(measures), others):
        own = [points(one, run) for one in seeds]
        other = [max(points(one, label) for label in some) for one in seeds]
        name = row.named(run=run, base=" or ".join(map(str, some)))
        found.append(Measure(name, own, other, row.sign, tolerance, digits))
    used = judging.all_runs(seeds)
    return judging.judged(found, used, least_rounds=least_rounds)


def _row_of_dual(run: Run, clients: int) -> str:
    """Returns the system of a row of Dual's tables, empty of others and other readings.

    With `clients` of 0 it is the label, of any run.
    """
    if not clients:
        return run.label
    settings = run.settings
    system = str(settings["system"])
    on_other = system == "dual" and settings["judge_on"] != "test"
    if not dual_cells.is_row(run) or run.data["clients"] != clients or on_other:
        return ""
    form = settings.get("personalized_form", "formula")
    return system if form == "formula" else f"{system} ({form})"


def rows_of_dual(runs: Sequence[Run], clients: int) -> dict[str, Run]:
    """Returns the rows of Dual's table among runs of one seed, by system."""
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(_row_of_dual(run, clients), run)
    return found


def highest_accuracy(runs: Runs, *, below: float, rounds: int) -> Answer:
    """Judges whether no run has more than an accuracy in that many rounds."""
    highest = []
    seeds = by_seed(together(runs), [BASELINE])
    for one in seeds:
        shortest = min(len(run.rounds) for run in one.values())
        if shortest < rounds:
            raise TooShortError(f"a kept run ends in round {shortest}, not {rounds}")
        accuracies = map(ACCURACIES["best round"], one.values())
        highest.append(100 * max(accuracies))
    name = f"highest minus {below:g}, points"
    measure = Measure(name, highest, [below] * len(highest), LESS)
    return judging.judged([measure], judging.all_runs(seeds))


def variance_and_gain(runs: Runs) -> Answer:
    """Judges by rank correlations over the orderings of each experiment.

    They are of the first criterion's variance between clients and the best accuracy.
    """
    measures, used = [], []
    why = RecordError("no runs are kept")
    for name, own in runs.items():
        try:
            criteria = next((run.settings["criteria"] for run in own), [BASELINE])
            found = [
                pmc_variance.correlations(pmc_variance.orderings([*one.values()]))
                for one in by_seed(own, criteria)
            ]
        except RecordError as error:
            why = error
            continue
        ranks = [table[pmc_variance.BEST] for table in found]
        said = f"{name}: rank correlation with the best accuracy"
        measures.append(Measure(said, ranks, [0.0] * len(ranks), MORE, digits=2))
        used += [*own]
    if not measures:
        raise why
    return judging.judged(measures, used)


JUDGES: Mapping[str, Callable[..., Answer]] = {
    "accuracy gained": accuracy_gained,
    "highest accuracy": highest_accuracy,
    "variance and gain": variance_and_gain,
}
"""The judges by the names that tables of claims have for them."""
