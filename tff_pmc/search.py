"""Which candidate a round keeps: DA's Algorithm 1, as a plain state machine.

A candidate is a place in a list: of orderings, or of any scores. A search names the
next one to test, is told how well its model did, and says when to stop. It knows
nothing of models, TensorFlow or files, so it can be run by hand:

    >>> trials = Trials("backtracking", 6, SearchState(candidate=2, correct=90))
    >>> trials.next                     # the ordering in force comes first
    2
    >>> trials.report(85)               # fewer than 90: the next one, please
    >>> trials.next
    0
    >>> trials.report(91)               # at least 90: kept
    >>> trials.next is None, trials.kept
    (True, Trial(candidate=0, correct=91))

How well a model did is an integer, the correctly classified examples over all
clients (their number is the same for all candidates), so that a comparison is exact.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple, Optional

POLICIES = ("fixed", "backtracking", "best_of_all")
"""`fixed` tests the candidate in force and keeps it. `backtracking` (the paper's)
tests until one is at least as good as the model of the round before, and keeps the
best of all when none is. `best_of_all` tests all and keeps the best, in the first
round too."""

MAX_CRITERIA = 5
"""Five criteria have 120 orderings, each of which may cost a testing round."""


class Trial(NamedTuple):
    """A candidate that was tested, and how many examples it got right."""

    candidate: int
    correct: int


@dataclasses.dataclass(frozen=True)
class SearchState:
    """What a search remembers from one round to the next.

    Attributes:
        candidate: the one in force, which the next round tests first.
        correct: what its model got right when it was kept; -1 before the first
            round, in which backtracking therefore keeps the first it tests.
    """

    candidate: int = 0
    correct: int = -1


class Trials:
    """The testing rounds of one round (DA, Algorithm 1, lines 11 to 22).

    The candidate in force is tested first, then the others in the order of the
    list, each at most once.
    """

    def __init__(self, policy: str, num_candidates: int, state: SearchState) -> None:
        """Begins a round.

        Args:
            policy: one of `POLICIES`.
            num_candidates: length of the list.
            state: from the round before.

        Raises:
            ValueError: the policy is unknown, or the state's candidate is not in
                the list.
        """
        check_policy(policy)
        if not 0 <= state.candidate < num_candidates:
            raise ValueError(
                f"the candidate in force is {state.candidate}, but there are "
                f"{num_candidates}"
            )
        others = [c for c in range(num_candidates) if c != state.candidate]
        self._queue = [state.candidate, *([] if policy == "fixed" else others)]
        # Only backtracking is content before the queue ends.
        self._enough = state.correct if policy == "backtracking" else None
        self.tried: list[Trial] = []

    @property
    def next(self) -> Optional[int]:
        """The candidate to test; None when the round is decided."""
        content = (
            self._enough is not None
            and bool(self.tried)
            and self.tried[-1].correct >= self._enough
        )
        if content or len(self.tried) == len(self._queue):
            return None
        return self._queue[len(self.tried)]

    def report(self, correct: int) -> None:
        """Takes the result of testing `next`.

        Raises:
            ValueError: the round is decided, or the number is negative.
        """
        candidate = self.next
        if candidate is None:
            raise ValueError("the round is decided: there is nothing left to report")
        if correct < 0:
            raise ValueError(f"correct examples cannot be {correct}")
        self.tried.append(Trial(candidate, correct))

    @property
    def kept(self) -> Trial:
        """The trial that the round keeps: the best one, of equals the first.

        (One that ended a backtracking is the best, since those before it were
        worse than the model of the round before, which it is not.)

        Raises:
            ValueError: the round is not decided.
        """
        if self.next is not None:
            raise ValueError(f"the candidate {self.next} has not been tested")
        return self.best

    @property
    def best(self) -> Trial:
        """The best trial so far, of equals the first."""
        return max(self.tried, key=lambda trial: trial.correct)

    def result(self) -> SearchState:
        """The state for the next round."""
        return SearchState(*self.kept)


def orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """All orderings, in the order in which a search tests them.

    That is the lexicographic one of `itertools.permutations`: for DS, LD, MD first
    (DS, LD, MD), then (DS, MD, LD), ..., (MD, LD, DS).

    Args:
        criteria: their codes, in declared order.

    Raises:
        ValueError: there are more than `MAX_CRITERIA`.
    """
    if len(criteria) > MAX_CRITERIA:
        raise ValueError(
            f"the orderings of {len(criteria)} criteria are too many to search: at "
            f"most {MAX_CRITERIA} criteria"
        )
    return list(itertools.permutations(criteria))


def check_policy(policy: str) -> None:
    """Raises a `ValueError` when the policy is unknown."""
    if policy not in POLICIES:
        raise ValueError(f"must be one of {', '.join(POLICIES)}; got {policy!r}")
