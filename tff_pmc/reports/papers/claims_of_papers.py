"""A claim of a paper that runs can judge, as data.

A module `PAPER_claims` of this package has a sequence `CLAIMS` of them, in the paper's
order; `claims_page` gathers them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple

from tff_pmc.reports.read import Run

VERDICTS = REPRODUCED, NOT_REPRODUCED, UNDECIDABLE = (
    "reproduced",
    "not reproduced",
    "undecidable",
)
"""What a judge answers; a claim whose runs are missing is not judged."""


class Claim(NamedTuple):
    """What a paper says, and how runs of ours judge it.

    Attributes:
        paper: `DA`, `PMC`, `AdaFed` or `Dual`.
        place: where the paper says it: section, table or figure.
        says: what it says, in our words.
        experiments: the names of the experiments whose runs it takes.
        judge: experiment name -> the runs of it that are there, to our number as text,
            one of `VERDICTS`, and why. It raises a `RecordError` where these runs are
            not the ones that it takes, and a `TooShortError` where they ended before
            what it is about.
        needs: what its runs need and nobody can get; empty of all others. Without runs
            such a claim is undecidable.
    """

    paper: str
    place: str
    says: str
    experiments: Sequence[str]
    judge: Callable[[Mapping[str, Sequence[Run]]], tuple[str, str, str]]
    needs: str = ""
