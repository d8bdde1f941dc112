"""The search for the candidate of a round: DA's Algorithm 1, a plain state machine.

The candidates are scores in a list, and a search refers to them by index. It names the
next one to test, takes how well its model did, and decides when to stop.
`processes.online_adjusted` runs it, on the command line from `algorithms.trainer`;
`processes.online_iterative.choose_index` makes the same choice in TensorFlow. The
search does not depend on scores, models, TensorFlow or files, so it can be run alone:

    >>> trials = CandidateSearch("backtracking", 6, SearchState(index=2, correct=90))
    >>> trials.next                     # the current ordering comes first
    2
    >>> trials.report(85)               # fewer than 90: the next one, please
    >>> trials.next
    0
    >>> trials.report(91)               # at least 90: chosen
    >>> trials.next is None, trials.chosen
    (True, Trial(index=0, correct=91))

How well a model did is an integer, the correctly classified examples over all
clients (the total is the same for all candidates), so that comparisons are exact.

Algorithm 1 and the paper's text on it differ in two places, and this follows the
algorithm. Its line 17 continues only while a candidate is worse than the previous
round, but the text requires a better one: an equally good candidate ends the search.
Its line 20 returns to the weights (line 9), but the text returns to a step 3. The paper
does not specify the order in which orderings are tried, which of equally good ones is
chosen, and what the first round is compared with.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Optional

from declared_settings import require_sequence

POLICIES = ("fixed", "backtracking", "best_of_all")
"""`fixed` tests the current candidate and chooses it. `backtracking` (DA's) tests until
a candidate is at least as good as the previous round's model, and chooses the best of
all if none is. `best_of_all` tests all and chooses the best, also in the first
round."""

MAX_CRITERIA = 5
"""The largest number of criteria to order: five have 120 orderings to test."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """A candidate that was tested.

    Attributes:
        index: the index in the list of candidates.
        correct: the number of examples that its model classified correctly.
    """

    index: int
    correct: int


@dataclasses.dataclass(frozen=True)
class SearchState:
    """The state of a search between rounds.

    Attributes:
        index: the index of the current candidate, which the next round tests first.
        correct: the number of examples that its model classified correctly when it was
            chosen; -1 before the first round, in which backtracking therefore chooses
            the first candidate that it tests.
    """

    index: int = 0
    correct: int = -1


class CandidateSearch:
    """The testing rounds of one round (DA, Algorithm 1, lines 8 to 29).

    Line 8 starts at the current candidate, lines 17 to 27 are the search, and lines 28
    and 29 return the chosen candidate.

    The current candidate is tested first, then the others in the order of the
    list, each at most once.
    """

    def __init__(self, policy: str, num_candidates: int, state: SearchState) -> None:
        """Starts a round.

        Args:
            policy: one of `POLICIES`.
            num_candidates: the length of the list.
            state: the state after the previous round.

        Raises:
            ValueError: the policy is unknown, or the state's index is not in the
                list.
        """
        check_policy(policy)
        if not 0 <= state.index < num_candidates:
            raise ValueError(
                f"state.index must be from 0 to {num_candidates - 1}, one of the "
                f"candidates, got {state.index}"
            )
        others = [index for index in range(num_candidates) if index != state.index]
        self._queue = [state.index, *([] if policy == "fixed" else others)]
        # Only backtracking may stop before the queue ends.
        self._target = state.correct if policy == "backtracking" else None
        self.tried: list[Trial] = []

    @property
    def next(self) -> Optional[int]:
        """The index of the candidate to test next; None when the round is decided."""
        accepted = (
            self._target is not None
            and bool(self.tried)
            and self.tried[-1].correct >= self._target
        )
        if accepted or len(self.tried) == len(self._queue):
            return None
        return self._queue[len(self.tried)]

    def report(self, correct: int) -> None:
        """Records the result of testing `next`.

        Raises:
            ValueError: the round is decided, or the number is negative.
        """
        index = self.next
        if index is None:
            raise ValueError("the round is decided: no candidate is left to report on")
        if correct < 0:
            raise ValueError(f"correct must be 0 or more, got {correct}")
        self.tried.append(Trial(index, correct))

    @property
    def chosen(self) -> Trial:
        """The trial whose model the round chooses: the best, of equals the first.

        (A trial that backtracking accepts is the best: all earlier ones were worse
        than the previous round's model.)

        Raises:
            ValueError: the round is not decided.
        """
        if self.next is not None:
            raise ValueError(
                f"the round is not decided: test candidate {self.next} first"
            )
        return self.best

    @property
    def best(self) -> Trial:
        """The best trial so far, of equals the first."""
        return max(self.tried, key=lambda trial: trial.correct)


def orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns all orderings, in the order in which a search tests them.

    It is the lexicographic order of `itertools.permutations`: for DS, LD, MD first
    (DS, LD, MD), then (DS, MD, LD), ..., (MD, LD, DS).

    Args:
        criteria: the codes of the criteria, in declared order.

    Raises:
        ValueError: the criteria are more than `MAX_CRITERIA`, or have no order.
    """
    criteria = require_sequence("criteria", criteria)
    if len(criteria) > MAX_CRITERIA:
        raise ValueError(
            f"{len(criteria)} criteria have too many orderings to test: name at most "
            f"{MAX_CRITERIA} criteria"
        )
    return list(itertools.permutations(criteria))


def check_policy(policy: str) -> None:
    """Raises a `ValueError` when the policy is unknown."""
    if policy not in POLICIES:
        raise ValueError(f"must be one of {', '.join(POLICIES)}; got {policy!r}")
