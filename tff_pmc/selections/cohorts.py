"""The cohorts of a run or of a program: who takes part in each round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from declared_settings import SettingError
from leaf_data.errors import shorten
from tff_pmc.selections.sampling import Uniform
from tff_pmc.selections.selection import LOSS, Clients, Selection

LossFn = Callable[[npt.NDArray[np.int64], Any], npt.NDArray[np.float64]]
"""(Clients' numbers, a model's weights) -> its mean loss on each one's examples."""


class Cohort(NamedTuple):
    """The clients of a round."""

    clients: list[int]  # Their numbers, ascending.
    num_loss_reports: int = 0  # The clients that received the model for a loss.


class CohortSampler:
    """Draws each round's clients, from those that have training examples.

    A cohort is a pure function of the seed and the round, and of what the selection
    measures of clients.

    Attributes:
        trainable: the numbers of the clients that have training examples, int64 [K].
    """

    def __init__(
        self,
        sizes: npt.ArrayLike,
        seed: int,
        selection: Optional[Selection] = None,
        *,
        name: str = "uniform",
        attributes: Optional[Mapping[str, Any]] = None,
        loss_fn: Optional[LossFn] = None,
    ) -> None:
        """Takes the clients and a rule.

        Args:
            sizes: the number of training examples of each client of the federation.
            seed: what the cohorts are drawn from, 0 or more.
            selection: the rule; by default each client is as likely as any other.
            name: the selection's name in errors.
            attributes: the client table, an array by name that has a value for each
                client of the federation; by default none.
            loss_fn: computes losses, if the selection needs them.
        """
        sizes = np.asarray(sizes)
        self.trainable = np.flatnonzero(sizes)
        self._sizes = sizes[self.trainable]
        self._seed, self._name, self._loss_fn = seed, name, loss_fn
        self._selection = Uniform() if selection is None else selection
        self._attributes = attributes or {}

    def check(self, size: int) -> None:
        """Checks the selection's settings for cohorts of a size.

        A `SettingError` reports settings that do not fit, or an attribute of clients
        that does not exist.
        """
        self._selection.check(size, len(self.trainable))
        available = [LOSS, *self._attributes]
        for name in self._selection.needs:
            if name not in available:
                raise SettingError(
                    f"--selection={self._name} needs {name!r} of each "
                    f"client, which is unknown; known: {', '.join(available)}"
                )

    def draw(
        self,
        round_num: int,
        size: int,
        weights: Optional[Callable[[], Any]] = None,
    ) -> Cohort:
        """Draws the cohort of a round, counted from 1, of `size` clients.

        `weights` returns the model's weights, for a selection that needs the loss.
        """
        num_loss_reports = 0

        def measure(name: str, positions: npt.ArrayLike) -> npt.NDArray[np.float64]:
            nonlocal num_loss_reports
            clients = self.trainable[np.asarray(positions, np.int64)]
            if name not in self._selection.needs:
                raise self._selection_error(
                    f"it reads {name!r}, which its `needs` do not name: add it there"
                )
            if name != LOSS:
                return np.array(self._attributes[name][clients], np.float64)
            assert weights is not None and self._loss_fn is not None
            num_loss_reports += len(clients)
            return self._loss_fn(clients, weights())

        generator = np.random.default_rng([self._seed, round_num])
        eligible = Clients(self._sizes, measure)
        selected = self._selection.choose(generator, eligible, size)
        array = np.asarray([*selected] if isinstance(selected, Iterable) else selected)
        positions = np.unique(array)
        fits = array.dtype.kind in "iu" and len(positions) == array.size == size
        if not fits or positions[0] < 0 or positions[-1] >= len(self.trainable):
            raise self._selection_error(
                f"it must choose {size} different places from 0 to "
                f"{len(self.trainable) - 1}, and chose {shorten(array)}"
            )
        return Cohort(self.trainable[positions].tolist(), num_loss_reports)

    def _selection_error(self, words: str) -> SettingError:
        return SettingError(f"--selection={self._name}: {words}")
