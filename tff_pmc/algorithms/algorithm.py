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
    """Predicts the test examples with other models than the server's."""

    def predict(self, weights: Any) -> npt.NDArray[np.int64]:
        """Predicts the label of each test example, [N]."""


@dataclasses.dataclass(frozen=True)
class Algorithm(AlgorithmSettings):
    """One way of training a federation; its fields are its settings.

    A new one is a subclass in a separate module, registered by name (docs/extend.md).

    Attributes:
        name: its name in tables.
        takes_priority: whether each ordering of `--priority` is a separate run.
        combines_criteria: whether it combines several criteria into one score. Without
            `--priority` it then takes all of them, and it rejects a single criterion.
        weighs_equally: whether all clients have the same weight, whatever their
            criteria.
        has_step_length: whether its weights sum to a step length instead of to 1.
        one_client_per_pack: whether its process must see each client by itself.
        needs_server_examples: whether it evaluates models on the server's examples.
        unused_flags: flags of every run that have no effect on it.
        search_flags: those of its flags that only affect a search.
    """

    takes_priority: ClassVar[bool] = False
    combines_criteria: ClassVar[bool] = False
    has_step_length: ClassVar[bool] = False
    unused_flags: ClassVar[tuple[str, ...]] = ()
    search_flags: ClassVar[tuple[str, ...]] = ()

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` if the algorithm cannot run with these settings.

        Its score must fit the criteria, and it must allow the search and the
        counterfactuals, if there are any. The message names the flag.
        """
        super().check(settings)
        if settings.adjustment.searches:
            self.candidates(settings)
        if settings.counterfactual.kinds:
            self.counterfactuals(settings)

    def candidates(self, settings: RunSettings) -> list[Score]:
        """Returns the scores that an online adjustment tests, in this order.

        If they do not follow from `--priority`, as the lambdas of `dual`, the search is
        the algorithm itself, and the command line searches by default (`best_of_all`).

        Raises:
            SettingError: the algorithm has no candidates.
        """
        raise SettingError(
            f"--adjustment={settings.adjustment.policy} searches over orderings, and "
            f"the algorithm {settings.algorithm_name} has none: use --adjustment=fixed"
        )

    def counterfactuals(self, settings: RunSettings) -> list[Score]:
        """Returns the scores of `--counterfactuals`, after the current score.

        Raises:
            SettingError: the sums of this algorithm do not determine their models.
        """
        raise SettingError(
            "--counterfactuals cannot be used with the algorithm "
            f"{settings.algorithm_name}: its sums do not determine the models of other "
            "weightings"
        )

    @abc.abstractmethod
    def build_trainer(self, context: RunContext) -> Trainer:
        """Builds the trainer, which runs the rounds."""

    def training(self, context: RunContext) -> Training:
        """Returns the options of local training, with the client memory."""
        return dataclasses.replace(
            context.training, memory=self.build_client_memory(context)
        )

    def build_client_memory(self, context: RunContext) -> Optional[ClientMemory]:
        """Builds the per-client state that is kept between rounds, or None."""
        return None

    def build_predictor(self, context: RunContext) -> Optional[Predictor]:
        """Builds the predictor that replaces the server's model in tests, or None."""
        return None


ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm", "tff_pmc.algorithms")
"""The algorithms by name."""

COMPONENTS["algorithm"] = ALGORITHMS  # `RunSettings` must not import them.


def algorithm_of(settings: RunSettings) -> Algorithm:
    """Returns the algorithm of a run, typed as an `Algorithm`."""
    algorithm = settings.algorithm
    assert isinstance(algorithm, Algorithm)  # `ALGORITHMS` contains no other classes.
    return algorithm
