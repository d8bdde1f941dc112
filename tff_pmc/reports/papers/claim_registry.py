"""The claims and headline numbers of the papers, which their modules register.

    @claim("PMC-12", "6.1, Table 4", "mnist_noniid")
    def ld_is_sooner(runs: Runs) -> Differences:
        'LD reaches 70 and 80 % sooner than DS.'
        return rounds_saved(runs, "LD", AT_70_AND_80).is_more()

The docstring is the paper's statement. The id is the paper's short name and a number or
word that stays with the claim, whatever is added later. The modules of `claims` have
those of the four papers. A paper of your own registers its claims in the module that
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
from tff_pmc.reports.papers.claim_measures import Measure, measure_values
from tff_pmc.reports.papers.judging import (
    TOO_SHORT,
    UNTESTABLE,
    Differences,
    Judgment,
    judge,
)
from tff_pmc.reports.papers.paper_experiments import declared_experiment
from tff_pmc.reports.papers.paper_runs import Runs


class Claim(NamedTuple):
    """A statement of a paper, and how our runs test it.

    Attributes:
        id: the paper's short name and what tells its claims apart: `PMC-7`.
        place: section, table or figure of the paper.
        says: the statement, in our words.
        experiments: the experiments whose kept runs decide it.
        differences: returns the compared differences, from one `Runs` per experiment.
        flags: the flags that produce its runs, if not those of the flag file.
        hours: the hours that these runs take, if not those of the experiment.
        settings: the settings that its runs need, if not those of the experiment.
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
    """A number of a paper, and how to compute ours from runs.

    Attributes:
        paper: the paper's short name.
        place: section, table or figure of the paper.
        says: what the number is.
        printed: the published number.
        experiment: the experiment whose kept runs give ours.
        own: the label of the run that is measured.
        measure: the measure of this run, infinite where it is not reached.
        base: the label of the run that is subtracted; empty for none.
        form: the format of the number.
        needs: the labels of other runs that the measure uses.
        rounds: the number of rounds that the measure needs.
        arrivals: whether the measure is a round in which a target is reached. Runs that
            ended because they had reached all targets are then included.
        select: returns the runs under the names that the labels refer to; by default
            the labels of the runs themselves.
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

    def evaluate(self, kept: pd.DataFrame) -> tuple[pd.Series[float], pd.DataFrame]:
        """Returns the number under each seed, and the runs that it is computed from."""
        runs = Runs.from_kept(self.experiment, kept)
        runs = self.select(runs) if self.select else runs
        labels = [self.own, *self.needs, *filter(None, [self.base])]

        def is_complete(rows: pd.DataFrame) -> bool:
            values = measure_values(rows[rows["label"].isin(labels)], self.measure)
            return self.arrivals and bool((values < math.inf).all())

        rows = runs.select_comparable(
            labels, self.rounds, allow_early_end=self.arrivals, is_complete=is_complete
        )
        rows = rows[rows["label"].isin(labels)]
        values = measure_values(rows, self.measure).unstack("label")
        numbers = values[self.own] - (values[self.base] if self.base else 0)
        return numbers.dropna(), rows


CLAIMS: Registry[Claim] = Registry("claim", "tff_pmc.reports.papers.claims")
"""All claims, by id."""

HEADLINES: Registry[Headline] = Registry(
    "headline number", "tff_pmc.reports.papers.claims"
)
"""All headline numbers, by paper, place and words."""


def claim(
    id: str, place: str, *experiments: str, **fields: Any
) -> Callable[[Callable[..., Differences]], Claim]:
    """Registers a function as a claim; its docstring is the paper's statement.

    Args:
        id: the paper's short name, a hyphen, and a number or a word: `PMC-7`.
        place: section, table or figure of the paper.
        *experiments: the experiments whose kept runs are the function's arguments.
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
    """Registers a headline number, given by the fields of `Headline`."""
    new_headline = Headline(**fields)
    name = f"{new_headline.paper}, {new_headline.place}: {new_headline.says}"
    HEADLINES.register(name, new_headline)


def claims(paper: str = "") -> list[Claim]:
    """Returns the claims of a paper, or of all papers in the order of `PAPERS`.

    Claims of a paper are sorted by number, followed by those with a word.
    """
    if paper:
        PAPERS[paper]  # Or the error that names all papers.
    names = [paper] if paper else list(PAPERS)
    return sorted(
        (claim for claim in CLAIMS.values() if claim.paper in names),
        key=lambda claim: (names.index(claim.paper), _sort_key(claim.id)),
    )


def _sort_key(id: str) -> tuple[float, str]:
    suffix = id.rpartition("-")[2]
    return (int(suffix), "") if suffix.isdigit() else (math.inf, suffix)


def headlines() -> list[Headline]:
    """Returns the headline numbers of all papers, in the order of `PAPERS`."""
    return [
        number
        for name in PAPERS
        for number in HEADLINES.values()
        if number.paper == name
    ]


def judge_claim(claim: Claim, kept: pd.DataFrame) -> Judgment:
    """Returns the verdict of the kept runs on a claim.

    If no runs could be judged, its `runs` are all of the claim's experiments.
    """
    runs = [Runs.from_kept(name, kept, claim.settings) for name in claim.experiments]
    rows = pd.concat([experiment_runs.rows for experiment_runs in runs])
    try:
        judgment = judge(claim.differences(*runs))
    except RecordError as error:
        judgment = Judgment("", TOO_SHORT, str(error))
    # One of several experiments that needs something does not block the others.
    needs = {declared_experiment(name).needs for name in claim.experiments}
    need = needs.pop() if len(needs) == 1 else ""
    if need:
        judgment = Judgment("", UNTESTABLE, f"it needs {need}")
    elif not len(rows):
        judgment = Judgment("", TOO_SHORT, "no run is kept")
    return judgment if len(judgment.runs) else judgment._replace(runs=rows)
