"""The page of claims: what the papers say, and what the kept runs say of it.

    python -m tff_pmc.reports.claims_page > docs/claims.md
    python -m tff_pmc.reports.claims_page --csv > results/reproduced/claims.csv
    python -m tff_pmc.reports.claims_page --plugin=my_paper --paper=Mine RUNS

The claims are those of `tff_pmc/reports/papers/claims`; the runs are those in a folder,
`results/reproduced`. The page has the verdicts, and the table what they rest on. Both
are made of these and of nothing else.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Optional

import pandas as pd

from leaf_data.errors import one_line
from tff_pmc import project_files
from tff_pmc.reports.escape import markdown_cell
from tff_pmc.reports.pages import markdown_table
from tff_pmc.reports.papers.catalog import Claim, answer, claims
from tff_pmc.reports.papers.evidence import (
    KeptResults,
    Run,
    command,
    declared,
    read_kept,
)
from tff_pmc.reports.papers.judging import TOO_SHORT, UNTESTABLE, VERDICTS
from tff_pmc.settings.papers import PAPERS

RESULTS = str(project_files.folder("results/reproduced"))

_HOW = ". To decide it: "
_REMARK = re.compile(r" \([^()]*\.\)$")

_HEAD = """\
# Claims

What the papers say, and what our runs say of it; made by
`.venv/bin/python -m tff_pmc.reports.claims_page`. Of several numbers some are shown.
All, noise floors, runs and commands stand in
[`claims.csv`](../results/reproduced/claims.csv).

Only runs of the paper's own normalization and protocol count. The networks of DA and
PMC have no ReLU after the convolutions; runs with it decide nothing, unless two
weightings are equal. Of DA's 371 writers 105 could be had. AdaFed's runs train with
Adadelta, as the example that it names. Dual prints no number of epochs; ten count.
PMC's Table 2 is IID, its Table 4 is not; its IID runs have seed 5 for seed 2, under
which those with MD first trained and the six others diverged: IID verdicts hold where
DS trains. The 95 % interval of the mean difference over five or more paired seeds
decides:

- *reproduced*: it lies where the claim puts it; "in sign" if not with that size.
- *not reproduced*: it lies elsewhere, or has 0 and not the printed size. One part is
  enough. The papers print single runs, so by chance, maybe.
- *open*: it allows both, over all columns.
- *not run far enough*: few seeds, short runs, a part of columns or images, or none.
- *cannot be tested here*: it takes data that could not be had.

Rounds are those saved, mean over the columns that every run reached, as is the printed
mean. ± is half of the interval. "Seeds" are those that would decide, were means and
deviations those seen; equal weights take one."""


class Judged(NamedTuple):
    """A claim, and what the kept runs say of it: a row of the table.

    `ours` has our numbers, empty without one, `kept` the runs that were judged, or
    those that there are where none could be, `verdict` one of `VERDICTS`, `why` the
    reason, or how to run it, `decided_by` the names of the numbers that decide, empty
    for all, and `seeds` how many would decide, were means and deviations those seen.
    `shown` has the numbers that the page shows; it is no column of the table.
    """

    paper: str
    place: str
    says: str
    ours: str
    kept: str
    verdict: str
    why: str
    decided_by: str
    seeds: str
    shown: str


def judged(found: Iterable[Claim], results: KeptResults) -> list[Judged]:
    """Returns the claims, judged by the kept results."""
    return [_judged(claim, results) for claim in found]


def page(found: Sequence[Judged]) -> str:
    """Returns the page of claims: those judged, then the others by first reasons."""
    parts = [_HEAD, f"{len(found)} claims: {counts(row.verdict for row in found)}."]
    for paper, (title, year, _) in PAPERS.items():
        grid = [["where", "what it says", "ours", "verdict", "seeds"]]
        others: dict[str, dict[str, list[str]]] = {}
        for row in found:
            if row.paper == paper and row.verdict in (TOO_SHORT, UNTESTABLE):
                first = row.why.partition(_HOW)[0].partition("; ")[0]
                why = f"{row.verdict}: {first}"
                says = markdown_cell(_REMARK.sub("", row.says))
                says += f" [{row.seeds} seeds]" if row.seeds else ""
                others.setdefault(why, {}).setdefault(row.place, []).append(says)
            elif row.paper == paper:
                ours = row.shown or row.decided_by
                verdict = ": ".join(filter(None, (row.verdict, row.why)))
                grid.append([row.place, row.says, ours, verdict, row.seeds])
        if others or grid[1:]:
            parts.append(f"## {paper}, *{title}* ({year})")
        parts += [markdown_table(grid, left=4)] if grid[1:] else []
        for why, places in others.items():
            lines = [f"- {place}: {' '.join(says)}" for place, says in places.items()]
            parts += [f"**{why[0].upper()}{why[1:]}.**", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def counts(verdicts: Iterable[str]) -> str:
    """Returns how many claims have which verdict, in words."""
    found = collections.Counter(verdicts)
    return ", ".join(f"{found[one]} {one}" for one in VERDICTS)


def _judged(claim: Claim, results: KeptResults) -> Judged:
    found, asked = answer(claim, results)
    commands = []
    for name in asked:
        hours = claim.hours or declared(name).hours
        costs = f" (about {hours:g} hours of one core)" if hours else ""
        commands.append(command(name, claim.flags) + costs)
    undecided = found.verdict in (TOO_SHORT, UNTESTABLE)
    kept = {name: [r for r in of.runs if not found.runs] for name, of in asked.items()}
    for run in found.runs:
        kept[run.setting("experiment")].append(run)
    return Judged(
        claim.paper,
        claim.place,
        claim.says,
        ours=found.number,
        kept="; ".join(_runs(name, runs) for name, runs in kept.items() if runs),
        verdict=found.verdict,
        why=found.why + (_HOW + "; ".join(commands)) * undecided,
        decided_by="; ".join(found.decisive),
        seeds=str(found.seeds or ""),
        shown=found.short,
    )


def _runs(experiment: str, runs: Sequence[Run]) -> str:
    """Returns which runs there are: `mnist_noniid: 3 runs, seeds 0, 1, 2`."""
    # One run may be in two kept folders.
    different = {
        (
            run.label,
            run.seed,
            run.factors,
            run.image_fraction,
            run.setting("local_epochs"),
            run.setting("batch_size"),
        )
        for run in runs
    }
    seeds = seeds_of(run.seed for run in runs)
    return f"{experiment}: {count_of(len(different), 'run')}, {seeds}"


def count_of(number: int, word: str) -> str:
    """Returns a number of things: `1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def seeds_of(every: Iterable[int]) -> str:
    """Returns seeds as words: `seed 0`, `seeds 0, 1`, `seeds 0 to 4`."""
    seeds = sorted(set(every))
    if len(seeds) > 2 and seeds == [*range(seeds[0], seeds[-1] + 1)]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Prints the page of `results/reproduced`, or of the folder named; or the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tff_pmc.reports.claims_page",
        description="Judges the papers' claims by kept runs.",
    )
    parser.add_argument("folder", nargs="?", default=RESULTS, help="of the runs")
    parser.add_argument("--csv", action="store_true", help="the table, not the page")
    parser.add_argument("--paper", default="", help="the claims of this one alone")
    parser.add_argument("--plugin", default="", help="the module that registers it")
    given = parser.parse_args(arguments)
    if not os.path.isdir(given.folder):
        parser.exit(2, f"{given.folder} is no folder\n")
    try:
        if given.plugin:
            importlib.import_module(given.plugin)
    except (Exception, SystemExit) as error:  # Anybody's code, and how it ends.
        parser.exit(2, f"--plugin={given.plugin}: {one_line(error)}\n")
    try:
        results = KeptResults(read_kept(given.folder).values())
        found = judged(claims(given.paper), results)
    except ValueError as error:
        parser.exit(2, f"{error}\n")
    table = pd.DataFrame(found, columns=Judged._fields).drop(columns="shown")
    sys.stdout.write(table.to_csv(index=False) if given.csv else page(found))


if __name__ == "__main__":
    main()
