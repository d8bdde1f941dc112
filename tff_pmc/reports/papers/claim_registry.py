"""The claims and headline numbers of the papers, which their modules register.

    @claim("PMC-12", "6.1, Table 4", "mnist_noniid")
    def ld_is_sooner(runs: Runs) -> Differences:
        'LD reaches 70 and 80 % sooner than DS.'
        return rounds_saved(runs, "LD", AT_70_AND_80).is_more()

The docstring is the paper's statement. The id is the paper's short name and a number or
word that stays with the claim, whatever is added later. The modules of `claims` have
those of the four papers. A paper from outside has its claims in the module that
registers the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import pandas as pd

from declared_settings import Registry
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.paper import PAPERS
from tff_pmc.reports.papers.claim_measures import Measure, values
from tff_pmc.reports.papers.judging import (
    TOO_SHORT,
    UNTESTABLE,
    Answer,
    Differences,
    judged,
)
from tff_pmc.reports.papers.paper_experiments import declared
from tff_pmc.reports.papers.paper_runs import Runs


class Claim(NamedTuple):
    """A statement of a paper, and how our runs test it.

    Attributes:
        id: the paper's short name and what tells its claims apart: `PMC-7`.
        place: its place in the paper: section, table or figure.
        says: the statement, in our words.
        experiments: those whose kept runs it is about.
        differences: returns what it is about, of the runs of each experiment.
        flags: those that make the runs it takes, if they are not the flag file's.
        hours: those that such runs take, if they are not the experiment's.
        settings: those that its runs have to have, if they are not the experiment's.
    """

    id: str
    place: str
    says: str
    experiments: Sequence[str]
    differences: Callable[..., Differences]
    flags: str = ""
    hours: float = 0
    settings: Optional[Mapping[str, Any]] = None

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.id.rpartition("-")[0]


class Headline(NamedTuple):
    """A number of a paper, and how runs give the same.

    Attributes:
        paper: its short name.
        place: its place in the paper.
        says: what it is.
        printed: the published number.
        experiment: whose kept runs it is of.
        own: the label of the run that it is of.
        measure: what it is of this run, infinite where it is not reached.
        base: the label of a run over which it is a lead; empty for none.
        form: how it is written.
        needs: the labels of other runs that the measure takes.
        rounds: the rounds that it takes.
        arrivals: whether it is a round in which a target is reached, so that runs count
            that ended because they had reached all of them.
        select: returns the runs by the names that the labels are; None for their
            labels.
    """

    paper: str
    place: str
    says: str
    printed: str
    experiment: str
    own: str
    measure: Measure
    base: str = ""
    form: str = "{:.0f}"
    needs: Sequence[str] = ()
    rounds: int = 0
    arrivals: bool = False
    select: Optional[Callable[[Runs], Runs]] = None

    def of(self, kept: pd.DataFrame) -> tuple[pd.Series[float], pd.DataFrame]:
        """Returns the number under each seed, and the runs that it is of."""
        runs = Runs.of(self.experiment, kept)
        runs = self.select(runs) if self.select else runs
        labels = [self.own, *self.needs, *filter(None, [self.base])]

        def show_all(of: pd.DataFrame) -> bool:
            found = values(of[of["label"].isin(labels)], self.measure)
            return self.arrivals and bool((found < math.inf).all())

        chosen = runs.choose(
            labels, self.rounds, arrivals=self.arrivals, show_all=show_all
        )
        chosen = chosen[chosen["label"].isin(labels)]
        found = values(chosen, self.measure).unstack("label")
        found = found[self.own] - (found[self.base] if self.base else 0)
        return found.dropna(), chosen


CLAIMS: Registry[Claim] = Registry("claim", "tff_pmc.reports.papers.claims")
"""All claims by their ids."""

HEADLINES: Registry[Headline] = Registry(
    "headline number", "tff_pmc.reports.papers.claims"
)
"""All headline numbers, by paper and words."""


def claim(
    id: str, place: str, *experiments: str, **fields: Any
) -> Callable[[Callable[..., Differences]], Claim]:
    """Registers a function as a claim; its docstring is the paper's statement.

    Args:
        id: the paper's short name, a hyphen, and a number or a word: `PMC-7`.
        place: its place in the paper.
        *experiments: those whose kept runs the function takes, one argument each.
        **fields: other fields of `Claim`.

    Raises:
        ValueError: another claim has the id.
    """

    def register(differences: Callable[..., Differences]) -> Claim:
        says = " ".join((differences.__doc__ or "").split())
        new_claim = Claim(id, place, says, experiments, differences, **fields)
        return CLAIMS.register(id, new_claim)

    return register


def headline(**fields: Any) -> None:
    """Registers a headline number of these fields of `Headline`."""
    new_headline = Headline(**fields)
    name = f"{new_headline.paper}, {new_headline.place}: {new_headline.says}"
    HEADLINES.register(name, new_headline)


def claims(paper: str = "") -> list[Claim]:
    """Returns the claims of a paper, or of all papers in the order of `PAPERS`.

    Those of a paper come in the order of their numbers, then those with a word.
    """
    if paper:
        PAPERS[paper]  # Or the error that names all papers.
    names = [paper] if paper else list(PAPERS)
    return sorted(
        (each for each in CLAIMS.values() if each.paper in names),
        key=lambda each: (names.index(each.paper), _order(each.id)),
    )


def _order(id: str) -> tuple[float, str]:
    suffix = id.rpartition("-")[2]
    return (int(suffix), "") if suffix.isdigit() else (math.inf, suffix)


def headlines() -> list[Headline]:
    """Returns the headline numbers of all papers, in their order."""
    return [
        each for name in PAPERS for each in HEADLINES.values() if each.paper == name
    ]


def answer(one: Claim, kept: pd.DataFrame) -> Answer:
    """Returns the verdict of the kept runs on a claim.

    Where none could be judged its `runs` are all of the claim's experiments.
    """
    runs = [Runs.of(name, kept, one.settings) for name in one.experiments]
    every = pd.concat([of.rows for of in runs])
    try:
        found = judged(one.differences(*runs))
    except RecordError as error:
        found = Answer("", TOO_SHORT, str(error))
    # What one of several experiments needs keeps the others from nothing.
    needs = {declared(name).needs for name in one.experiments}
    need = needs.pop() if len(needs) == 1 else ""
    if need:
        found = Answer("", UNTESTABLE, f"it needs {need}")
    elif not len(every):
        found = Answer("", TOO_SHORT, "no run is kept")
    return found if len(found.runs) else found._replace(runs=every)
