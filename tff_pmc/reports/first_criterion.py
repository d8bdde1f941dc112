"""Orderings that begin with the same criterion, taken together, on paired seeds.

With normalized criteria the second priority of an ordering counts about 1/m as much as
the first in a cohort of m (`docs/pmc.md`), so that such orderings are nearly one
algorithm. Under one seed their runs then differ by little but rounding, which training
amplifies. The mean of several of them has less of it than a single run, and their
spread says how much of it there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from tff_pmc.reports import paired
from tff_pmc.reports.kept import rounds_of
from tff_pmc.reports.pages import Block, Heading, Table
from tff_pmc.reports.read import BASELINE, Run
from tff_pmc.reports.rounds_to_target import DEVICES

COLUMNS = ("first_criterion", "measure", "orderings", *paired.COLUMNS, "within")

_ACCURACY = "accuracy"


def groups(labels: Sequence[str]) -> dict[str, list[str]]:
    """Returns first criterion -> the orderings that begin with it.

    It is empty unless there are two or more first criteria, each with equally many
    orderings, and with more than one; and where a label is more than an ordering, of an
    adjusted run say.
    """
    by_first: dict[str, list[str]] = {}
    for label in labels:
        by_first.setdefault(label.split(",")[0], []).append(label)
    sizes = {len(members) for members in by_first.values()}
    comparable = len(by_first) > 1 and len(sizes) == 1 and min(sizes) > 1
    only_orderings = not any(" " in label for label in labels)
    return by_first if comparable and only_orderings else {}


def rows(
    by_seed: Mapping[int, Sequence[Run]],
    targets: Sequence[int],
    baseline: str = BASELINE,
) -> pd.DataFrame:
    """Returns each first criterion's differences from that of the baseline.

    The measures are `accuracy`, the mean over the second half of the rounds, and
    `rounds to T %`, the mean of the rounds until 10, 20, ..., 90 % of the devices reach
    the target, which moves less than the round of a single share. A run counts with its
    group's mean under its seed. Where a run does not reach a target at some share, the
    measure is censored.

    Returns:
        The columns `COLUMNS`: how many orderings a group has, those of
        `paired.difference`, and `within`, the standard deviation of runs of one group
        under one seed (root mean square over groups and seeds; NaN where censored).
        Accuracies are shares, rounds are counted from 1. Empty where `groups` is.

    Raises:
        RecordError: a seed has other orderings than the first.
    """
    found = groups(paired.labels(by_seed))
    base = baseline.split(",")[0]
    if base not in found:
        return pd.DataFrame(columns=list(COLUMNS))
    values = paired.by_measure(by_seed, lambda run: _measures(run, targets))
    lines = []
    for measure in dict.fromkeys(measure for measure, _ in values):
        runs = {
            first: np.array([values[measure, label] for label in members])
            for first, members in found.items()
        }
        every = np.stack(list(runs.values()))  # [groups, orderings, seeds]
        within = math.nan
        if np.isfinite(every).all():
            within = float(np.sqrt(every.var(axis=1, ddof=1).mean()))
        lines += [
            {
                "first_criterion": first,
                "measure": measure,
                "orderings": len(own),
                **paired.difference(own.mean(axis=0), runs[base].mean(axis=0)),
                "within": within,
            }
            for first, own in runs.items()
            if first != base
        ]
    return pd.DataFrame(lines, columns=list(COLUMNS))


def blocks(found: pd.DataFrame, baseline: str) -> list[Block]:
    """Returns the page's part on `rows`; nothing where there are none."""
    if not len(found):
        return []
    base = baseline.split(",")[0]
    number = int(found["orderings"].iloc[0])
    made: list[Block] = [
        Heading("By the first criterion"),
        f"The mean of the {number} orderings that begin with a criterion, minus that "
        f"of the {number} that begin with {base}. Where the later criteria hardly move "
        "weight (above: from its own first criterion), these are nearly one algorithm, "
        "and their mean has less of the rounding in it that training amplifies. "
        "Rounds: the mean until 10, 20, ..., 90 % of the devices reach the target.",
    ]
    for measure, part in found.groupby("measure", sort=False):
        digits = 4 if measure == _ACCURACY else 2
        grid = paired.grid(part, "first criterion", f"{base} first", digits)
        within = paired.number(part["within"].iloc[0], f".{digits}f")
        spread = f"; runs of one first criterion and seed: ± {within}" if within else ""
        made += [f"{measure}{spread}", Table(grid)]
    return [*made, *paired.closing(found)]


def _measures(run: Run, targets: Sequence[int]) -> dict[str, float]:
    reached = rounds_of(run, targets)
    return {
        _ACCURACY: run.late_accuracy,
        **{
            f"rounds to {target} %": float(
                np.mean([reached[target, share] or math.inf for share in DEVICES])
            )
            for target in targets
        },
    }
