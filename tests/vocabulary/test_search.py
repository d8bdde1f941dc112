"""DA's Algorithm 1 as a state machine, against the algorithm spelled out."""

import itertools

import pytest

from tff_pmc import search
from tff_pmc.search import CandidateSearch, SearchState, Trial


def algorithm_1(in_force, last, accuracies):
    """DA's lines 8 to 29, as a person would do them: (tried, chosen)."""
    waiting = sorted(set(range(len(accuracies))) - {in_force})
    ordering, tried = in_force, []
    while True:
        tried.append(ordering)
        if accuracies[ordering] >= last:  # Line 17 continues only while it is lower.
            return tried, ordering
        if not waiting:  # Line 22: none was good enough.
            best = tried[0]
            for other in tried:
                if accuracies[other] > accuracies[best]:
                    best = other
            return tried, best
        ordering = waiting.pop(0)


def play(policy, state, accuracies):
    """Runs a round against scripted accuracies; nothing may be tested twice."""
    trials, tested = CandidateSearch(policy, len(accuracies), state), []
    while trials.next is not None:
        assert trials.next not in tested
        tested.append(trials.next)
        trials.report(accuracies[trials.next])
    assert [trial.index for trial in trials.tried] == tested
    assert len(tested) <= len(accuracies)
    return tested, trials.chosen


@pytest.mark.parametrize("count", [1, 2, 6])
def test_backtracking_is_algorithm_1_for_every_script(count):
    for accuracies in itertools.product(range(3), repeat=count):
        for last in (-1, 0, 1, 2, 3):
            for in_force in range(count):
                tested, kept = play(
                    "backtracking", SearchState(in_force, last), accuracies
                )
                expected, best = algorithm_1(in_force, last, accuracies)
                assert tested == expected
                assert kept == Trial(best, accuracies[best])


def test_best_of_all_tests_all_in_the_first_round_too():
    for last in (-1, 9):
        tested, kept = play("best_of_all", SearchState(2, last), [1, 5, 3, 5])
        assert (tested, kept) == ([2, 0, 1, 3], Trial(1, 5))
    assert play("best_of_all", SearchState(2, 0), [4, 4, 4])[1].index == 2


def test_fixed_keeps_the_current_candidate():
    search = play("fixed", SearchState(1, 9), [9, 2, 9])
    assert search == ([1], Trial(1, 2))


def test_orderings_are_lexicographic():
    assert search.orderings(("DS", "LD", "MD")) == [
        ("DS", "LD", "MD"),
        ("DS", "MD", "LD"),
        ("LD", "DS", "MD"),
        ("LD", "MD", "DS"),
        ("MD", "DS", "LD"),
        ("MD", "LD", "DS"),
    ]
    with pytest.raises(ValueError, match="at most 5 criteria"):
        search.orderings(list("abcdef"))


def test_invalid_use_of_a_search_raises():
    with pytest.raises(ValueError, match="must be one of fixed, backtracking"):
        CandidateSearch("greedy", 2, SearchState())
    with pytest.raises(ValueError, match="from 0 to 1, .* got 2"):
        CandidateSearch("fixed", 2, SearchState(index=2))
    trials = CandidateSearch("fixed", 2, SearchState())
    with pytest.raises(ValueError, match="test candidate . first"):
        trials.chosen  # noqa: B018
    with pytest.raises(ValueError, match="correct must be 0 or more, got -1"):
        trials.report(-1)
    trials.report(1)
    with pytest.raises(ValueError, match="the round is decided"):
        trials.report(1)
