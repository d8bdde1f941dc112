"""A selection without chance."""

import dataclasses

import numpy as np

from tff_pmc.selections import SELECTIONS, Selection


@dataclasses.dataclass(frozen=True)
class Largest(Selection):
    """The clients with the most training examples, the same in each round."""

    name = "largest"

    def choose(self, generator, clients, count):
        return np.argsort(-clients.sizes, kind="stable")[:count]


SELECTIONS.register("largest", Largest)
