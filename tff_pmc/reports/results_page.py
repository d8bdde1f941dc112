"""The page of kept results, which `claims_page` prints with `--results`."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterable, Mapping

import pandas as pd

from tff_pmc.escape import printable
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results
from tff_pmc.reports.page_model import markdown_table
from tff_pmc.reports.paper import PAPERS
from tff_pmc.reports.papers.claim_registry import Headline, headlines
from tff_pmc.reports.papers.judging import VERDICTS, count_verdicts
from tff_pmc.reports.papers.paper_runs import kept_runs

_HEAD = """\
# Results

The runs that are kept here, and what they say of the four papers. This page is made
by `.venv/bin/python -m tff_pmc.reports.claims_page --results`.
[Claims](../docs/claims.md) explains the verdicts and lists them one by one; [the four
papers](../docs/fidelity.md) says what was not run. [`paper/`](paper) has the tables
that the papers print.

## Verdicts on the papers' claims"""


_NUMBERS = """\
## A few numbers

"Ours" is the median over the seeds, with the lowest and the highest in brackets; the
pages of the papers have means instead. Accuracy and F1 are fractions: .01 is one
point. Some runs are shorter than the paper's or have fewer clients, as the last
brackets say."""


_AGAIN = """\
## Make the tables and figures again

    PYTHON=.venv/bin/python
    $PYTHON -m tff_pmc.experiments.kept remake results/reproduced

makes every table and figure of the folders below from the recorded runs, without
training, in a few minutes, and names the files that changed. A test checks that the
tables stay the same; of figures the layout of a text may change."""


_KEPT = """\
Each folder has the records, tables and plots of one command; of several seeds the
paper's own table is in `seed_0/`, for the first of them. Its `experiment.json`
has that command, and names the files that later versions did not make again, with the
reason. Hours are those of training and testing, added up over the runs, several of
which may have run at the same time. "bfloat16 factors": the processor rounded the
factors of matrix products to bfloat16. Folders that end in `_relu` have ReLU after
the convolutions, which the papers' networks do not have."""


def results_page(
    folders: Mapping[str, Results], claims_table: pd.DataFrame, kept: pd.DataFrame
) -> str:
    """Returns the page of kept results, as Markdown.

    Args:
        folders: path of a kept folder, from that of the page -> its results.
        claims_table: the verdicts on all claims, as `claims_page.claims_table` returns
            them.
        kept: the runs of all folders, as `paper_runs.kept_runs` returns them.
    """
    lines = [
        f"- [{posixpath.basename(path)}]({path}): {_folder_summary(results)}"
        for path, results in folders.items()
    ]
    numbers = [["paper", "where", "number", "paper's", "ours"]]
    for headline in headlines():
        row = [headline.paper, headline.place, headline.says, headline.printed]
        numbers.append([*row, our_value(headline, kept)])
    parts = [
        _HEAD,
        markdown_table(_verdict_counts(claims_table), left=1),
        _NUMBERS,
        markdown_table(numbers, left=3),
        _AGAIN,
        "## The kept results",
        _KEPT,
        "\n".join(lines),
    ]
    return printable("\n\n".join(parts)) + "\n"


def _verdict_counts(table: pd.DataFrame) -> list[list[str]]:
    """Returns the counts of the verdicts on each paper's claims."""
    grid = [["paper", "claims", *VERDICTS]]
    for paper, verdicts in table.groupby("paper", sort=False)["verdict"]:
        title, year, _ = PAPERS[paper]
        head = f"{paper}, {title} ({year})"
        grid.append([head, *map(str, [len(verdicts), *count_verdicts(verdicts)])])
    return grid


def our_value(headline: Headline, kept: pd.DataFrame) -> str:
    """Returns our number with what its runs are of, or that none is there.

    With several seeds it is the median, the lowest and the highest. A target that is
    not reached under a seed counts as later than all others.
    """
    try:
        values, runs = headline.evaluate(kept)
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
    return (f"{least} to " if least < most else "") + pluralize(most, "round")


def _factors(runs: pd.DataFrame) -> list[str]:
    """Returns the types of the products' factors, where they are not float32."""
    return [f"{mode} factors" for mode in sorted({*runs["factors"]} - {""})]


def _folder_summary(results: Results) -> str:
    """Returns what ran in a kept folder, for how long, and its remark."""
    facts, runs = ["The runs are not kept"], kept_runs([results])
    if len(runs):
        number = f"{pluralize(len(runs), 'run')} of {_rounds(runs)}"
        facts = [number, seeds_text(results.seeds), *_factors(runs)]
        gpus = {str(versions.get("gpu") or "") for versions in runs["versions"]}
        facts += [f"on {gpu}" for gpu in sorted(gpus - {""})]
        known = hours(results)
        facts.append("hours not recorded" if known is None else f"{known:g} hours")
    return f"{', '.join(facts)}. {results.about.get('remark', '')}".rstrip()


def hours(results: Results) -> float | None:
    """Returns the time that runs took, to two digits; None if nobody recorded it."""
    timing = results.timing[["train", "test"]]
    if not len(timing):
        return results.about.get("hours")
    return float(f"{timing.sum().sum() / 3600:.2g}")


def pluralize(number: int, word: str) -> str:
    """Returns a number of things: `1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def seeds_text(seeds_of_runs: Iterable[int]) -> str:
    """Returns seeds as words: `seed 0`, `seeds 0, 1`, `seeds 0 to 4`."""
    seeds = sorted(set(seeds_of_runs))
    if len(seeds) > 2 and seeds == [*range(seeds[0], seeds[-1] + 1)]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"
