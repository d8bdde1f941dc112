"""The effect of systems on paired seeds: the pages of `effect` with other measures."""

from __future__ import annotations

import pandas as pd

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import Report, effect, effect_page, fairness, paired
from tff_pmc.reports.paired import BySeed

FIRST_ROUNDS = 5
"""The number of rounds of a system that count as early."""


def report(by_seed: BySeed, *, baseline: str) -> Report:
    """Returns `effect.csv` and `effect.md` of systems; see `system_rows`."""
    return _of_systems(by_seed, baseline, _accuracies)


def spread_report(by_seed: BySeed, *, baseline: str) -> Report:
    """Returns the same of other measures, but for the last over the second half.

    They are the mean accuracy, that of each round's worst tenth of the clients, Jain's
    index; and the rounds until half of the clients reach the first target.
    """
    return _of_systems(by_seed, baseline, _spread)


def _of_systems(by_seed: BySeed, baseline: str, measures: paired.Measures) -> Report:
    rows = system_rows(by_seed, baseline, measures)
    first = next(iter(by_seed.values()))
    measured = [{"": run.label, **measures(run)} for run in paired.every(by_seed)]
    means = pd.DataFrame(measured).groupby("", sort=False).mean()
    before = effect_page.intro_of_systems(
        *(first, list(by_seed), baseline, means), of_accuracy=measures is _accuracies
    )
    after = effect_page.censored(rows, baseline, "system")
    return effect.report_of(by_seed, rows, "system", baseline, before, after)


def system_rows(
    by_seed: BySeed, baseline: str, measures: paired.Measures | None = None
) -> pd.DataFrame:
    """Returns the paired differences of every system from the baseline on its data.

    The measures are by default of the accuracy on the reported images: the mean over
    the first five rounds (where there are more), over all rounds, that of the best
    round (chosen on these images) and that of the last. The columns are `system`,
    `baseline`, `measure` and `paired.COLUMNS`.
    """
    paired.labels(by_seed)
    first = next(iter(by_seed.values()))
    # The plain baseline comes first: not that with another server's optimizer, say.
    plain = [run for run in reversed(first) if run.system == baseline]
    on_data = {run.note: run.label for run in plain}
    for run in first:
        if run.note not in on_data:
            raise RecordError(f"{run.label}: there is no run of {baseline} on its data")
    base_of = {run.label: on_data[run.note] for run in first}
    found = paired.rows(by_seed, measures or _accuracies, base_of)
    table = pd.DataFrame(found, columns=["label", "measure", *paired.COLUMNS])
    table.insert(1, "baseline", table["label"].map(base_of))
    return table.rename(columns={"label": "system"})


def _spread(run: Run) -> dict[str, float]:
    late = run.correct[len(run.correct) // 2 :]
    figures = fairness.measured(late, run.examples)
    return {
        "accuracy": run.late_accuracy,
        "worst tenth": float(figures["worst_tenth"].mean()),
        "Jain's index": float(figures["jain_index"].mean()),
        **effect.rounds_to(run, run.targets[:1], [effect.SHARE]),
    }


def _accuracies(run: Run) -> dict[str, float]:
    accuracy = run.rounds["accuracy"]
    first = accuracy[:FIRST_ROUNDS]
    early = {f"rounds 1 to {FIRST_ROUNDS}": float(first.mean())}
    return {
        **(early if len(first) < len(accuracy) else {}),
        "all rounds": float(accuracy.mean()),
        "best round": float(accuracy.max()),
        "last round": float(accuracy.iloc[-1]),
    }
