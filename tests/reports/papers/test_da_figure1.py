"""DA's Figure 1 shows what the paper's words say of it, and that it is made up."""

from tff_pmc.reports.papers import da_figure1
from tff_pmc.search import SearchState, Trials


def test_it_shows_what_the_text_names():
    tests = da_figure1.dummy_values()
    parts = tests.groupby("round")[["configuration", "kept"]]
    by_round = {number: [*map(tuple, part.to_numpy())] for number, part in parts}
    assert all(by_round[number] == [("blue", 1)] for number in range(1, 8))
    assert by_round[8] == [("blue", 0), ("orange", 1)]
    assert by_round[10][-1] == ("green", 1) and len(by_round[10]) == 3


def test_its_values_are_a_search_by_algorithm_1():
    """Each round's tests are what the search asks for, and it keeps what is kept."""
    tests = da_figure1.dummy_values()
    last = -1
    for _, part in tests.groupby("round"):
        # A candidate for each test, and one more where the search ends before all.
        accuracies = [round(100 * value) for value in part["accuracy"]]
        kept = part["kept"].tolist().index(1)
        ended_early = accuracies[kept] >= last
        count = len(accuracies) + ended_early
        trials = Trials("backtracking", count, SearchState(0, last))
        while trials.next is not None:
            trials.report(accuracies[trials.next])
        assert len(trials.tried) == len(accuracies)
        assert trials.chosen.index == kept
        last = accuracies[kept]
