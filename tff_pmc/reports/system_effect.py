"""The effect of AdaFed's and Dual's systems against a baseline on paired seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import pandas as pd

from tff_pmc.reports import escape, pages, paired
from tff_pmc.reports.pages import Block, Heading, Items, Page, Table
from tff_pmc.reports.read import Run, conditions_of, with_caveat
from tff_pmc.reports.record_error import RecordError

FIRST_ROUNDS = 5
"""The number of rounds that count as early."""


def rows(by_seed: Mapping[int, Sequence[Run]], baseline: str) -> pd.DataFrame:
    """Returns the paired differences of every system from the baseline on its data.

    The measures are of the accuracy on the reported images: the mean over the first
    five rounds (where there are more), over all rounds, that of the best round (chosen
    on the reported images) and that of the last.

    Args:
        by_seed: the runs of each seed, of the same systems, the baseline among those
            on the same data.
        baseline: the title of the system that the others are held against.

    Returns:
        `system`, `baseline`, `measure` and the columns `paired.COLUMNS`; accuracies
        from 0 to 1.

    Raises:
        RecordError: a seed has other systems than the others, or the baseline is
            missing.
    """
    paired.labels(by_seed)
    first = next(iter(by_seed.values()))
    on_data = {run.note: run.label for run in first if run.system == baseline}
    for run in first:
        if run.note not in on_data:
            raise RecordError(f"{run.label}: there is no run of {baseline} on its data")
    base_of = {run.label: on_data[run.note] for run in first}
    values = paired.by_measure(by_seed, _measures)
    found: list[dict[str, Any]] = [
        {
            "system": label,
            "baseline": base_of[label],
            "measure": measure,
            **paired.difference(own, values[measure, base_of[label]]),
        }
        for (measure, label), own in values.items()
        if label != base_of[label]
    ]
    return pd.DataFrame(
        found, columns=["system", "baseline", "measure", *paired.COLUMNS]
    )


def write(
    by_seed: Mapping[int, Sequence[Run]],
    folder: str,
    *,
    baseline: str,
    strictly_above: Optional[bool] = None,
) -> str:
    """Writes `effect.csv` and `effect.md`; returns the page as text.

    Args:
        by_seed: see `rows`.
        folder: the folder for the files, which are replaced.
        baseline: see `rows`.
        strictly_above: not used: there are no targets here.

    Raises:
        RecordError: see `rows`.
    """
    every = [run for runs in by_seed.values() for run in runs]
    table = rows(by_seed, baseline)
    path = os.path.join(folder, "effect.csv")
    escape.write_csv(with_caveat(table, every), path, index=False, float_format="%.6g")
    page = _page(table, by_seed, baseline)
    pages.write(os.path.join(folder, "effect"), page)
    return pages.markdown(page)


def _page(
    table: pd.DataFrame, by_seed: Mapping[int, Sequence[Run]], baseline: str
) -> Page:
    seeds, first = list(by_seed), next(iter(by_seed.values()))
    blocks: list[Block] = [
        f"Each system minus {baseline} on the same data and under the same seed, "
        "accuracy on the reported images: mean ± half the 95 % interval. The noise "
        "floor is the standard deviation of the baseline minus itself under another "
        f"seed: of one such difference, and of the mean of {len(seeds)}, to hold the "
        "means against. The best round is chosen on the reported images. A seed "
        "decides the initial weights, the batches and what of the data is drawn at "
        "random. "
        f"Seeds: {', '.join(map(str, seeds))}; under the first:",
        Items(conditions_of(first)),
        "Mean accuracy over the seeds:",
        Table(_means([run for runs in by_seed.values() for run in runs])),
    ]
    for measure, part in table.groupby("measure", sort=False):
        grid = paired.grid(part, "system", baseline, 4)
        blocks += [Heading(str(measure)), Table(grid)]
    blocks += paired.closing(table, len(seeds))
    return Page(f"Is there an effect? {first[0].settings['experiment']}", blocks)


def _means(every: Sequence[Run]) -> list[list[str]]:
    """Returns the lines of the measures' means, one for each system."""
    measured = pd.DataFrame([{"": r.label, **_measures(r)} for r in every])
    means = measured.groupby("", sort=False).mean()
    lines = [
        [str(label), *map("{:.4f}".format, values)]
        for label, *values in means.itertuples()
    ]
    return [["", *means], *lines]


def _measures(run: Run) -> dict[str, float]:
    accuracy = run.rounds["accuracy"]
    first = accuracy[:FIRST_ROUNDS]
    early = {f"rounds 1 to {FIRST_ROUNDS}": float(first.mean())}
    return {
        **(early if len(first) < len(accuracy) else {}),
        "all rounds": float(accuracy.mean()),
        "best round": float(accuracy.max()),
        "last round": float(accuracy.iloc[-1]),
    }
