"""The map and the reduce of a MapReduceForm: what is done with each pack.

The sum of several packs is a tree whose shape follows from their number alone, so that
the order of float additions, and with it every bit of the result, does not depend on
who ran which pack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Callable, NamedTuple, TypeVar

import tensorflow as tf

from tff_pmc.runtime.imported_graph import GraphParts, ImportedGraph

_T = TypeVar("_T")


class PackGraphs(NamedTuple):
    """The graphs of a form that are needed where the packs are.

    Attributes:
        work: a pack's tensors and what the server sent, to what the pack answers.
        zero: nothing, to the sum of no answers.
        accumulate: a sum and an answer, to their sum.
        merge: two sums, to their sum.
        num_integers: how many of an answer's tensors, the last ones, are not
            accumulated but integers to be added: TFF's secure sums.
    """

    work: GraphParts
    zero: GraphParts
    accumulate: GraphParts
    merge: GraphParts
    num_integers: int


class PackSums:
    """Sums of packs: what is accumulated, then the integers, as one flat list."""

    def __init__(self, graphs: PackGraphs) -> None:
        """Imports the graphs.

        Raises:
            ValueError: TensorFlow cannot import one.
        """
        self._work, self._zero, self._accumulate, self._merge = map(
            ImportedGraph, graphs[:4]
        )
        self._num_integers = graphs.num_integers

    def of_pack(
        self, pack: Sequence[tf.Tensor], sent: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        """The sum of one pack, given its tensors and what the server sent."""
        answer = self._work([*pack, *sent])
        in_clear = len(answer) - self._num_integers
        total = self._accumulate([*self._zero([]), *answer[:in_clear]])
        return [*total, *answer[in_clear:]]

    def merge(
        self, first: Sequence[tf.Tensor], second: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        """The sum of two sums."""
        in_clear = len(first) - self._num_integers
        total = self._merge([*first[:in_clear], *second[:in_clear]])
        return [*total, *(a + b for a, b in zip(first[in_clear:], second[in_clear:]))]


def merged_in_tree(sums: Iterable[_T], merge: Callable[[_T, _T], _T]) -> _T:
    """The sum of at least one sum, by pairs, pairs of pairs, and so on.

    Args:
        sums: the sums, in the order of the packs; each is merged as soon as its
            neighbour is there, so that few are kept.
        merge: makes one of two neighbours.
    """
    waiting: list[tuple[int, _T]] = []
    for found in sums:
        height = 0
        while waiting and waiting[-1][0] == height:
            found = merge(waiting.pop()[1], found)
            height += 1
        waiting.append((height, found))
    _, total = waiting.pop()
    while waiting:
        total = merge(waiting.pop()[1], total)
    return total
