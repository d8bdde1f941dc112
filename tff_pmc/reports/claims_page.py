"""The page of claims: what the papers say, and what the kept runs say of it.

    python -m tff_pmc.reports.claims_page > docs/claims.md

The claims are those of `tff_pmc/reports/papers/claims/PAPER.toml`; the runs are those
under a folder, `results/reproduced`. The page is made of these and of nothing else.
"""

from __future__ import annotations

import math
import os
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from tff_pmc import project_files
from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.kept import kept_runs
from tff_pmc.reports.papers.claim_tables import Claim, claims
from tff_pmc.reports.papers.judging import UNDECIDABLE, VERDICTS
from tff_pmc.settings.papers import PAPERS

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = str(ROOT / "results" / "reproduced")
FLAG_FILES = project_files.folder("experiments")

NOT_RUN = "not run yet"
_AS_PRINTED = {"protocol": "paper", "normalization": "sum"}

_HEAD = """\
# Claims

What the four papers say that a run can judge, in the papers' order and in our words,
and what the runs that are kept in `results/reproduced` say of it. Made by
`.venv/bin/python -m tff_pmc.reports.claims_page > docs/claims.md`; nothing here is by
hand. Only runs of the paper's own normalization and protocol count. The networks of DA
and PMC have no ReLU after the convolutions. Where only runs with ReLU are kept, their
numbers are shown, and decide nothing.

A verdict is *reproduced*, *not reproduced*, *undecidable* (with the reason) or *not run
yet* (with the command that would judge it; DIR holds the data). A claim about rounds or
accuracies is decided from five seeds on. A claim about every single round needs one run
only. Differences are means over paired seeds; ± is half of their 95 % interval. The
noise floor says how far such a mean of the baseline against itself under other seeds is
from 0, as a standard deviation. Numbers of rounds are those saved over the other side:
more is better.
"""


def page(found: Iterable[Claim], runs: Iterable[Run]) -> str:
    """Returns the page of claims, judged by the kept runs."""
    own, found = by_experiment(runs), list(found)
    parts, counts = [], dict.fromkeys((*VERDICTS, NOT_RUN), 0)
    for paper, (title, year) in PAPERS.items():
        lines = ["| where | what it says | ours | verdict |", "|---|---|---|---|"]
        for claim in found:
            if claim.paper == paper:
                number, verdict, why = answer(claim, own)
                counts[verdict] += 1
                words = f"**{verdict}**: {why}" if why else f"**{verdict}**"
                cells = (claim.place, claim.says, number, words)
                lines.append(f"| {' | '.join(map(_cell, cells))} |")
        if len(lines) > 2:
            parts.append("\n".join([f"## {paper}, *{title}* ({year})", "", *lines]))
    total = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return "\n\n".join(
        [_HEAD.rstrip("\n"), f"{len(found)} claims: {total}.", *parts, ""]
    )


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


def answer(claim: Claim, runs: Mapping[str, Sequence[Run]]) -> tuple[str, str, str]:
    """Returns our number with its seeds, the verdict and why, or how to run it."""
    own = {name: runs.get(name, []) for name in claim.experiments}
    if not any(own.values()):
        how = _commands(claim.experiments)
        if claim.needs:
            return "", UNDECIDABLE, f"it takes {claim.needs}. With them: {how}"
        return "", NOT_RUN, how
    try:
        number, verdict, why = claim.judge(own)
    except TooShortError as error:
        return f"(kept: {_runs(own)})", UNDECIDABLE, str(error)
    except RecordError as error:
        return "", NOT_RUN, f"{error}. {_commands(claim.experiments)}"
    if verdict not in VERDICTS:
        raise ValueError(f"{claim.place}: {verdict!r} is none of {', '.join(VERDICTS)}")
    return f"{number} (kept: {_runs(own)})", verdict, why


def _runs(found: Mapping[str, Sequence[Run]]) -> str:
    """Returns which runs there are: `mnist_noniid: 3 runs, seeds 0, 1, 2`."""
    texts = []
    for name, runs in found.items():
        if runs:
            # One run may be in two kept folders.
            number = count_of(len({_which(run) for run in runs}), "run")
            texts.append(f"{name}: {number}, {seeds_of(runs)}")
    return "; ".join(texts)


def count_of(number: int, word: str) -> str:
    """Returns a number of things: `1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def seeds_of(runs: Iterable[Run]) -> str:
    """Returns the seeds of runs: `seed 0`, `seeds 0, 1`."""
    seeds = sorted({int(run.settings.get("batch_seed", 0)) for run in runs})
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"


def _which(run: Run) -> tuple[Any, ...]:
    return run.label, run.settings.get("batch_seed"), factors_mode(run)


def factors_mode(run: Run) -> Optional[str]:
    """Returns what the factors of products were rounded to; None for float32."""
    versions = run.info.get("versions", {})
    if "gpu" in versions:  # Where oneDNN has no part in the training.
        return "TF32" if versions.get("gpu_factors") == "tf32" else None
    mode: Optional[str] = versions.get("onednn_fpmath_mode")
    return mode


def _commands(experiments: Sequence[str]) -> str:
    return "; ".join(f"`{_command(name)}`" for name in experiments)


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


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Prints the page of `results/reproduced`, or of the folder that is named."""
    folder = sys.argv[1] if len(sys.argv) > 1 else RESULTS
    if not os.path.isdir(folder):
        sys.exit(f"{folder} is no folder")
    sys.stdout.write(page(claims(), kept_runs(folder)))


if __name__ == "__main__":
    main()
