"""The judges of AdaFed's claims: a rule for one seed, and all seeds together.

A claim's `systems`, under one seed, stand in the order of the table in each of its
experiments: the first is the one that the others are held against. A claim is
reproduced where its rule holds under every seed, and not where it holds under none.
With fewer than `paired.MIN_SEEDS` it is undecidable.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Optional

import pandas as pd

from tff_pmc.record.read import Run, read_table
from tff_pmc.reports import paired
from tff_pmc.reports.papers.judging import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDABLE,
    Answer,
    Runs,
)

ROUNDS = 20
"""AdaFed's communication rounds (section 4)."""

LAST = 5
"""The number of last rounds over which we take a mean."""

FEDAVG = "FedAvg"


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


_NO_F1 = Outcome("", None, "the runs have no F1 on record")


def under_each_seed(
    runs: Runs,
    *,
    asked: Callable[..., Outcome],
    systems: Sequence[str],
    rule: str,
    **parameters: object,
) -> Answer:
    """Judges by a rule, `rule` in words, that is asked about the runs of each seed."""
    found = []
    for experiment, system in itertools.product(runs, systems):
        of_system = [run for run in runs[experiment] if run.system == system]
        if not of_system:
            return "", UNDECIDABLE, f"there is no run of {system} in {experiment}"
        of_system.sort(key=lambda run: len(run.rounds))  # The longest of a seed counts.
        found.append({run.settings["batch_seed"]: run for run in of_system})
    seeds = [seed for seed in found[0] if all(seed in each for each in found)]
    if not seeds:
        return "", UNDECIDABLE, "the runs have no seed in common"
    outcomes = {
        seed: asked(*(each[seed] for each in found), **parameters) for seed in seeds
    }
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
    return number, verdict, f"{rule} {counted}"


def _ahead_in_a_round(base: Run, own: Run, *, round: int) -> Outcome:
    ours, theirs = (run.rounds["accuracy"][round - 1] for run in (own, base))
    lead = 100 * (ours - theirs)
    return Outcome(f"{lead:+.2f} points in round {round}", bool(lead > 0))


def _round_against_round(
    base: Run, own: Run, *, own_round: int, base_round: int
) -> Outcome:
    """Whether the base has the accuracy of a round in that of its own, or later."""
    if len(own.rounds) < own_round:
        why = f"AdaFed was run for {len(own.rounds)} rounds, not {own_round}"
        return Outcome("", None, why)
    goal = own.rounds["accuracy"][own_round - 1]
    number = f"{goal:.4f} in AdaFed's round {own_round}, "
    first, rounds = round_of_accuracy(base, goal), len(base.rounds)
    if first is not None:
        return Outcome(f"{number}FedAvg's round {first}", first >= base_round)
    number += f"none of FedAvg's {rounds}"
    if rounds < base_round:
        why = f"FedAvg was run for {rounds} rounds, not {base_round}"
        return Outcome(number, None, why)
    return Outcome(number, True)


def _weight_of_a_client(run: Run, *, client: str) -> Outcome:
    if run.cohort is None:
        return Outcome("", None, "the run's cohort.csv was not kept")
    first = run.cohort[run.cohort["round"] == 1].set_index("client")[["ACC", "weight"]]
    own, others = first.loc[client], first.drop(client).max()
    number = (
        "accuracy {:.3f} in round 1, the others' at most {:.3f}; weight {:.3f}, the "
        "others' at most {:.3f}"
    ).format(*(side[name] for name in first for side in (own, others)))
    return Outcome(number, bool((own > others).all()))


def _ahead_at_the_end(
    base: Run, weights: Run, adafed: Run, *, points: Sequence[float]
) -> Outcome:
    first, *ours = at_the_end("accuracy", base, weights, adafed)
    leads = [100 * (mean - first) for mean in ours]
    number = "weights only {:+.2f} points, with the loss {:+.2f}".format(*leads)
    holds = all(_within(lead, points) for lead in leads)
    return _of_whole_runs(number, holds, base, weights, adafed)


def _sooner_at_the_bases_end(base: Run, weights: Run, adafed: Run) -> Outcome:
    (goal,) = at_the_end("accuracy", base)
    first = [round_of_accuracy(run, goal) for run in (adafed, weights)]
    shown = ["never" if number is None else f"round {number}" for number in first]
    number = "with the loss {}, weights only {}".format(*shown)
    ours, theirs = (ROUNDS + 1 if value is None else value for value in first)
    return _of_whole_runs(number, ours < theirs, base, weights, adafed)


def _f1(
    base: Run,
    weights: Run,
    adafed: Run,
    *,
    of: str,
    order: str,
    classes: Sequence[int] = (),
) -> Outcome:
    """Asks for the order of AdaFed, its weights only and FedAvg by their F1."""
    runs = adafed, weights, base
    found = [_mean_f1(run, of, classes) for run in runs]
    values = [value for value in found if value is not None]
    if len(values) < len(runs):
        return _NO_F1
    number = "{:.4f}, weights only {:.4f}, FedAvg {:.4f}".format(*values)
    return _of_whole_runs(number, ORDERS[order](*values), *runs)


ORDERS: Mapping[str, Callable[[float, float, float], bool]] = {
    "first is highest": lambda a, b, c: a > max(b, c),
    "rising": lambda a, b, c: a < b < c,
}


def _mean_f1(run: Run, of: str, classes: Sequence[int]) -> Optional[float]:
    """Returns the mean over the rounds; None where the run has no F1 on record."""
    if of == "macro":
        known = "macro_f1" in run.rounds
        return float(run.rounds["macro_f1"].mean()) if known else None
    table = class_f1(run)
    if table is None:
        return None
    if of == "spread over classes":
        return float(table.std(axis=1, ddof=0).mean())
    return float(table[[*classes]].mean(axis=None))


def _change_between_experiments(
    before: Run, after: Run, *, points: Sequence[float], macro_f1: Sequence[float]
) -> Outcome:
    """Asks whether both changes lie within limits: accuracy's, in points, and F1's."""
    if any("macro_f1" not in run.rounds for run in (before, after)):
        return _NO_F1
    ends = (at_the_end(column, before, after) for column in ("accuracy", "macro_f1"))
    accuracy, f1 = (end - begin for begin, end in ends)
    number = f"{100 * accuracy:+.2f} points of accuracy, {f1:+.4f} of macro F1"
    holds = _within(100 * accuracy, points) and _within(f1, macro_f1)
    return _of_whole_runs(number, holds, before, after)


def _within(value: float, limits: Sequence[float]) -> bool:
    low, high = limits
    return low <= value <= high


def _of_whole_runs(number: str, holds: bool, *runs: Run) -> Outcome:
    """Returns the outcome; none where a run has fewer than the paper's rounds."""
    shortest = min(len(run.rounds) for run in runs)
    if shortest < ROUNDS:
        why = f"{shortest} of the {ROUNDS} rounds were run"
        return Outcome(number, None, why)
    return Outcome(number, holds)


def round_of_accuracy(run: Run, goal: float) -> Optional[int]:
    """Returns the first round with an accuracy, None where there is none."""
    reached = run.rounds["round"][run.rounds["accuracy"] >= goal]
    return int(reached.iloc[0]) if len(reached) else None


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


RULES: Mapping[str, Callable[..., Outcome]] = {
    "ahead in a round": _ahead_in_a_round,
    "round against round": _round_against_round,
    "weight of a client": _weight_of_a_client,
    "ahead at the end": _ahead_at_the_end,
    "sooner at the base's end": _sooner_at_the_bases_end,
    "F1": _f1,
    "change between experiments": _change_between_experiments,
}
JUDGES: Mapping[str, Callable[..., Answer]] = {
    name: functools.partial(under_each_seed, asked=asked)
    for name, asked in RULES.items()
}
"""The judges by the names that tables of claims have for them."""
