"""The effect of AdaFed's and Dual's systems against a baseline on paired seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from tff_pmc.reports import Report, paired
from tff_pmc.reports.pages import Block, Items, Page, Table
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
        by_seed: the runs of each seed, of the same systems.
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
    found = paired.rows(by_seed, _measures, base_of)
    table = pd.DataFrame(found, columns=["label", "measure", *paired.COLUMNS])
    table.insert(1, "baseline", table["label"].map(base_of))
    return table.rename(columns={"label": "system"})


def report(by_seed: Mapping[int, Sequence[Run]], *, baseline: str) -> Report:
    """Returns `effect.csv` and `effect.md`; see `rows`."""
    every = [run for runs in by_seed.values() for run in runs]
    table = rows(by_seed, baseline)
    first = next(iter(by_seed.values()))
    blocks: list[Block] = [
        f"Each system minus {baseline} on the same data and under the same seed, "
        "accuracy on the reported images: mean ± half the 95 % interval. The noise "
        "floor is the standard deviation of the baseline minus itself under another "
        f"seed: of one such difference, and of the mean of {len(by_seed)}, to hold the "
        "means against. The best round is chosen on the reported images. A seed "
        "decides the initial weights, the batches and what of the data is drawn at "
        "random. "
        f"Seeds: {', '.join(map(str, by_seed))}; under the first:",
        Items(conditions_of(first)),
        "Mean accuracy over the seeds:",
        Table(_means(every)),
        *paired.blocks(table, "system", baseline, lambda _: 4),
    ]
    page = Page(f"Is there an effect? {first[0].settings['experiment']}", blocks)
    tables = {"effect": with_caveat(table, every)}
    return Report(page.markdown(), tables, {"effect": page}, digits=6)


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
