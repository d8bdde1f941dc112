"""One number of each table and figure of the papers, and the same number here.

For a page that shows in one screen how far the kept runs are from the papers. What the
numbers decide is said by the claims (`claims_page`), not here.
"""

from __future__ import annotations

import functools
import math
import statistics
import types
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional

from tff_pmc.reports.kept import rounds_of
from tff_pmc.reports.papers import adafed_judges, dual_differences, printed_rounds
from tff_pmc.reports.papers.adafed_judges import ADAFED, FEDAVG, TIMES_SAMPLES, WEIGHTS
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import RecordError

BySeed = Mapping[int, Mapping[str, Run]]
"""Seed -> label of a run, or title of its system -> run."""


_DA_TRAINING = {"local_epochs": 5, "batch_size": 10}
"""Of Table 1; other values were run beside it (section 3)."""


class Headline(NamedTuple):
    """A number of a paper, and how runs give the same.

    Attributes:
        paper: as in `tff_pmc.settings.papers.PAPERS`.
        place: the table or figure that it is of.
        experiment: the named experiment.
        says: what the number is.
        printed: the number as the paper has it.
        measure: the runs of one seed by their labels -> the number; None where it is
            not reached. A `KeyError` where a run is missing, a `RecordError` where a
            record is.
        form: how the number is written.
        settings: the values that a run must have for its number to be this one.
    """

    paper: str
    place: str
    experiment: str
    says: str
    printed: str
    measure: Callable[[Mapping[str, Run]], Optional[float]]
    form: str = "{:.0f}"
    settings: Mapping[str, Any] = types.MappingProxyType({})


class _Noting(dict[str, Run]):
    """Runs by label, which notes those that are asked for; all, where all are read."""

    def __init__(self, runs: Mapping[str, Run]) -> None:
        super().__init__(runs)
        self.asked: list[Run] = []

    def __getitem__(self, label: str) -> Run:
        found = super().__getitem__(label)
        self.asked.append(found)
        return found

    def values(self) -> Any:
        self.asked += super().values()
        return super().values()


def numbers(headline: Headline, runs: Sequence[Run]) -> tuple[str, list[Run]]:
    """Returns our number; of several seeds the median, the lowest and the highest.

    Where it is not reached under a seed it counts as later than all others.

    Args:
        headline: the number.
        runs: the runs of its experiment. The longest of a label and seed counts, of
            equal ones the first.

    Returns:
        Text, and the runs that it is of; both are empty where no seed has them.
    """
    found: dict[int, Optional[float]] = {}
    used: list[Run] = []
    fitting = [
        run
        for run in runs
        if all(run.settings.get(k) == v for k, v in headline.settings.items())
    ]
    for seed, own in by_seed(fitting).items():
        noting = _Noting(own)
        try:
            found[seed] = headline.measure(noting)
        except (KeyError, RecordError):
            continue
        used += noting.asked
    if not found:
        return "", []
    values = sorted(math.inf if v is None else v for v in found.values())

    def text(value: float) -> str:
        return headline.form.format(value) if value < math.inf else "not reached"

    middle = text(statistics.median(values))
    if len(values) > 1:
        span = f"{text(values[0])} to {text(values[-1])}"
        middle += f" ({span}, {len(values)} seeds)"
    return middle, used


def by_seed(runs: Sequence[Run]) -> dict[int, dict[str, Run]]:
    """Returns the runs of each seed, by their labels and their systems' titles."""
    found: dict[int, dict[str, Run]] = {}
    for run in sorted(runs, key=lambda run: -len(run.rounds)):
        own = found.setdefault(int(run.settings.get("batch_seed", 0)), {})
        own.setdefault(run.label, run)
        if not run.note:
            own.setdefault(run.system, run)
    return found


def _half_reach(
    place: str, experiment: str, label: str, target: int, name: str
) -> Headline:
    printed = printed_rounds.printed(experiment, label).get(target)

    def measure(runs: Mapping[str, Run]) -> Optional[float]:
        share = printed_rounds.SHARE
        reached = rounds_of(runs[label], (target,), (share,))[target, share]
        return None if reached is None else float(reached)

    of_da = experiment == "femnist"
    return Headline(
        "DA" if of_da else "PMC",
        place,
        experiment,
        f"{name}: round in which half of the devices reach {target} %",
        "" if printed is None else f"{printed:.0f}",
        measure,
        settings=_DA_TRAINING if of_da else {},
    )


def _fedavgs_rounds_to_adafeds_second(runs: Mapping[str, Run]) -> Optional[float]:
    ours = runs[TIMES_SAMPLES].rounds["accuracy"]
    theirs = runs[FEDAVG].rounds["accuracy"]
    if len(ours) < 2:
        raise RecordError("there is no second round")
    reached = theirs.index[theirs >= ours.iloc[1]]
    return float(reached[0]) + 1 if len(reached) else None


def _lead(system: str, column: str) -> Callable[[Mapping[str, Run]], float]:
    def measure(runs: Mapping[str, Run]) -> float:
        base, own = adafed_judges.at_the_end(column, runs[FEDAVG], runs[system])
        return own - base

    return measure


def _best_epoch(clients: int, minus: str = "") -> Callable[[Mapping[str, Run]], float]:
    def measure(runs: Mapping[str, Run]) -> float:
        (best,) = dual_differences.best_epochs(list(runs.values()), clients).values()
        return best["dual"] - (best[minus] if minus else 0)

    return measure


def _best(label: str) -> Callable[[Mapping[str, Run]], float]:
    return lambda runs: float(runs[label].accuracy.max())


@functools.cache
def headlines() -> tuple[Headline, ...]:
    """Returns the numbers, in the papers' order."""
    return (
        _half_reach("Table 1", "femnist", "DS", 75, "dataset size alone"),
        _half_reach(
            "Table 1",
            "femnist",
            "MD,DS,LD (backtracking)",
            75,
            "adjusted online from Md≻Ds≻Ld",
        ),
        _half_reach("Table 2", "mnist_iid", "DS", 90, "DS"),
        _half_reach("Table 2", "mnist_iid", "LD,DS,MD", 90, "LD≻DS≻MW"),
        _half_reach("Table 4", "mnist_noniid", "DS", 90, "DS"),
        _half_reach("Table 4", "mnist_noniid", "LD,DS,MD", 90, "LD≻DS≻MW"),
        _half_reach("Table 6", "celeba", "DS", 85, "DS"),
        Headline(
            "PMC",
            "Table 7",
            "celeba",
            "DS: test images right at the best round",
            "0.876",
            _best("DS"),
            "{:.3f}",
        ),
        Headline(
            "PMC",
            "Table 7",
            "celeba",
            "CB: the same",
            "0.803",
            _best("CB"),
            "{:.3f}",
        ),
        Headline(
            "AdaFed",
            "Figure 1",
            "adafed_1",
            "round in which FedAvg has the accuracy of AdaFed's second",
            "12",
            _fedavgs_rounds_to_adafeds_second,
        ),
        Headline(
            "AdaFed",
            "Figure 2",
            "adafed_2",
            "lead over FedAvg in accuracy, last five rounds or all, weights only",
            "about .03",
            _lead(WEIGHTS, "accuracy"),
            "{:+.3f}",
        ),
        Headline(
            "AdaFed",
            "Figure 2",
            "adafed_2",
            "the same with the adaptive loss",
            "about .03",
            _lead(ADAFED, "accuracy"),
            "{:+.3f}",
        ),
        Headline(
            "AdaFed",
            "Figure 6",
            "adafed_3",
            "lead over FedAvg in macro F1, two adversaries, last five rounds or all",
            "",
            _lead(ADAFED, "macro_f1"),
            "{:+.3f}",
        ),
        Headline(
            "Dual",
            "Table IV",
            "dual_criterion",
            "accuracy of the dual criterion, three clients, best epoch",
            ".8286",
            _best_epoch(3),
            "{:.4f}",
        ),
        Headline(
            "Dual",
            "Table IV",
            "dual_criterion",
            "its lead over the weighted mean",
            "+.0060",
            _best_epoch(3, "weighted_mean"),
            "{:+.4f}",
        ),
        Headline(
            "Dual",
            "Table V",
            "dual_criterion_obstacles",
            "its lead over the weighted mean, obstacles",
            "+.0168",
            _best_epoch(3, "weighted_mean"),
            "{:+.4f}",
        ),
    )
