"""Systems whose aggregation is a factory of TFF's kind, which sees each update."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Any

from leaf_data.declare import SettingError
from tff_pmc import scores
from tff_pmc.settings.run_settings import System
from tff_pmc.systems.rounds import FixedRounds, Rounds

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings
    from tff_pmc.systems.setup import Setup


@dataclasses.dataclass(frozen=True)
class FactorySystem(System):
    """A system around an aggregation factory; a subclass must define `factory` only.

    The weight of a client's update is its number of examples.
    """

    one_client_per_pack = True

    def check(self, settings: RunSettings) -> None:
        """Refuses a search, and criteria without DS."""
        if settings.adjustment.searches:
            raise SettingError(
                f"--adjustment={settings.adjustment.adjustment} searches orderings, "
                f"which the system {settings.names['system']} does not have"
            )
        try:
            self.score(settings)
        except ValueError as error:
            raise SettingError(f"--criteria: {error}") from error

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score for the weights on record: the number of examples."""
        return scores.single("DS", settings.aggregation.criteria)

    @abc.abstractmethod
    def factory(self, settings: RunSettings) -> Any:
        """Makes the `tff.aggregators` factory."""

    def client_step(self, settings: RunSettings) -> Any:
        """What a client does with its model before the factory sees its update.

        None, the default, for nothing; see `aggregation.baselines`.
        """
        return None

    def build(self, setup: Setup) -> Rounds:
        """Builds the rounds of a process around the factory."""
        from tff_pmc import processes
        from tff_pmc.aggregation import SumOptions

        settings = setup.settings
        process = processes.build_factory_fed_avg(
            setup.model,
            self.factory(settings),
            criteria=setup.criteria,
            client_step=self.client_step(settings),
            sums=SumOptions(**setup.norms),
            **setup.training_options,
        )
        return FixedRounds(setup, process, self.score(settings))
