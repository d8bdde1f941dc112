"""How AdaFed's claims are judged: a rule for one seed, and all seeds together."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple, Optional

import pandas as pd

from tff_pmc.reports import paired
from tff_pmc.reports.papers.claims_of_papers import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDABLE,
)
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_tables import read_table

ROUNDS = 20
"""AdaFed's communication rounds (section 4)."""

LAST = 5
"""The number of last rounds over which we take a mean."""

FEDAVG, ADAFED, WEIGHTS = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES_SAMPLES = "AdaFed, weights only, times samples"

Judge = Callable[[Mapping[str, Sequence[Run]]], tuple[str, str, str]]


class Outcome(NamedTuple):
    """What the runs of one seed say of a claim.

    Attributes:
        number: our number, as text.
        holds: whether the claim holds; None where these runs cannot say.
        why: what is missing, where they cannot.
    """

    number: str
    holds: Optional[bool]
    why: str = ""


Rule = Callable[..., Outcome]


def judge(rule: Rule, *needed: tuple[str, str], says: str) -> Judge:
    """Returns a judge that asks a rule about each seed.

    A claim is reproduced where it holds under every seed, and not where it holds under
    none. With fewer than `paired.MIN_SEEDS` it is undecidable.

    Args:
        rule: takes the runs that are needed, of one seed, and gives an `Outcome`.
        *needed: the experiment and the title of the system of each.
        says: the rule in words.
    """
    return functools.partial(_judged, rule, needed, says)


def _judged(
    rule: Rule,
    needed: Sequence[tuple[str, str]],
    says: str,
    runs: Mapping[str, Sequence[Run]],
) -> tuple[str, str, str]:
    found = []
    for experiment, system in needed:
        of_system = [run for run in runs.get(experiment, ()) if run.system == system]
        if not of_system:
            return "", UNDECIDABLE, f"there is no run of {system} in {experiment}"
        of_system.sort(key=lambda run: len(run.rounds))  # The longest of a seed counts.
        found.append({run.settings["batch_seed"]: run for run in of_system})
    seeds = [seed for seed in found[0] if all(seed in each for each in found)]
    if not seeds:
        return "", UNDECIDABLE, "the runs have no seed in common"
    outcomes = {seed: rule(*(each[seed] for each in found)) for seed in seeds}
    number = "; ".join(
        f"seed {seed}: {outcome.number}" if len(seeds) > 1 else outcome.number
        for seed, outcome in outcomes.items()
        if outcome.number
    )
    missing = next((o.why for o in outcomes.values() if o.holds is None), None)
    if missing is not None:
        return number, UNDECIDABLE, missing
    held = sum(bool(outcome.holds) for outcome in outcomes.values())
    verdict = {len(seeds): REPRODUCED, 0: NOT_REPRODUCED}.get(held, UNDECIDABLE)
    counted = f"It holds under {held} of {len(seeds)} seeds."
    if len(seeds) < paired.MIN_SEEDS:
        counted += f" Below {paired.MIN_SEEDS} nothing is decided."
        verdict = UNDECIDABLE
    return number, verdict, f"{says} {counted}"


def about(value: float, printed: float) -> bool:
    """Whether a number is "about" a printed one: between its half and its double."""
    return printed / 2 <= value <= 2 * printed


def too_short(*runs: Run) -> str:
    """Says so where a run has fewer than the paper's rounds, else nothing."""
    shortest = min(len(run.rounds) for run in runs)
    return "" if shortest >= ROUNDS else f"{shortest} of the {ROUNDS} rounds were run"


def at_the_end(column: str, *runs: Run) -> list[float]:
    """The mean of a column of `rounds.csv` of each run over its last rounds.

    Of runs of different lengths it is over the last of the rounds that all of them
    have.
    """
    common = min(len(run.rounds) for run in runs)
    return [float(run.rounds[column][:common][-LAST:].mean()) for run in runs]


def class_f1(run: Run) -> Optional[pd.DataFrame]:
    """F1 of each class, [round, class]; None where it is not on record.

    The files of runs from before `macro_f1` have F1 before the round, and do not count.
    """
    path = os.path.join(run.path, "class_f1.csv")
    if "macro_f1" not in run.rounds or not run.path or not os.path.exists(path):
        return None
    table = read_table(run.path, "class_f1.csv")
    return table.pivot(index="round", columns="class", values="f1")
