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
import importlib
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Optional

import pandas as pd

from leaf_data.errors import one_line
from tff_pmc import project_files
from tff_pmc.reports.escape import markdown_cell
from tff_pmc.reports.pages import markdown_table
from tff_pmc.reports.papers.catalog import Claim, answer, claims
from tff_pmc.reports.papers.evidence import (
    command,
    declared,
    kept_runs,
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


def judged(found: Iterable[Claim], kept: pd.DataFrame) -> pd.DataFrame:
    """Returns a row a claim: what it says, and what the kept runs say of it.

    The columns are `paper`, `place`, `says`, `ours` (our numbers), `kept` (the runs
    that were judged, or those that there are where none could be), `verdict`, `why`
    (the reason, or how to run it), `decided_by`, `seeds` and `shown`, as in `Answer`;
    `shown` has the numbers that the page shows, and is no column of the table.
    """
    return pd.DataFrame([_judged(claim, kept) for claim in found], columns=_COLUMNS)


_COLUMNS = ["paper", "place", "says", "ours", "kept", "verdict", "why"]
_COLUMNS += ["decided_by", "seeds", "shown"]


def page(table: pd.DataFrame) -> str:
    """Returns the page of claims: those judged, then the others by first reasons."""
    counts = table["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    parts = [_HEAD, f"{len(table)} claims: {words}."]
    for paper, of in table.groupby("paper", sort=False):
        title, year, _ = PAPERS[paper]
        parts.append(f"## {paper}, *{title}* ({year})")
        others = of["verdict"].isin([TOO_SHORT, UNTESTABLE])
        grid = [["where", "what it says", "ours", "verdict", "seeds"]]
        for row in of[~others].itertuples():
            verdict = ": ".join(filter(None, (row.verdict, row.why)))
            ours = row.shown or row.decided_by
            grid.append([row.place, row.says, ours, verdict, row.seeds])
        parts += [markdown_table(grid, left=4)] if grid[1:] else []
        first = of["why"].str.partition(_HOW)[0].str.partition("; ")[0]
        reasons = of["verdict"] + ": " + first
        for why, of_reason in of[others].groupby(reasons, sort=False):
            parts.append(f"**{why[0].upper()}{why[1:]}.**")
            lines = of_reason.apply(_line, axis=1).groupby(
                of_reason["place"], sort=False
            )
            parts.append("\n".join(f"- {p}: {' '.join(says)}" for p, says in lines))
    return "\n\n".join(parts) + "\n"


def _line(row: pd.Series[Any]) -> str:
    """Returns what a claim says without its last remark, and the seeds it takes."""
    seeds = f" [{row['seeds']} seeds]" if row["seeds"] else ""
    return markdown_cell(_REMARK.sub("", row["says"])) + seeds


def _judged(claim: Claim, kept: pd.DataFrame) -> dict[str, str]:
    found = answer(claim, kept)
    commands = []
    for name in claim.experiments:
        hours = claim.hours or declared(name).hours
        costs = f" (about {hours:g} hours of one core)" if hours else ""
        commands.append(command(name, claim.flags) + costs)
    undecided = found.verdict in (TOO_SHORT, UNTESTABLE)
    runs = found.runs.groupby("experiment", sort=False) if len(found.runs) else []
    return {
        **claim._asdict(),
        **found._asdict(),
        "kept": "; ".join(f"{name}: {_runs(of)}" for name, of in runs),
        "why": found.why + (_HOW + "; ".join(commands)) * undecided,
    }


def _runs(runs: pd.DataFrame) -> str:
    """Returns which runs there are: `3 runs, seeds 0, 1, 2`."""
    # One run may be in two kept folders.
    told_apart = ["label", "seed", "factors", "image_fraction"]
    told_apart += ["local_epochs", "batch_size"]
    there = [name for name in told_apart if name in runs]
    count = len(runs[there].drop_duplicates())
    return f"{count_of(count, 'run')}, {seeds_of(runs['seed'])}"


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
        kept = kept_runs(read_kept(given.folder).values())
        table = judged(claims(given.paper), kept)
    except ValueError as error:
        parser.exit(2, f"{error}\n")
    text = table.drop(columns="shown").to_csv(index=False) if given.csv else page(table)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
