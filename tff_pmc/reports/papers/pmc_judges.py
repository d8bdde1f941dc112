"""How the claims of PMC's text are judged from runs of its experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Optional

from tff_pmc.reports.papers import judging, pmc_variance
from tff_pmc.reports.papers.judging import MORE, Answer, Measure
from tff_pmc.reports.read import BASELINE, Run
from tff_pmc.reports.record_error import RecordError
from tff_pmc.reports.rounds_to_target import DEVICES

Runs = Mapping[str, Sequence[Run]]
Seeds = Sequence[Mapping[str, Run]]
Cells = Sequence[tuple[int, int]]
IID, NONIID, CELEBA = ("mnist_iid",), ("mnist_noniid",), ("celeba",)
MNIST_TARGETS = (70, 80, 90, 95)
LAST_THREE = [(95, share) for share in (70, 80, 90)]
OF_CELEBA = {70: DEVICES[:8], 80: DEVICES[:6], 85: DEVICES[:5]}
"""Target -> the columns of Table 6 in which DS arrives."""

SIX = ("DS,LD,MD", "DS,MD,LD", "LD,DS,MD", "LD,MD,DS", "MD,DS,LD", "MD,LD,DS")
"Orderings of MNIST's criteria."


def cells(*targets: int) -> Cells:
    """Returns the nine columns at each target."""
    return [(target, share) for target in targets for share in DEVICES]


def celeba_cells(*targets: int) -> Cells:
    """Returns the columns of Table 6 at each target in which DS arrives."""
    return [(target, share) for target in targets for share in OF_CELEBA[target]]


class Saved:
    """A judge of rounds saved: (label, cells, what the paper says of them) of each."""

    def __init__(
        self,
        *parts: tuple[str, Cells, str, str],
        base: str = BASELINE,
        tolerance: float = 0.0,
    ) -> None:
        """Takes label, cells, `MORE`, `LESS` or `NONE`, and where for the reader."""
        self._parts, self._base, self._tolerance = parts, base, tolerance

    def __call__(self, by_experiment: Runs) -> Answer:
        """Judges; see `Claim.judge`."""
        labels = list(dict.fromkeys([self._base, *(part[0] for part in self._parts)]))
        seeds = judging.by_seed(_only(by_experiment), labels)
        measures = [
            judging.rounds_saved(
                seeds,
                label,
                keys,
                says,
                name=f"{label} {where}".strip(),
                base=self._base,
                tolerance=self._tolerance,
            )
            for label, keys, says, where in self._parts
        ]
        return judging.judged(measures, judging.all_runs(seeds))


class Accuracy:
    """A judge of percentage points of accuracy gained over another run, of labels."""

    def __init__(
        self,
        labels: Sequence[str],
        says: str,
        of: Callable[[Run], float],
        base: str = BASELINE,
        tolerance: float = 0.0,
    ) -> None:
        """Takes the labels, what the paper says, and the accuracy of a run."""
        self._labels, self._says = labels, says
        self._of, self._base, self._tolerance = of, base, tolerance

    def __call__(self, by_experiment: Runs) -> Answer:
        """Judges; see `Claim.judge`."""
        seeds = judging.by_seed(_only(by_experiment), [self._base, *self._labels])
        measures = [
            judging.accuracy_gained(
                seeds,
                label,
                self._says,
                name=f"{label} points",
                of=self._of,
                base=self._base,
                tolerance=self._tolerance,
            )
            for label in self._labels
        ]
        return judging.judged(measures, judging.all_runs(seeds))


def less_than_half(by_experiment: Runs) -> Answer:
    """Judges whether CB brings half of the devices to 85 % in half of DS's rounds."""
    seeds = judging.by_seed(_only(by_experiment), [BASELINE, "CB"])
    saved = judging.rounds_saved(seeds, "CB", [(85, 50)], MORE, name="")
    twice = [2 * rounds for rounds in saved.own]
    measure = Measure("rounds of DS minus twice those of CB", twice, saved.base, MORE)
    return judging.judged([measure], judging.all_runs(seeds))


def grows_with_the_target(by_experiment: Runs) -> Answer:
    """Judges whether CB saves more rounds at 85 % than at 70 %."""
    seeds = judging.by_seed(_only(by_experiment), [BASELINE, "CB"])
    parts = [
        judging.rounds_saved(seeds, "CB", celeba_cells(target), MORE, name="CB")
        for target in (70, 80, 85)
    ]
    gains = [[a - b for a, b in zip(part.own, part.base)] for part in parts]
    steps = [
        Measure("gain at 80 % minus at 70 %", gains[1], gains[0], MORE),
        Measure("gain at 85 % minus at 80 %", gains[2], gains[1], MORE),
    ]
    return judging.judged(steps, judging.all_runs(seeds))


def more_losses_at_higher_targets(by_experiment: Runs) -> Answer:
    """Judges whether more cells of the six orderings are negative at 90 and 95 %.

    They are held against those at 70 and 80 %, of 108 each.
    """
    seeds = judging.by_seed(_only(by_experiment), [BASELINE, *SIX])

    def losses(*targets: int) -> list[float]:
        counts = [0.0] * len(seeds)
        for label in SIX:
            for cell in cells(*targets):
                saved = judging.rounds_saved(seeds, label, [cell], MORE, name="")
                for place, (own, base) in enumerate(zip(saved.own, saved.base)):
                    counts[place] += own < base
        return counts

    early, late = losses(70, 80), losses(90, 95)
    name = "cells that are negative, at 90 and 95 % minus at 70 and 80 %"
    measure = Measure(name, late, early, MORE)
    return judging.judged([measure], judging.all_runs(seeds))


def _only(by_experiment: Runs) -> list[Run]:
    return [run for runs in by_experiment.values() for run in runs]


def variance_and_gain(by_experiment: Runs) -> Answer:
    """Judges section 4.2's sentence by rank correlations over the orderings."""
    measures, used = [], []
    why: Optional[RecordError] = None
    for name, runs in by_experiment.items():
        try:
            found = list(_correlations(runs))
        except RecordError as error:
            why = error
            continue
        zeros = [0.0] * len(found)
        said = f"{name}: rank correlation with the best accuracy"
        measures.append(Measure(said, found, zeros, MORE, digits=2))
        used += [*runs]
    if not measures:
        raise why or RecordError("no runs are kept")
    return judging.judged(measures, used)


def _correlations(runs: Sequence[Run]) -> Iterator[float]:
    criteria = next((run.settings["criteria"] for run in runs), [BASELINE])
    for by_label in judging.by_seed(runs, criteria):
        table = pmc_variance.orderings(list(by_label.values()))
        yield pmc_variance.correlations(table)[pmc_variance.BEST]


def more_where_clients_differ(by_experiment: Runs) -> Answer:
    """Judges section 7: the best ordering's gain, non-IID against IID."""
    seeds = [
        judging.by_seed(by_experiment[name], [BASELINE, "LD", "MD", *SIX])
        for name in (*NONIID, *IID)
    ]
    gains = []
    for runs in seeds:
        measures = [
            judging.rounds_saved([one], label, cells(70, 80, 90), MORE, name=label)
            for one in runs
            for label in ("LD", "MD", *SIX)
        ]
        saved = [own[0] - base[0] for _, own, base, *_ in measures]
        gains.append([max(saved[i : i + 8]) for i in range(0, len(saved), 8)])
    count = min(map(len, gains))
    apart, alike = (values[:count] for values in gains)
    measure = Measure("best gain, non-IID minus IID", apart, alike, MORE)
    return judging.judged(
        [measure], [run for s in seeds for run in judging.all_runs(s)]
    )
