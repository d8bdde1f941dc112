"""Differences of Dual's algorithms in accuracy over runs, and what of them is noise.

The accuracy is that of the best epoch, the number that the paper reports.

The noise floor of a difference, in the run of one seed, is two standard errors of the
difference of two accuracies on the reported examples, or the distance of Simple
Average and Weighted Mean if that is larger: with clients of one size these are one
algorithm. Under five seeds and more it is two standard errors of the mean over them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple

import numpy as np

from tff_pmc.reports import paired
from tff_pmc.reports.kept import totals
from tff_pmc.reports.papers import dual_cells
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import RecordError

Best = Mapping[str, float]
"""System -> accuracy at its best epoch."""

_ONE_ALGORITHM = ("simple_average", "weighted_mean")
_ENOUGH_SEEDS = paired.MIN_SEEDS
_FEW_EPOCHS = 10


class Difference(NamedTuple):
    """A difference of two accuracies over the seeds, and its noise floor."""

    mean: float
    floor: float
    seeds: int

    @property
    def sign(self) -> int:
        """1 or -1 where it is beyond the noise, else 0."""
        return 0 if abs(self.mean) <= self.floor else int(math.copysign(1, self.mean))

    @property
    def text(self) -> str:
        """In points, with what is noise and the number of seeds."""
        seeds = "1 seed" if self.seeds == 1 else f"{self.seeds} seeds"
        mean, floor = 100 * self.mean, 100 * self.floor
        return f"{mean:+.2f} points ({seeds}, noise {floor:.2f})"


def best_epochs(runs: Sequence[Run], clients: int) -> dict[int, dict[str, float]]:
    """Returns the accuracies at the best epoch, seed -> system -> accuracy.

    Args:
        runs: the runs of an experiment. Those that are no row of the paper's table, and
            of the rows those by another reading than the printed one (lambda chosen
            elsewhere, personalized by the text), are passed over.
        clients: the number of clients.
    """
    found: dict[int, dict[str, float]] = {}
    for run in runs:
        settings = run.settings
        other = (
            not dual_cells.is_row(run)
            or run.data["clients"] != clients
            or settings.get("personalized_form", "formula") != "formula"
            or (settings["system"] == "dual" and settings["judge_on"] != "test")
        )
        if not other:
            seed = found.setdefault(int(settings["batch_seed"]), {})
            seed.setdefault(settings["system"], best_epoch(run))
    return found


def difference(
    runs: Sequence[Run], clients: int, gap: Callable[[Best], float]
) -> Difference:
    """Returns a difference over the seeds that have the systems it is of.

    Args:
        runs: the runs of an experiment.
        clients: the number of clients.
        gap: the difference in the accuracies of one seed; it raises a `KeyError` where
            a system is missing.

    Raises:
        RecordError: no seed has all of them.
    """
    found, floors = [], []
    examples = totals(runs[0])[1] if runs else 0
    for best in best_epochs(runs, clients).values():
        try:
            found.append(gap(best))
        except KeyError:
            continue
        level = best.get("weighted_mean", 0.5)
        floors.append(2 * math.sqrt(2 * level * (1 - level) / examples))
        if set(_ONE_ALGORITHM) <= set(best):
            one, other = (best[name] for name in _ONE_ALGORITHM)
            floors.append(abs(one - other))
    if not found:
        raise RecordError(f"no seed has the runs of the claim with {clients} clients")
    floor = max(floors)
    if len(found) >= _ENOUGH_SEEDS:
        floor = 2 * float(np.std(found, ddof=1)) / math.sqrt(len(found))
    return Difference(float(np.mean(found)), floor, len(found))


def caveat(runs: Sequence[Run]) -> str:
    """Returns why runs are not the paper's experiment, empty where nothing speaks."""
    for run in runs:
        fraction = float(run.data.get("options", {}).get("image_fraction", 1))
        epochs = len(run.rounds)
        if run.data_caveat:
            return "drawn pictures in the place of the paper's"
        if fraction < 1:
            return f"on {fraction:g} of the images, {epochs} epochs"
        if epochs < _FEW_EPOCHS:
            return f"after {epochs} epochs"
    return ""


def best_epoch(run: Run) -> float:
    """Returns a run's accuracy at its best epoch."""
    correct, examples = totals(run)
    return float(correct.max() / examples)
