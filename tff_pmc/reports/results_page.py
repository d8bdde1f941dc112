"""The page of results: what of the four papers holds, and every kept run.

    .venv/bin/python -m tff_pmc.reports.results_page > results/README.md

It is made of the kept results and of the claims, and of nothing else.
"""

from __future__ import annotations

import math
import os
import sys

import pandas as pd

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results
from tff_pmc.reports import claims_page
from tff_pmc.reports.claims_page import count_of, seeds_of
from tff_pmc.reports.escape import printable
from tff_pmc.reports.pages import markdown_table
from tff_pmc.reports.papers.catalog import Headline, claims, headlines
from tff_pmc.reports.papers.evidence import kept_runs, read_kept
from tff_pmc.reports.papers.judging import VERDICTS
from tff_pmc.settings.papers import PAPERS

_HEAD = """\
# Results

What of the four papers holds in the runs kept here. Made by
`.venv/bin/python -m tff_pmc.reports.results_page > results/README.md`, nothing by hand.
[Claims](../docs/claims.md) judges each, and [the four papers](../docs/fidelity.md)
says what was not run.

`paper/` has the published tables. Fewer than five seeds decide
nothing. Numbers of several seeds are medians."""

_AGAIN = """\
## Make them again

    PYTHON=.venv/bin/python
    $PYTHON -m tff_pmc.experiments.kept remake results/reproduced

makes every table and figure below from its records, without training; a test holds the
tables to it."""

_KEPT = """\
Each folder has the records, tables and plots of one command, which stands in its
`experiment.json`, with which files are as the run made them, and why. Hours are of
training and testing, added up over runs, of which several may have run at a time."""


def page(folder: str) -> str:
    """Returns the page of the kept results in a folder, of the name that links need."""
    folders = read_kept(folder)
    kept = kept_runs(folders.values())
    name = os.path.basename(os.path.normpath(folder))
    lines = [f"- [{x}]({name}/{x}): {_line(of)}" for x, of in folders.items()]
    numbers = [["paper", "where", "number", "printed", "here"]]
    for one in headlines():
        row = [one.paper, one.place, one.says, one.printed]
        numbers.append([*row, here(one, kept)])
    parts = [
        _HEAD,
        markdown_table(_papers(kept), left=1),
        markdown_table(numbers, left=3),
        _AGAIN,
        "## The kept results",
        _KEPT,
        "\n".join(lines),
    ]
    return printable("\n\n".join(parts)) + "\n"


def _papers(kept: pd.DataFrame) -> list[list[str]]:
    """Returns the counts of the verdicts on each paper's claims."""
    grid = [["paper", "claims", *VERDICTS]]
    table = claims_page.judged(claims(), kept)
    for paper, verdicts in table.groupby("paper", sort=False)["verdict"]:
        title, year, _ = PAPERS[paper]
        counts = verdicts.value_counts().reindex(VERDICTS, fill_value=0)
        head = f"{paper}, {title} ({year})"
        grid.append([head, *map(str, [len(verdicts), *counts])])
    return grid


def here(headline: Headline, kept: pd.DataFrame) -> str:
    """Returns our number with what its runs are of, or that none is there.

    Of several seeds it is the median, the lowest and the highest. Where it is not
    reached under a seed it counts as later than all others.
    """
    try:
        values, runs = headline.of(kept)
    except RecordError:
        return "not run"
    if not len(values):
        return "not run"

    def text(value: float) -> str:
        return headline.form.format(value) if value < math.inf else "not reached"

    middle = text(values.median())
    if len(values) > 1:
        span = f"{text(values.min())} to {text(values.max())}"
        middle += f" ({span}, {len(values)} seeds)"
    return f"{middle} ({', '.join(_conditions(runs))})"


def _conditions(runs: pd.DataFrame) -> list[str]:
    """Returns how long the runs are, and what sets them apart from the paper's."""
    clients = sorted({*runs["data_clients"]})
    texts = [_rounds(runs), f"{' or '.join(map(str, clients))} clients"]
    texts += ["data incomplete"] * bool(runs["data_caveat"].any())
    fractions = sorted({*runs["image_fraction"]} - {1.0})
    texts += [f"{fraction:g} of the images" for fraction in fractions]
    texts += sorted({*runs["other_reading"]} - {""})
    return texts + _factors(runs)


def _rounds(runs: pd.DataFrame) -> str:
    least, most = runs["length"].min(), runs["length"].max()
    return (f"{least} to " if least < most else "") + count_of(most, "round")


def _factors(runs: pd.DataFrame) -> list[str]:
    """Returns the types of the products' factors, where they are not float32."""
    return [f"{mode} factors" for mode in sorted({*runs["factors"]} - {""})]


def _line(results: Results) -> str:
    """Returns what ran in a kept folder, for how long, and its remark."""
    facts, runs = ["The runs are not kept"], kept_runs([results])
    if len(runs):
        number = f"{count_of(len(runs), 'run')} of {_rounds(runs)}"
        facts = [number, seeds_of(results.seeds), *_factors(runs)]
        gpus = {str(versions.get("gpu") or "") for versions in runs["versions"]}
        facts += [f"on {gpu}" for gpu in sorted(gpus - {""})]
        seconds = results.timing[["train", "test"]].sum().sum()
        hours = f"{float(f'{seconds / 3600:.2g}'):g} hours"
        facts.append(hours if len(results.timing) else "hours not recorded")
    return f"{', '.join(facts)}. {results.about.get('remark', '')}".rstrip()


def main() -> None:
    """Prints the page of `results/reproduced`, or of the folder that is named."""
    folder = sys.argv[1] if len(sys.argv) > 1 else claims_page.RESULTS
    try:
        sys.stdout.write(page(folder))
    except RecordError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
