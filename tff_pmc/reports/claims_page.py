"""The page of claims: what the papers say, and what the kept runs say of it.

    python -m tff_pmc.reports.claims_page > docs/claims.md
    python -m tff_pmc.reports.claims_page --csv > results/reproduced/claims.csv

The claims are those of `tff_pmc/reports/papers/claims/PAPER.toml`; the runs are those
under a folder, `results/reproduced`. The page has the verdicts, and the table what
they rest on. Both are made of these and of nothing else.
"""

from __future__ import annotations

import collections
import math
import os
import pathlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Optional

import pandas as pd

from tff_pmc import project_files
from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.escape import markdown_cell
from tff_pmc.reports.kept import kept_runs
from tff_pmc.reports.pages import markdown_table
from tff_pmc.reports.papers.claim_tables import Claim, claims
from tff_pmc.reports.papers.judging import TOO_SHORT, UNTESTABLE, VERDICTS, seed_of
from tff_pmc.settings.papers import PAPERS

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = str(ROOT / "results" / "reproduced")
FLAG_FILES = project_files.folder(project_files.FLAG_FILES)

_HOW = ". To decide it: "
_SET = ("local_epochs", "batch_size")
_REMARK = re.compile(r" \([^()]*\.\)$")
_NOISE_FLOOR = re.compile(r" \(noise floor [^()]*\)")
_AS_PRINTED = {"protocol": "paper", "normalization": "sum"}

_HEAD = """\
# Claims

What the four papers say that a run can judge, in the papers' order and in our words,
and what the runs in `results/reproduced` say of it. Made by
`.venv/bin/python -m tff_pmc.reports.claims_page > docs/claims.md`; nothing here is by
hand. The runs that were judged, noise floors, remarks on the words, and the commands
stand in [`claims.csv`](../results/reproduced/claims.csv) (`--csv`).

Only runs of the paper's own normalization and protocol count. The networks of DA and
PMC have no ReLU after the convolutions; runs with it decide nothing, except where two
weightings are equal, which is a matter of the data. The 95 % interval of the mean
difference over five or more paired seeds decides:

- *reproduced*: it lies where the claim puts it; "in sign" if not with that size.
- *not reproduced*: it lies elsewhere, or has 0 and not the printed size. One part is
  enough.
- *open*: it allows both. The number of seeds that would make it ± 1 stands there.
- *not run far enough*: few seeds, short runs, a part of the data, or none.
- *cannot be tested here*: it takes data that nobody can get.

Numbers of rounds are those saved over the other side, mean over the columns that every
run reached; the printed mean is over the same columns. ± is half of the interval. The
noise floor is the standard deviation of such a mean of the baseline against itself."""


class Judged(NamedTuple):
    """A claim, and what the kept runs say of it: a row of the table.

    `ours` is our number, empty without one, `kept` the runs that were judged, or those
    that there are where none could be, `verdict` one of `VERDICTS`, and `why` the
    reason, or how to run it.
    """

    paper: str
    place: str
    says: str
    ours: str
    kept: str
    verdict: str
    why: str


def judged(found: Iterable[Claim], runs: Iterable[Run]) -> list[Judged]:
    """Returns the claims, judged by the kept runs."""
    own = by_experiment(runs)
    return [
        Judged(claim.paper, claim.place, claim.says, *answer(claim, own))
        for claim in found
    ]


def page(found: Sequence[Judged]) -> str:
    """Returns the page of claims: those with a verdict, then the others by reasons."""
    parts = [_HEAD, f"{len(found)} claims: {counts(row.verdict for row in found)}."]
    for paper, (title, year) in PAPERS.items():
        grid = [["where", "what it says", "ours", "verdict"]]
        others: dict[str, dict[str, list[str]]] = {}
        for row in found:
            if row.paper == paper and row.verdict in (TOO_SHORT, UNTESTABLE):
                why = f"{row.verdict}: {row.why.partition(_HOW)[0]}"
                says = markdown_cell(_REMARK.sub("", row.says))
                others.setdefault(why, {}).setdefault(row.place, []).append(says)
            elif row.paper == paper:
                ours = _NOISE_FLOOR.sub("", row.ours)
                verdict = ": ".join(filter(None, (row.verdict, row.why)))
                grid.append([row.place, row.says, ours, verdict])
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


def by_experiment(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Returns runs by the names of their experiments.

    Runs of another method than the papers' are left out, whatever their labels:
    those that normalize otherwise, and those by the published code's protocol.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        settings = run.settings
        if all(settings.get(name, own) == own for name, own in _AS_PRINTED.items()):
            found.setdefault(settings.get("experiment", ""), []).append(run)
    return found


def answer(
    claim: Claim, runs: Mapping[str, Sequence[Run]]
) -> tuple[str, str, str, str]:
    """Returns the last four parts of a `Judged`."""
    own = {name: runs.get(name, []) for name in claim.experiments}
    costs = {
        name: f" (about {n:g} hours of one core)" for name, n in claim.hours.items()
    }
    commands = [_command(name) + costs.get(name, "") for name in claim.experiments]
    kept, how = _runs(own), _HOW + "; ".join(commands)
    if claim.needs:
        return "", kept, UNTESTABLE, f"it takes {claim.needs}{how}"
    if not kept:
        return "", "", TOO_SHORT, f"no run is kept{how}"
    try:
        number, verdict, why, used = claim.judge(own)
    except RecordError as error:
        return "", kept, TOO_SHORT, f"{error}{how}"
    if verdict not in VERDICTS:
        raise ValueError(f"{claim.place}: {verdict!r} is none of {', '.join(VERDICTS)}")
    ids = set(map(id, used))
    kept = _runs({name: [r for r in of if id(r) in ids] for name, of in own.items()})
    return number, kept, verdict, f"{why}{how}" if verdict == TOO_SHORT else why


def _runs(found: Mapping[str, Sequence[Run]]) -> str:
    """Returns which runs there are: `mnist_noniid: 3 runs, seeds 0, 1, 2`."""
    texts = []
    for name, runs in found.items():
        if runs:
            # One run may be in two kept folders.
            different = {
                (
                    run.label,
                    seed_of(run),
                    factors_mode(run),
                    *map(run.settings.get, _SET),
                )
                for run in runs
            }
            number = count_of(len(different), "run")
            texts.append(f"{name}: {number}, {seeds_of(runs)}")
    return "; ".join(texts)


def count_of(number: int, word: str) -> str:
    """Returns a number of things: `1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def seeds_of(runs: Iterable[Run]) -> str:
    """Returns the seeds of runs: `seed 0`, `seeds 0, 1`, `seeds 0 to 4`."""
    seeds = sorted(set(map(seed_of, runs)))
    if len(seeds) > 2 and seeds == [*range(seeds[0], seeds[-1] + 1)]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"


def factors_mode(run: Run) -> Optional[str]:
    """Returns what the factors of products were rounded to; None for float32."""
    versions = run.info.get("versions", {})
    if "gpu" in versions:  # Where oneDNN has no part in the training.
        return "TF32" if versions.get("gpu_factors") == "tf32" else None
    mode: Optional[str] = versions.get("onednn_fpmath_mode")
    return mode


def _command(experiment: str) -> str:
    """Returns the command of the experiment's flag file, of several the longest."""
    files = {
        path.name: rounds
        for path in sorted(FLAG_FILES.glob("*.flags"))
        if (rounds := _rounds(path, experiment))
    }
    what = f"--experiment={experiment} --priority=all"
    if files:
        what = f"--flagfile=experiments/{max(files, key=lambda name: files[name])}"
    return (
        f".venv/bin/python run_experiments.py {what} --seeds=0,1,2,3,4 --data_dir=DIR"
    )


def _rounds(path: pathlib.Path, experiment: str) -> float:
    """Returns the rounds that a flag file sets, infinite without; 0 of another's."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if f"--experiment={experiment}" not in lines:
        return 0.0
    found = [line.partition("=")[2] for line in lines if line.startswith("--rounds=")]
    return float(found[-1]) if found else math.inf


def main(arguments: Sequence[str] = ()) -> None:
    """Prints the page of `results/reproduced`, or of the folder named; or the table."""
    folders = [one for one in arguments if one != "--csv"] or [RESULTS]
    if not os.path.isdir(folders[0]):
        sys.exit(f"{folders[0]} is no folder")
    found = judged(claims(), kept_runs(folders[0]))
    table = pd.DataFrame(found, columns=Judged._fields)
    as_csv = "--csv" in arguments
    sys.stdout.write(table.to_csv(index=False) if as_csv else page(found))


if __name__ == "__main__":
    main(sys.argv[1:])
