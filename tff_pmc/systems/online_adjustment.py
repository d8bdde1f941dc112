"""Online adjustment: a search over candidates in every round (DA's Algorithm 1).

It is not a system of its own, but what becomes of a scored system with
`--adjustment`: the cohort trains once, and the models of several scores, its
candidates, are tested before one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tff_pmc.scores import Score
from tff_pmc.systems.rounds import Rounds, SearchRounds

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings
    from tff_pmc.systems.setup import Setup


def label(score: str, settings: RunSettings) -> str:
    """Returns the run's label: the initial score and, if adjusted, the policy."""
    policy = settings.adjustment.adjustment
    return f"{score} ({policy})" if settings.adjustment.searches else score


def folder(score: str, settings: RunSettings) -> str:
    """Returns the name of the run's folder, see `label`."""
    policy = settings.adjustment.adjustment
    return f"{score}_{policy}" if settings.adjustment.searches else score


def build(setup: Setup, candidates: Sequence[Score]) -> Rounds:
    """Builds the rounds of a search.

    Args:
        setup: the parts of the process.
        candidates: the scores, in the order of testing, the one in force in the
            first round among them (the system's score).
    """
    from tff_pmc import processes

    settings = setup.settings
    options: dict[str, Any] = {}
    if settings.adjustment.judge_on == "server":
        x, y = setup.server_examples
        options["judge"] = processes.build_server_judge(
            setup.model, x, y, setup.data.num_classes
        )
    online = processes.build_online_adjusted_fed_avg(
        setup.model,
        candidates=candidates,
        first=settings.system.score(settings),
        policy=settings.adjustment.adjustment,
        criteria=setup.criteria,
        **options,
        **setup.process_options,
    )
    return SearchRounds(setup, online)
