"""The base class of rules that choose a round's clients, and what they receive."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, Callable, ClassVar

import numpy as np
import numpy.typing as npt

from declared_settings import Registry, Settings

LOSS = "loss"
"""What a selection needs that looks at how well the model fits a client's examples."""


@dataclasses.dataclass(frozen=True)
class Clients:
    """The K clients that have training examples; a place is a number from 0 to K - 1.

    Attributes:
        sizes: the numbers of their training examples, int64 [K].
        measure: `(name, places) -> float64 [len(places)]`, for a name among the
            selection's `needs`: of `LOSS` the mean loss of the round's model on the
            training examples of each; else the attribute of the client table. Each
            client that reports its loss receives the model first.
    """

    sizes: npt.NDArray[np.int64]
    measure: Callable[[str, npt.ArrayLike], npt.NDArray[np.float64]]


@dataclasses.dataclass(frozen=True)
class Selection(Settings, abc.ABC):
    """A rule by which a round's clients are chosen; its fields are its settings.

    A choice depends on the generator, which the seed and the round make, and on what
    is measured of the clients, and on nothing else: so a resumed run makes it again.

        @dataclasses.dataclass(frozen=True)
        class Largest(Selection):
            def choose(self, generator, clients, count):
                return np.argsort(-clients.sizes, kind="stable")[:count]

        SELECTIONS.register("largest", Largest)

    Attributes:
        name: what tables call it behind the algorithm; empty for the usual one.
        needs: what it measures of clients: `LOSS`, or attributes of `--client_table`.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()

    @property
    def note(self) -> str:
        """Its name."""
        return self.name

    def check(self, count: int, num_clients: int) -> None:
        """Refuses settings that do not fit so many of so many clients.

        Raises:
            SettingError: the message names the flag.
        """

    @abc.abstractmethod
    def choose(
        self, generator: np.random.Generator, clients: Clients, count: int
    ) -> Any:
        """Chooses the places of `count` different clients, in any order.

        Args:
            generator: of this round alone.
            clients: those of which it may choose.
            count: how many, from 1 to all.
        """


SELECTIONS: Registry[type[Selection]] = Registry("selection", "tff_pmc.selections")
"""The selections by name."""
