"""Systems that weight clients by a score over their criteria."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from leaf_data.declare import SettingError
from tff_pmc.scores import Basis, Score
from tff_pmc.settings.run_settings import System, in_small_letters
from tff_pmc.systems import online_adjustment
from tff_pmc.systems.rounds import FixedRounds, Rounds

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings
    from tff_pmc.systems.setup import Setup


@dataclasses.dataclass(frozen=True)
class ScoredSystem(System):
    """A system whose weights come from a score; a subclass must define `score` only."""

    def check(self, settings: RunSettings) -> None:
        """Refuses a score that does not fit, and a search that it does not allow."""
        try:
            self.score(settings)
        except ValueError as error:
            flag = f"--systems={settings.names['system']}"
            raise SettingError(f"{flag}: {error}") from error
        if settings.adjustment.searches:
            self.candidates(settings)

    def candidates(self, settings: RunSettings) -> list[Score]:
        """The scores that an online adjustment searches, in the order of testing.

        Raises:
            SettingError: there is nothing to search.
        """
        raise SettingError(
            f"--adjustment={settings.adjustment.adjustment} searches orderings, which "
            f"the system {settings.names['system']} does not have"
        )

    def build(self, setup: Setup) -> Rounds:
        """The rounds with the score in force, or with a search over candidates."""
        if setup.settings.adjustment.searches:
            return online_adjustment.build(setup, self.candidates(setup.settings))
        score = self.score(setup.settings)
        return FixedRounds(setup, self.build_process(setup), score)

    def build_process(self, setup: Setup, basis: Basis | None = None) -> Any:
        """The `tff.learning.templates.LearningProcess` of the score in force.

        Where a client cannot score itself before the totals, it has two stages.

        Args:
            setup: the parts of the process.
            basis: the sums to make; by default those that the score needs.
        """
        from tff_pmc import processes

        build = processes.build_prioritized_fed_avg
        if setup.settings.two_stage:
            build = processes.build_two_stage_fed_avg
        return build(
            setup.model,
            score=self.score(setup.settings),
            criteria=setup.criteria,
            basis=basis,
            **setup.process_options,
        )


@dataclasses.dataclass(frozen=True)
class PrioritySystem(ScoredSystem):
    """A scored system whose criteria, and their order, `--priority` names."""

    takes_priority = True
    combines = True

    def label(self, settings: RunSettings) -> str:
        """Returns the score and its adjustment, e.g. `LD,DS,MD (backtracking)`."""
        return online_adjustment.label(self.score(settings).label, settings)

    def folder(self, settings: RunSettings) -> str:
        """Returns the name of a run's folder, e.g. `LD-DS-MD_backtracking`."""
        words = re.findall(r"[\w.]+", self.score(settings).label)
        own = online_adjustment.folder("-".join(words), settings)
        note = in_small_letters(settings.data.note)
        return f"{own}_{note}" if note else own
