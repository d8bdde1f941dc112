"""Do AdaFed and Dual do better? Their systems against a baseline on paired seeds."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.reports import adafed, grids, paired
from tff_pmc.reports.read import Run, conditions, with_caveat

FIRST_ROUNDS = 5


def rows(
    by_seed: Mapping[int, Sequence[Run]], baselines: Collection[str]
) -> pd.DataFrame:
    """The paired differences of every system from the baseline on its data.

    The measures are of the accuracy on the reported images: the mean over the first
    five rounds (where there are more), over all rounds, that of the best round (chosen
    on the reported images) and that of the last.

    Args:
        by_seed: the runs of each seed, of the same systems, a baseline among those on
            the same data.
        baselines: names of systems that the others are held against.

    Returns:
        `system`, `baseline`, `measure` and the columns `paired.COLUMNS`; accuracies
        from 0 to 1.

    Raises:
        ValueError: a seed has other systems than the others, or a baseline is missing.
    """
    first = next(iter(by_seed.values()))
    labels = [run.label for run in first]
    on_data = {_data_of(run): run.label for run in first if _name(run) in baselines}
    values: dict[tuple[str, str], list[float]] = {}
    for seed, runs in by_seed.items():
        if [run.label for run in runs] != labels:
            raise ValueError(f"seed {seed} has other systems than the others")
        for run in runs:
            for measure, value in _measures(run).items():
                values.setdefault((measure, run.label), []).append(value)
    missing = [run.label for run in first if _data_of(run) not in on_data]
    if missing:
        raise ValueError(
            f"{missing[0]}: there is no run of {' or '.join(baselines)} on its data"
        )
    base_of = {run.label: on_data[_data_of(run)] for run in first}
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
    by_seed: Mapping[int, Sequence[Run]], baselines: Collection[str], folder: str
) -> str:
    """Writes `effect.csv`, `effect.md` and AdaFed's figures; returns the page as text.

    The figures have the mean over the seeds, and the lowest and highest as a band. For
    the arguments and errors see `rows`.
    """
    every = [run for runs in by_seed.values() for run in runs]
    table = rows(by_seed, baselines)
    with_caveat(table, every).to_csv(
        os.path.join(folder, "effect.csv"), index=False, float_format="%.6g"
    )
    experiment = every[0].info["settings"]["experiment"]
    if experiment in adafed.CLAIMS:
        adafed.figures(every, folder, experiment)
    names = {_name(run) for run in every} & set(baselines)
    page = _page(table, by_seed, " or ".join(sorted(names)))
    with open(os.path.join(folder, "effect.md"), "w", encoding="utf-8") as file:
        file.write(page)
    return page


def _page(
    table: pd.DataFrame, by_seed: Mapping[int, Sequence[Run]], baseline: str
) -> str:
    seeds, first = list(by_seed), next(iter(by_seed.values()))
    lines = [
        f"# Is there an effect? {first[0].info['settings']['experiment']}",
        "",
        f"Each system minus {baseline} on the same data and under the same seed, "
        "accuracy on the reported images: mean ± half the 95 % interval. The noise "
        "floor is the standard deviation of the baseline minus itself under another "
        f"seed: of one such difference, and of the mean of {len(seeds)}, to hold the "
        "means against. The best round is chosen on the reported images. A seed "
        "decides the initial weights, the batches and what of the data is drawn at "
        "random. "
        f"Seeds: {', '.join(map(str, seeds))}; under the first:",
        "",
        *(f"- {text}" for text in dict.fromkeys(conditions(r.info) for r in first)),
        "",
        "Mean accuracy over the seeds:",
        "",
        grids.markdown(_means([run for runs in by_seed.values() for run in runs])),
    ]
    for measure, part in table.groupby("measure", sort=False):
        lines += ["", f"## {measure}", ""]
        lines += paired.markdown(part, "system", baseline, 4)
    return "\n".join([*lines, *paired.closing(table, len(seeds))]) + "\n"


def _means(every: Sequence[Run]) -> list[list[str]]:
    """Lines of the measures' means, a line a system."""
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


def _name(run: Run) -> str:
    return str(run.info["settings"]["system"])


def _data_of(run: Run) -> tuple[Any, ...]:
    """What tells apart the data of an experiment's runs."""
    settings = run.info["settings"]
    return settings.get("mislabeled_fraction", 0.0), settings.get("num_clients", 0)
