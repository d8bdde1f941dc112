"""The command that judges the papers' claims, and the page and table of the claims.

    python -m tff_pmc.reports.claims_page > docs/claims.md
    python -m tff_pmc.reports.claims_page --csv > results/reproduced/claims.csv
    python -m tff_pmc.reports.claims_page --results > results/README.md
    python -m tff_pmc.reports.claims_page --plugin=my_paper --paper=Mine RUNS

The claims and headline numbers are those of `tff_pmc/reports/papers/claims`; the runs
are those in a folder, `results/reproduced`. The page of claims has the verdicts, the
table also their evidence, and the page of results (`results_page`) every kept folder.
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

from leaf_data.errors import error_summary
from leaf_data.formats.data_files import expand_path
from tff_pmc import project_files
from tff_pmc.escape import markdown_cell
from tff_pmc.reports.page_model import markdown_table
from tff_pmc.reports.paper import PAPERS
from tff_pmc.reports.papers.claim_registry import Claim, claims, judge_claim
from tff_pmc.reports.papers.judging import TOO_SHORT, UNTESTABLE, count_verdicts
from tff_pmc.reports.papers.paper_experiments import command, declared_experiment
from tff_pmc.reports.papers.paper_runs import kept_runs, read_kept
from tff_pmc.reports.results_page import pluralize, results_page, seeds_text
from tff_pmc.reports.statistics.rounds_to_target import REACH_RULES

RESULTS = str(project_files.folder("results/reproduced"))

_REMARK = re.compile(r" \([^()]*\.\)$")

_HEAD = """\
# Claims

What the four papers claim of their results, claim by claim, and what our runs say of
it. [The four papers](fidelity.md) has an overview, and each paper a page with the
reasons. This page is made by `.venv/bin/python -m tff_pmc.reports.claims_page`."""

_GUIDE = """\
## How to read it

`PMC-7` is the seventh claim of PMC; in brackets is the section, table or figure where
the paper makes it. *What the paper says* is in our words, and what follows "Here:" is
how we made it measurable.

*Ours (paper)* is a mean over seeds ± half of its 95 % confidence interval, and in
brackets the number of the paper's table or text. A difference is taken between two
runs with the same seed, which share data, initial weights, cohorts and batches. "0.4 ±
0.6 rounds sooner (paper: 1.6)" means: the targets are reached 0.4 rounds earlier than
with DS alone (FedAvg), or than with the other weighting that the claim names. This is
averaged over those columns of the paper's table that all of our runs reach; in the
same columns the paper's table has 1.6 rounds earlier. A column is a share of the
devices (clients) at a target: the round in which that share has reached that accuracy,
each device on its own test examples. Points are hundredths of accuracy. Where numbers
have signs, + means that what is named first has more. If there are many, only those
that decide are shown, and "2 more" counts the others;
[claims.csv](../results/reproduced/claims.csv) has all of them, with noise floors (how
far apart two runs of the baseline are that differ in their seeds alone), the runs, and
the kept folders that they are in.

DS, LD and MD are the criteria dataset size, label diversity and model divergence (PMC
writes MW for MD); DS≻LD≻MD, or DS,LD,MD, is an ordering with DS first. DA's Low, Mid
and High are means of two columns of its Table 1: the rounds until 20 and 30 %, 40 and
50 %, or 70 and 75 % of the devices reach the target.

*Seeds needed* is the number of seeds that would decide the claim, if the mean and the
deviation stayed what they are now. It is 1 where two weightings are equal to the bit.

Verdicts:

- **reproduced**: with five seeds or more, the 95 % interval lies where the claim puts
  the number. "The same sign, another size": the paper's number is outside the
  interval.
- **not reproduced**: the interval excludes the claim, or it includes 0 and excludes
  the paper's number. A claim of several parts fails with one of them. The papers
  report single runs, so some of their numbers may be chance.
- **open**: with five seeds or more and in all columns, the interval still includes
  both outcomes.
- **not run far enough**: our runs are too few or too short, or have another network
  than the paper's; or they reach only a part of the columns, which does not decide. A
  part that excludes the claim decides it; its row then has "6 of 18 columns". A part
  never decides a claim of a size, because more rounds may be saved where more are
  needed.
- **cannot be tested here**: it needs data that we could not obtain.

Below claims that were not run far enough is the command for such runs, with five seeds;
after them a claim may still be open. DIR is the folder of the data, and the hours of
DA's are for 105 writers ([how to take them](da.md#run-it))."""

_DIFFERENCES = """\
## Where our runs differ from the papers

- Only runs with the paper's normalization and protocol count.
- The networks of DA and PMC have no ReLU after the convolutions
  ([why](pmc.md#which-network-is-it)). Runs with ReLU decide a claim only where two
  weightings are equal.
- A device reaches a target with an accuracy {rule}: `--reach`. PMC's tables probably
  count [above it](pmc.md#at-least-the-target-or-above-it), as its published code does.
- DA has 371 writers of FEMNIST; we could obtain 105. DS needs fewer rounds here, so
  that fewer can be saved; [DA's page](da.md#results) has them as shares of DS's rounds.
- PMC's IID runs (Table 2) have the seeds 0, 1, 3, 4 and 5. Under seed 2 DS and five
  other weightings diverged, and the three that begin with MD did not. So the verdicts
  on Table 2 hold where DS trains. Table 4 is non-IID.
- AdaFed's Algorithm 1 writes plain gradient descent. Our runs use Adadelta, as does
  the Keras example from which AdaFed takes its network.
- Dual does not say how many epochs it ran; ours have ten. Each seed deals CIFAR-10's
  training images at random to five batches, where the paper has the published ones."""


def claims_table(claims: Iterable[Claim], kept: pd.DataFrame) -> pd.DataFrame:
    """Judges claims by the kept runs; returns one row per claim.

    The columns are `claim` (`PMC-7`), `paper`, `place`, `says`, `ours` (our numbers),
    `kept` (the judged runs, or the available ones if none could be judged), `verdict`,
    `why` (its reason), `to_run` (the command for longer or other runs, if the verdict
    is that they are needed or that the data is missing), `decided_by`, `seeds` and
    `shown` (as in `Judgment`), and `folders`, the names of the kept folders of the runs
    in `kept`. `shown` has the numbers that the page shows; claims.csv does not have it.
    """
    return pd.DataFrame(
        [_row_of_claim(claim, kept) for claim in claims], columns=_COLUMNS
    )


_COLUMNS = ["claim", "paper", "place", "says", "ours", "kept", "verdict", "why"]
_COLUMNS += ["to_run", "decided_by", "seeds", "folders", "shown"]


def claims_markdown(table: pd.DataFrame, reach: str = "at_least") -> str:
    """Returns the page of claims as Markdown, one section per paper.

    Judged claims are rows of a table; the others are listed below it by their first
    reason. `reach` is the rule by which a device reaches a target, in all runs.
    """
    counts = count_verdicts(table["verdict"])
    words = ", ".join(f"{count} {word}" for word, count in counts.items())
    parts = [_HEAD, f"**{len(table)} claims: {words}.**", _GUIDE]
    if any(map(_page_link, table["paper"])):
        parts.append(_DIFFERENCES.format(rule=REACH_RULES[reach]))
    named = table["claim"] + " (" + table["place"] + ")"
    for paper, claims_of_paper in table.assign(named=named).groupby(
        "paper", sort=False
    ):
        title, year, _ = PAPERS[paper]
        parts += [f"## {paper}", f"*{title}* ({year}){_page_link(str(paper))}"]
        others = claims_of_paper["verdict"].isin([TOO_SHORT, UNTESTABLE])
        grid = [["claim", "what the paper says", "ours (paper)", "verdict"]]
        grid[0].append("seeds needed")
        for row in claims_of_paper[~others].itertuples():
            verdict = ": ".join(filter(None, (row.verdict, row.why)))
            ours = row.shown or row.decided_by
            grid.append([row.named, row.says, ours, verdict, row.seeds])
        parts += [markdown_table(grid, left=4)] if grid[1:] else []
        first = claims_of_paper["why"].str.partition("; ")[0]
        reasons = claims_of_paper["verdict"] + ": " + first
        for why, claims_of_reason in claims_of_paper[others].groupby(
            reasons, sort=False
        ):
            parts.append(f"**{why[0].upper()}{why[1:]}.**")
            parts.append("\n".join(claims_of_reason.apply(_claim_line, axis=1)))
            if claims_of_reason["verdict"].eq(TOO_SHORT).any():
                takes = claims_of_reason.groupby("to_run", sort=False)["claim"]
                parts += [
                    f"To run {', '.join(x)} far enough: {how}." for how, x in takes
                ]
    return "\n\n".join(parts) + "\n"


def _page_link(paper: str) -> str:
    """Returns the link to the page of one of the four papers."""
    name = {"Dual": "dual_criterion"}.get(paper, paper.lower())
    there = project_files.folder("docs") / f"{name}.md"
    return f": [results and reasons]({there.name})" if there.is_file() else ""


def _claim_line(row: pd.Series[Any]) -> str:
    """Returns what a claim says without its last remark, and the seeds it takes."""
    seeds = f" [{row['seeds']} seeds needed]" if row["seeds"] else ""
    return f"- {row['named']}: {markdown_cell(_REMARK.sub('', row['says']))}{seeds}"


def _row_of_claim(claim: Claim, kept: pd.DataFrame) -> dict[str, str]:
    judgment = judge_claim(claim, kept)
    commands = []
    for name in claim.experiments:
        hours = claim.hours or declared_experiment(name).hours
        costs = f" (about {hours:g} hours of one core)" if hours else ""
        commands.append(f"`{command(name, claim.flags)}`{costs}")
    undecided = judgment.verdict in (TOO_SHORT, UNTESTABLE)
    runs = judgment.runs.groupby("experiment", sort=False) if len(judgment.runs) else []
    return {
        **claim._asdict(),
        **judgment._asdict(),
        "claim": claim.id,
        "paper": claim.paper,
        "folders": "; ".join(dict.fromkeys(judgment.runs["folder_name"])),
        "kept": "; ".join(
            f"{name}: {_runs(runs_of_experiment)}" for name, runs_of_experiment in runs
        ),
        "to_run": "; ".join(commands) * undecided,
    }


def _runs(runs: pd.DataFrame) -> str:
    """Returns which runs there are: `3 runs, seeds 0, 1, 2`."""
    # One run may be in two kept folders.
    told_apart = ["label", "seed", "factors", "image_fraction"]
    told_apart += ["local_epochs", "batch_size"]
    there = [name for name in told_apart if name in runs]
    count = len(runs[there].drop_duplicates())
    return f"{pluralize(count, 'run')}, {seeds_text(runs['seed'])}"


def main(arguments: Optional[Sequence[str]] = None) -> None:
    """Prints a page of `results/reproduced`, or of the folder named; or the table."""
    parser = argparse.ArgumentParser(
        prog="python -m tff_pmc.reports.claims_page",
        description="Judges the papers' claims by kept runs.",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=expand_path,
        default=RESULTS,
        help="folder of kept results",
    )
    parser.add_argument(
        "--csv", action="store_true", help="print the table of claims as CSV"
    )
    parser.add_argument(
        "--results", action="store_true", help="print the page of results"
    )
    parser.add_argument("--paper", default="", help="only the claims of this paper")
    words = "whether devices reach a target at or above it (default: %(default)s)"
    parser.add_argument("--reach", choices=REACH_RULES, default="at_least", help=words)
    parser.add_argument("--plugin", default="", help="module that registers the paper")
    options = parser.parse_args(arguments)
    if not os.path.isdir(options.folder):
        parser.exit(2, f"{options.folder} is not a folder\n")
    try:
        if options.plugin:
            importlib.import_module(options.plugin)
    except (Exception, SystemExit) as error:  # Anybody's code, and how it ends.
        parser.exit(2, f"--plugin={options.plugin}: {error_summary(error)}\n")
    try:
        folders = read_kept(options.folder)
        kept = kept_runs(folders.values(), options.reach)
        if options.results:
            name = os.path.basename(os.path.abspath(options.folder))
            by_path = {f"{name}/{folder}": folders[folder] for folder in folders}
            text = results_page(by_path, claims_table(claims(), kept), kept)
        else:
            table = claims_table(claims(options.paper), kept)
            named = table.drop(columns="shown").rename(
                columns={"seeds": "seeds_needed"}
            )
            text = (
                named.to_csv(index=False)
                if options.csv
                else claims_markdown(table, options.reach)
            )
    except ValueError as error:
        parser.exit(2, f"{error}\n")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
