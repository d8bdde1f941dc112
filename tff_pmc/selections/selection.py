"""The base class of rules that choose a round's clients, and what they receive."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, Callable, ClassVar

import numpy as np
import numpy.typing as npt

from declared_settings import Registry, Settings

LOSS = "loss"
"""The entry of `needs` for a selection by the clients' losses on the round's model."""


@dataclasses.dataclass(frozen=True)
class Clients:
    """The K clients with training examples; their places are 0 to K - 1.

    Attributes:
        sizes: the numbers of their training examples, int64 [K].
        measure: `(name, places) -> float64 [len(places)]`, for a name among the
            selection's `needs`: for `LOSS` the mean loss of the round's model on each
            client's training examples; else the attribute of the client table. Each
            client that reports its loss receives the model first.
    """

    sizes: npt.NDArray[np.int64]
    measure: Callable[[str, npt.ArrayLike], npt.NDArray[np.float64]]


@dataclasses.dataclass(frozen=True)
class Selection(Settings, abc.ABC):
    """A rule by which a round's clients are chosen; its fields are its settings.

    A choice depends only on the generator, which is seeded by seed and round, and on
    the clients' measurements, so a resumed run repeats it.

        @dataclasses.dataclass(frozen=True)
        class Largest(Selection):
            def choose(self, generator, clients, count):
                return np.argsort(-clients.sizes, kind="stable")[:count]

        SELECTIONS.register("largest", Largest)

    Attributes:
        name: its suffix to the algorithm's name in tables; empty for the default
            selection.
        needs: its measurements of clients: `LOSS`, or attributes of `--client_table`.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def note(self) -> str:
        """What tables add to the algorithm's name: the selection's."""
        return self.name

    def check(self, count: int, num_clients: int) -> None:
        """Checks the settings for a cohort of `count` out of `num_clients` clients.

        Raises:
            SettingError: the settings do not fit; the message names the flag.
        """

    @abc.abstractmethod
    def choose(
        self, generator: np.random.Generator, clients: Clients, count: int
    ) -> Any:
        """Chooses the places of `count` different clients, in any order.

        Args:
            generator: the round's random generator.
            clients: the clients to choose from.
            count: the number of clients to choose, from 1 to K.
        """


SELECTIONS: Registry[type[Selection]] = Registry("selection", "tff_pmc.selections")
"""The selections by name."""
