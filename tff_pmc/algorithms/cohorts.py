"""The clients of each round, by the run's selection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

import leaf_data
from declared_settings import SettingError
from leaf_data.errors import shorten
from tff_pmc.selections import LOSS, Clients
from tff_pmc.settings.run_settings import RunSettings

Losses = Callable[[npt.NDArray[np.int64], Any], npt.NDArray[np.float64]]
"""(Clients' numbers, a model's weights) -> its mean loss on each one's examples."""


class Cohort(NamedTuple):
    """The clients of a round."""

    clients: list[int]  # Their numbers, ascending.
    num_asked: int = 0  # The clients that received the model and reported their loss.


class CohortSampler:
    """Chooses each round's clients, of those that have training examples.

    Attributes:
        size: the number of clients in a round.
    """

    def __init__(
        self, settings: RunSettings, data: leaf_data.FederatedDataset, losses: Losses
    ) -> None:
        """Takes a run's settings and data, and what measures a selection's losses."""
        self._settings, self._losses = settings, losses
        self._attributes = data.client_table.values
        sizes = data.train_examples.sizes
        self._able = np.flatnonzero(sizes)
        self._sizes = sizes[self._able]
        self.size = settings.training.cohort_size(len(self._able), settings.dataset)

    def choose(
        self, round_num: int, weights: Optional[Callable[[], Any]] = None
    ) -> Cohort:
        """Chooses the clients of a round from the seed, the round and the model alone.

        `weights` makes the model's weights, for a selection that needs the loss.
        """
        settings, asked = self._settings, 0

        def measure(name: str, places: npt.ArrayLike) -> npt.NDArray[np.float64]:
            nonlocal asked
            clients = self._able[np.asarray(places, np.int64)]
            if name not in settings.selection.needs:
                raise self._refused(
                    f"it reads {name!r}, which its `needs` do not name: add it there"
                )
            if name != LOSS:
                return np.array(self._attributes[name][clients], np.float64)
            assert weights is not None
            asked += len(clients)
            return self._losses(clients, weights())

        generator = np.random.default_rng([settings.training.cohort_seed, round_num])
        given = Clients(self._sizes, measure)
        answer = settings.selection.choose(generator, given, self.size)
        chosen = np.asarray([*answer] if isinstance(answer, Iterable) else answer)
        places = np.unique(chosen)
        fits = chosen.dtype.kind in "iu" and len(places) == chosen.size == self.size
        if not fits or places[0] < 0 or places[-1] >= len(self._able):
            raise self._refused(
                f"it must choose {self.size} different places from 0 to "
                f"{len(self._able) - 1}, and chose {shorten(chosen)}"
            )
        return Cohort(self._able[places].tolist(), asked)

    def _refused(self, words: str) -> SettingError:
        return SettingError(f"--selection={self._settings.names['selection']}: {words}")


def check(settings: RunSettings, data: leaf_data.FederatedDataset) -> None:
    """Refuses a selection that does not fit the data, or uses what is not there."""
    able = int(np.count_nonzero(data.train_examples.sizes))
    count = settings.training.cohort_size(able, settings.dataset)
    settings.selection.check(count, able)
    known = [LOSS, *data.client_table.values]
    for name in settings.selection.needs:
        if name not in known:
            raise SettingError(
                f"--selection={settings.names['selection']} needs {name!r} of each "
                f"client, which is not known: there are {', '.join(known)}"
            )
