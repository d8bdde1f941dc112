"""The claims and headline numbers of the papers, which their modules register.

    @claim("PMC", "6.1, Table 4")
    def ld_is_sooner(results: KeptResults) -> Differences:
        'LD reaches 70 and 80 % sooner than DS.'
        return rounds_saved(results.mnist_noniid, "LD", AT_70_AND_80).is_more()

The docstring is what the paper says. The modules of `claims` have those of the four
papers. A paper from outside has its claims in the module that registers the paper.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers.comparisons import Number
from tff_pmc.reports.papers.evidence import KeptResults, Run, Runs, declared
from tff_pmc.reports.papers.judging import (
    TOO_SHORT,
    UNTESTABLE,
    Answer,
    Differences,
    judged,
)
from tff_pmc.settings.papers import PAPERS


class Claim(NamedTuple):
    """What a paper says, and how runs of ours judge it.

    Attributes:
        paper: its short name.
        place: where the paper says it: section, table or figure.
        says: what it says, in our words.
        differences: returns what it is about, of the kept results.
        flags: those that make the runs it takes, if they are not the flag file's.
        hours: those that such runs take, if they are not the experiment's.
    """

    paper: str
    place: str
    says: str
    differences: Callable[[KeptResults], Differences]
    flags: str = ""
    hours: float = 0


class Numbers(NamedTuple):
    """A number under each seed, infinite where it is not reached, and its runs."""

    values: Sequence[float]
    runs: Sequence[Run]


class Headline(NamedTuple):
    """A number of a paper, and how runs give the same; `form` is how it is written."""

    paper: str
    place: str
    says: str
    printed: str
    numbers: Callable[[KeptResults], Numbers]
    form: str = "{:.0f}"


_CLAIMS: list[Claim] = []
_HEADLINES: list[Headline] = []


def claim(
    paper: str, place: str, *, flags: str = "", hours: float = 0
) -> Callable[[Callable[[KeptResults], Differences]], Claim]:
    """Registers a function as a claim; its docstring is what the paper says."""

    def register(differences: Callable[[KeptResults], Differences]) -> Claim:
        says = " ".join((differences.__doc__ or "").split())
        found = Claim(paper, place, says, differences, flags, hours)
        _CLAIMS.append(found)
        return found

    return register


def headline(
    paper: str, place: str, *, printed: str, form: str = "{:.0f}"
) -> Callable[[Callable[[KeptResults], Numbers]], Headline]:
    """Registers a function as a headline number; its docstring is what it is of."""

    def register(numbers: Callable[[KeptResults], Numbers]) -> Headline:
        says = " ".join((numbers.__doc__ or "").split())
        found = Headline(paper, place, says, printed, numbers, form)
        _HEADLINES.append(found)
        return found

    return register


def _import_claims() -> None:
    """Imports the four papers' modules, which register theirs."""
    importlib.import_module("tff_pmc.reports.papers.claims")


def claims(paper: str = "") -> list[Claim]:
    """Returns the claims of a paper, or of all of them in the order of `PAPERS`."""
    _import_claims()

    if paper:
        PAPERS[paper]  # Or the error that names all papers.
    names = [paper] if paper else list(PAPERS)
    return [one for name in names for one in _CLAIMS if one.paper == name]


def headlines() -> list[Headline]:
    """Returns the headline numbers of all papers, in their order."""
    _import_claims()
    return [one for name in PAPERS for one in _HEADLINES if one.paper == name]


def answer(one: Claim, results: KeptResults) -> tuple[Answer, Mapping[str, Runs]]:
    """Returns what the kept results say of a claim, and the experiments it is about."""
    own = results.fresh()
    try:
        found = judged(one.differences(own))
    except RecordError as error:
        found = Answer("", TOO_SHORT, str(error))
    # What one of several experiments needs keeps the others from nothing.
    needs = {declared(name).needs for name in own.asked}
    need = needs.pop() if len(needs) == 1 else ""
    if need:
        found = Answer("", UNTESTABLE, f"it takes {need}")
    elif not any(of.runs for of in own.asked.values()):
        found = Answer("", TOO_SHORT, "no run is kept")
    return found, own.asked


def number_of(runs: Runs, own: str, number: Number, base: str = "") -> Numbers:
    """Returns a number of a run under each seed, or its lead over another's."""
    labels = list(filter(None, [own, *number.also, base]))
    values: list[float] = []
    used: list[Run] = []
    for of_seed in runs.by_seed(labels, number.rounds).values():
        try:
            value = number.of(of_seed[own], ())
            value -= number.of(of_seed[base], ()) if base else 0
        except RecordError:
            continue
        values.append(value)
        used += [of_seed[label] for label in labels]
    return Numbers(values, used)
