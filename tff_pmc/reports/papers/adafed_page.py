"""AdaFed's page: the numbers read off its curves, and its claims judged by them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional

import pandas as pd

from tff_pmc.reports import REPORTS, escape, grids
from tff_pmc.reports.papers.adafed_figures import FIGURES
from tff_pmc.reports.papers.adafed_judges import FEDAVG
from tff_pmc.reports.papers.claim_tables import claims
from tff_pmc.reports.read import Run, conditions_of

ROUNDS = (1, 2, 3, 5, 10, 12, 15, 20)
TARGETS = (80, 90, 95)


def write(
    runs: Sequence[Run], folder: str, *, strictly_above: Optional[bool] = None
) -> str:
    """Writes `adafed.csv` and `adafed.md`.

    Args:
        runs: the runs of an experiment; FedAvg is the baseline of the others.
        folder: where the files go; they are replaced.
        strictly_above: not used: the rounds are those of at least the target.

    Returns:
        The tables, as text for the terminal.
    """
    experiment = runs[0].settings["experiment"]
    table = pd.DataFrame(_rows(runs))
    escape.write_csv(table, os.path.join(folder, "adafed.csv"), index=False)
    head = [str(name) for name in table]
    numbers = [head, *([str(v) for v in row] for row in table.to_numpy())]
    drawn = [
        f"`figure{number}.png` is Figure {number}: {published.shows} of the server's "
        "model after each round"
        for number, published in FIGURES.items()
        if published.experiment == experiment
    ]
    notes = [
        f"AdaFed's simulation {experiment[-1]}. {'; '.join(drawn)}. Of the paper's "
        "curves there are no numbers but those in its claims.",
        *conditions_of(runs),
        f"`lead`: the mean difference to {FEDAVG} over rounds 1 to 5, and over all, "
        "in points of accuracy. One run each and no noise floor: a lead of a point or "
        "two shows nothing; --seeds shows what does.",
        "`macro F1`: the mean of the classes' F1 on the server's images, after the "
        "last round.",
    ]
    path = os.path.join(folder, "adafed.md")
    title = f"{experiment}: accuracy on the reported images"
    parts: dict[str, grids.Grid] = {"Round by round": numbers}
    said = _claims(runs, experiment)
    if len(said) > 1:
        parts["What the paper claims of this simulation"] = said
    return grids.write(path, title, notes, parts)


def _claims(runs: Sequence[Run], experiment: str) -> list[list[str]]:
    """The claims that this experiment's runs alone can judge."""
    lines = [["place", "claim", "here", "verdict", "why"]]
    for claim in claims("AdaFed"):
        if claim.experiments == (experiment,):
            lines.append([claim.place, claim.says, *claim.judge({experiment: runs})])
    return lines


def _rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    base_of = {run.note: run.rounds["accuracy"] for run in runs if run.system == FEDAVG}
    rows = []
    for run in runs:
        accuracy = run.rounds["accuracy"]
        row: dict[str, Any] = {"system": run.label}
        for number in ROUNDS:
            if number <= len(accuracy):
                row[f"round {number}"] = round(float(accuracy[number - 1]), 4)
        for target in TARGETS:
            reached = accuracy.index[accuracy >= target / 100]
            row[f"to {target} %"] = str(reached[0] + 1) if len(reached) else "-"
        base = base_of.get(run.note)
        if base is not None:
            common = min(len(base), len(accuracy))
            lead = 100 * (accuracy[:common] - base[:common])
            row["lead 1-5"] = round(float(lead[:5].mean()), 2)
            row["lead"] = round(float(lead.mean()), 2)
        if "macro_f1" in run.rounds:
            row["macro F1"] = round(float(run.rounds["macro_f1"].iloc[-1]), 4)
        rows.append(row)
    return rows


REPORTS.register("adafed_page", write)
