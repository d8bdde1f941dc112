"""What an algorithm is, and the registry of the algorithms."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Optional, Protocol

import numpy as np
import numpy.typing as npt

from declared_settings import Registry, SettingError
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.trainer import Trainer
from tff_pmc.scores import Score
from tff_pmc.settings.run_settings import COMPONENTS, AlgorithmSettings, RunSettings

if TYPE_CHECKING:
    from tff_pmc.clients.client_memory import ClientMemory
    from tff_pmc.clients.training_options import Training


class Predictor(Protocol):
    """What answers test examples in the place of the server's model."""

    def predict(self, weights: Any) -> npt.NDArray[np.int64]:
        """Predicts the label of each test example, [N]."""


@dataclasses.dataclass(frozen=True)
class Algorithm(AlgorithmSettings):
    """One way of training a federation; its fields are its settings.

    A new one is a subclass in a separate module, registered by name (docs/extend.md).

    Attributes:
        name: what tables call it.
        takes_priority: whether each ordering of `--priority` is a separate run.
        combines_criteria: whether it combines several criteria into one score. Without
            `--priority` it then takes all of them, and it rejects a single criterion.
        weighs_equally: whether all clients have the same weight, whatever their
            criteria.
        has_step_length: whether its weights sum to a step length instead of to 1.
        one_client_per_pack: whether its process must see each client by itself.
        needs_server_examples: whether it measures models on examples of the server.
        unused_flags: flags of every run that have no effect on it.
        search_flags: those of its flags that have no effect unless it searches.
    """

    takes_priority: ClassVar[bool] = False
    combines_criteria: ClassVar[bool] = False
    has_step_length: ClassVar[bool] = False
    unused_flags: ClassVar[tuple[str, ...]] = ()
    search_flags: ClassVar[tuple[str, ...]] = ()

    def check(self, settings: RunSettings) -> None:
        """Refuses settings of a run that do not go with the algorithm.

        These are a score that does not fit, and a search that it does not allow.

        Raises:
            SettingError: the message names the flag.
        """
        super().check(settings)
        if settings.adjustment.searches:
            self.candidates(settings)
        if settings.counterfactual.kinds:
            self.counterfactuals(settings)

    def candidates(self, settings: RunSettings) -> list[Score]:
        """Returns the scores that an online adjustment searches, in the order of tests.

        Where they do not follow from `--priority`, as the lambdas of `dual`, the search
        is the algorithm: the command line then searches by default (`best_of_all`).

        Raises:
            SettingError: there is nothing to search.
        """
        raise SettingError(
            f"--adjustment={settings.adjustment.policy} searches orderings, which "
            f"the algorithm {settings.algorithm_name} does not have"
        )

    def counterfactuals(self, settings: RunSettings) -> list[Score]:
        """Returns the scores whose models are judged as well, that in force first.

        Raises:
            SettingError: there are none, or the sums do not hold them.
        """
        raise SettingError(
            "--counterfactuals does not go with the algorithm "
            f"{settings.algorithm_name}, whose sums give no other weighting's "
            "model"
        )

    @abc.abstractmethod
    def build_trainer(self, context: RunContext) -> Trainer:
        """Builds the trainer of a run's rounds."""

    def training(self, context: RunContext) -> Training:
        """Builds the clients' training: the run's options, and `memory`."""
        return dataclasses.replace(
            context.training, memory=self.build_client_memory(context)
        )

    def build_client_memory(self, context: RunContext) -> Optional[ClientMemory]:
        """Builds what is remembered of clients between rounds; None for nothing."""
        return None

    def build_predictor(self, context: RunContext) -> Optional[Predictor]:
        """Builds what answers in the place of the server's model; None for nothing."""
        return None


ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm", "tff_pmc.algorithms")
"""The algorithms by name."""

COMPONENTS["algorithm"] = ALGORITHMS  # `RunSettings` is below the algorithms.


def algorithm_of(settings: RunSettings) -> Algorithm:
    """Returns the algorithm of a run, which builds its rounds."""
    algorithm = settings.algorithm
    assert isinstance(algorithm, Algorithm)  # `ALGORITHMS` has no others.
    return algorithm
