"""AdaFed's page: the numbers read off its curves, and its claims judged by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tff_pmc.reports import REPORTS, Report, pages
from tff_pmc.reports.papers.adafed_claims import CLAIMS
from tff_pmc.reports.papers.adafed_figures import FIGURES, numbers_of
from tff_pmc.reports.papers.adafed_judges import FEDAVG
from tff_pmc.reports.read import Run, conditions_of

ROUNDS = (1, 2, 3, 5, 10, 12, 15, 20)
TARGETS = (80, 90, 95)


def report(runs: Sequence[Run]) -> Report:
    """Returns `adafed.csv` and `adafed.md`; FedAvg is the baseline of the others."""
    experiment = runs[0].settings["experiment"]
    table = pd.DataFrame(_rows(runs))
    head = [str(name) for name in table]
    numbers = [head, *([str(v) for v in row] for row in table.to_numpy())]
    drawn = [
        f"`figure{number}.png` is Figure {number}: {FIGURES[number].shows} of the "
        "server's model after each round"
        for number in numbers_of(experiment)
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
    title = f"{experiment}: accuracy on the reported images"
    parts: dict[str, pages.Grid] = {"Round by round": numbers}
    claims = _claims(runs, experiment)
    if len(claims) > 1:
        parts["What the paper claims of this simulation"] = claims
    text, page = pages.of_grids(title, notes, parts)
    return Report(text, {"adafed": table}, {"adafed": page})


def _claims(runs: Sequence[Run], experiment: str) -> list[list[str]]:
    """The claims that this experiment's runs alone can judge."""
    lines = [["place", "claim", "here", "verdict", "why"]]
    for claim in CLAIMS:
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


REPORTS.register("adafed_page", report)
