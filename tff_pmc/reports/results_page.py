"""The page of results: what of the four papers holds, and every kept run.

    .venv/bin/python -m tff_pmc.reports.results_page > results/README.md

It is made of the kept results and of the claims, and of nothing else.
"""

from __future__ import annotations

import collections
import math
import os
import statistics
import sys
from collections.abc import Sequence

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results
from tff_pmc.reports import claims_page
from tff_pmc.reports.claims_page import count_of, seeds_of
from tff_pmc.reports.escape import printable
from tff_pmc.reports.pages import markdown_table
from tff_pmc.reports.papers.catalog import Headline, claims, headlines
from tff_pmc.reports.papers.evidence import KeptResults, Measured, Run, read_kept
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
    kept = read_kept(folder)
    results = KeptResults(kept.values())
    name = os.path.basename(os.path.normpath(folder))
    parts = [
        _HEAD,
        markdown_table(_papers(results), left=1),
        markdown_table([_TITLES, *(_row(one, results) for one in headlines())], left=3),
        _AGAIN,
        "## The kept results",
        _KEPT,
        "\n".join(f"- [{one}]({name}/{one}): {_line(kept[one])}" for one in kept),
    ]
    return printable("\n\n".join(parts)) + "\n"


def _papers(results: KeptResults) -> list[list[str]]:
    """Returns the counts of the verdicts on each paper's claims."""
    grid = [["paper", "claims", *VERDICTS]]
    for paper, (title, year, _) in PAPERS.items():
        judged = claims_page.judged(claims(paper), results)
        counts = collections.Counter(one.verdict for one in judged)
        numbers = [str(counts[word]) for word in VERDICTS]
        grid.append([f"{paper}, {title} ({year})", str(len(judged)), *numbers])
    return grid


_TITLES = ["paper", "where", "number", "printed", "here"]


def _row(headline: Headline, results: KeptResults) -> list[str]:
    """Returns a number of a paper and ours, with what the runs are of."""
    ours, runs = numbers(headline, results)
    here = f"{ours} ({', '.join(_conditions(runs))})" if runs else "not run"
    return [headline.paper, headline.place, headline.says, headline.printed, here]


def numbers(headline: Headline, results: KeptResults) -> tuple[str, Sequence[Run]]:
    """Returns our number; of several seeds the median, the lowest and the highest.

    Where it is not reached under a seed it counts as later than all others. Text, and
    the runs that it is of, are empty where no seed has them.
    """
    try:
        values, runs = headline.numbers(results)
    except RecordError:
        return "", []
    if not values:
        return "", []

    def text(value: float) -> str:
        return headline.form.format(value) if value < math.inf else "not reached"

    middle = text(statistics.median(values))
    if len(values) > 1:
        span = f"{text(min(values))} to {text(max(values))}"
        middle += f" ({span}, {len(values)} seeds)"
    return middle, runs


def _conditions(runs: Sequence[Run]) -> list[str]:
    """Returns how long the runs are, and what sets them apart from the paper's."""
    clients = sorted({run.clients for run in runs})
    texts = [_rounds(runs), f"{' or '.join(map(str, clients))} clients"]
    texts += ["data incomplete"] * any(run.data_caveat for run in runs)
    fractions = {run.image_fraction for run in runs}
    texts += [f"{fraction:g} of the images" for fraction in fractions if fraction < 1]
    texts += sorted({run.other_reading for run in runs} - {""})
    return texts + _factors(runs)


def _rounds(runs: Sequence[Run]) -> str:
    lengths = sorted({run.length for run in runs})
    least = f"{lengths[0]} to " if len(lengths) > 1 else ""
    return least + count_of(lengths[-1], "round")


def _factors(runs: Sequence[Run]) -> list[str]:
    """Returns the types of the products' factors, where they are not float32."""
    modes = {run.factors for run in runs} - {None}
    return sorted(f"{'bfloat16' if m == 'BF16' else m} factors" for m in modes)


def _line(results: Results) -> str:
    """Returns what ran in a kept folder, for how long, and its remark."""
    facts, folder = ["The runs are not kept"], Measured(results)
    runs = [Run(folder, row) for row in results.runs.to_dict("records")]
    if runs:
        number = f"{count_of(len(runs), 'run')} of {_rounds(runs)}"
        facts = [number, seeds_of(results.seeds), *_factors(runs)]
        gpus = {str(run.row["versions"].get("gpu") or "") for run in runs}
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
