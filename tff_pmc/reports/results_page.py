"""The page of results: what of the four papers holds, and every kept run.

    .venv/bin/python -m tff_pmc.reports.results_page > results/README.md

It is made of the kept records, of `kept.json` beside them and of the claims, and of
nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from tff_pmc.record import read
from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.reports import claims_page
from tff_pmc.reports.claims_page import count_of, factors_mode, seeds_of
from tff_pmc.reports.escape import printable
from tff_pmc.reports.kept import KeptFolder, kept_folders
from tff_pmc.reports.pages import markdown_table
from tff_pmc.reports.papers.claim_tables import claims, headline_numbers
from tff_pmc.reports.papers.headlines import numbers
from tff_pmc.reports.papers.judging import VERDICTS
from tff_pmc.reports.papers.own_reading import image_fraction, other_reading
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
    $PYTHON -m tff_pmc.experiments.remake results/reproduced
    $PYTHON -m tff_pmc.experiments.remake results/reproduced/quickstart --output_dir=DIR

makes every table and figure below from its records, without training; a test holds the
tables to it."""

_KEPT = """\
Each folder has the records, tables and plots of one command. `reproduced/kept.json` has
the command, and which files are as the run made them, and why. Hours are of training
and testing, added up over runs, of which several may have run at a time."""


def page(folder: str) -> str:
    """Returns the page of the kept results in a folder, of the name that links need."""
    folders = kept_folders(folder)
    runs = {kept.name: kept.runs() for kept in folders}
    every = [run for of_folder in runs.values() for run in of_folder]
    verdicts = [(one.paper, one.verdict) for one in claims_page.judged(claims(), every)]
    name = os.path.basename(os.path.normpath(folder))
    parts = [
        _HEAD,
        markdown_table(_papers(verdicts), left=1),
        markdown_table(_headlines(claims_page.by_experiment(every)), left=3),
        _AGAIN,
        "## The kept results",
        _KEPT,
        "\n".join(_line(kept, runs[kept.name], name) for kept in folders),
    ]
    return printable("\n\n".join(parts)) + "\n"


def _papers(verdicts: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Returns the counts of the verdicts on each paper's claims."""
    grid = [["paper", "claims", *VERDICTS]]
    for paper, (title, year, _) in PAPERS.items():
        own = [verdict for of, verdict in verdicts if of == paper]
        counts = [str(own.count(word)) for word in VERDICTS]
        grid.append([f"{paper}, {title} ({year})", str(len(own)), *counts])
    return grid


def _headlines(every: Mapping[str, Sequence[Run]]) -> list[list[str]]:
    grid = [["paper", "where", "number", "printed", "here"]]
    for headline in headline_numbers():
        here, used = numbers(headline, every.get(headline.experiment, []))
        ours = f"{here or 'not run'}{_part(used) if used else ''}"
        said = (headline.paper, headline.place, headline.says)
        grid.append([*said, headline.printed, ours])
    return grid


def _part(runs: Sequence[Run]) -> str:
    """Says where the runs are not the paper's experiment, but a part of it."""
    fractions = {image_fraction(run) for run in runs}
    sizes = sorted({int(run.data.get("clients", 0)) for run in runs} - {0})
    texts = [_rounds(runs), f"{' or '.join(map(str, sizes))} clients"]
    if read.data_caveat(runs):
        texts.append("data incomplete")
    texts += [f"{fraction:g} of the images" for fraction in fractions if fraction < 1]
    texts += sorted({other_reading(run).partition(",")[0] for run in runs} - {""})
    texts += [f"{word} factors" for word in _factors(runs)]
    return f" ({', '.join(texts)})"


def _rounds(runs: Sequence[Run]) -> str:
    lengths = sorted({len(run.rounds) for run in runs})
    least = f"{lengths[0]} to " if len(lengths) > 1 else ""
    return least + count_of(lengths[-1], "round")


def _line(kept: KeptFolder, runs: Sequence[Run], link: str) -> str:
    """Returns the item of a kept folder: what ran, for how long, and its remark."""
    facts = "The runs are not kept"
    if runs:
        rounds = f"{count_of(len(runs), 'run')} of {_rounds(runs)}"
        told = [rounds, seeds_of(runs)]
        told += [f"{word} factors" for word in _factors(runs)]
        gpus = {str(run.info.get("versions", {}).get("gpu") or "") for run in runs}
        told += [f"on {gpu}" for gpu in sorted(gpus - {""})]
        facts = ", ".join([*told, _hours(runs)])
    return f"- [{kept.name}]({link}/{kept.name}): {facts}. {kept.remark}".rstrip()


def _factors(runs: Iterable[Run]) -> list[str]:
    """The types of the products' factors, where they are not float32."""
    modes = set(map(factors_mode, runs))
    return sorted({"BF16": "bfloat16"}.get(mode, mode) for mode in modes if mode)


def _hours(runs: Sequence[Run]) -> str:
    """The hours of training and testing, added up: pauses are none of them."""
    try:
        tables = [read.read_table(run.path, "timing.csv") for run in runs]
    except RecordMissingError:
        return "hours not recorded"
    seconds = sum(float(table["train"].sum() + table["test"].sum()) for table in tables)
    hours = float(f"{seconds / 3600:.2g}")
    return f"{hours:g} hours"


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
