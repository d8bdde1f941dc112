"""Which worker gets which pack, and what is sent again."""

import types

import pytest

from tff_pmc._lazy import tf


@pytest.fixture
def placed():
    """Places packs on workers, and tells where each is and in which order it came."""
    from tff_pmc.runtime.cluster_packs import PacksOnWorkers, Traffic

    client = types.SimpleNamespace(scatter=lambda *_, **options: options["workers"])
    traffic = Traffic()
    kept = PacksOnWorkers(types.SimpleNamespace(client=client), traffic)
    packs = [[tf.constant([n, n], tf.int32)] for n in range(9)]

    def place(numbers, workers):
        before = traffic.packs
        found = dict(kept.place([packs[n] for n in numbers], workers))
        where = "".join(found[k].worker for k in range(len(numbers)))
        return where, list(found), (traffic.packs - before) // 8

    return place


def test_neighbours_are_together_and_the_workers_get_theirs_in_turn(placed):
    assert placed(range(5), "ab") == ("aaabb", [0, 3, 1, 4, 2], 5)


@pytest.mark.parametrize(
    "number, workers, expected",
    [(4, "abc", "aabc"), (2, "abc", "ab"), (9, "abcd", "aaabbccdd"), (3, "a", "aaa")],
)
def test_all_have_about_as_many(placed, number, workers, expected):
    assert placed(range(number), workers)[0] == expected


def test_what_returns_stays_where_it_is(placed):
    placed(range(5), "abc")
    assert placed(range(5), "abc") == ("aabbc", [0, 1, 2, 3, 4], 0)
    assert placed([4], "abc") == ("c", [0], 0)
    # 5 goes to who has least.
    assert placed([1, 2, 5], "abc") == ("abc", [0, 1, 2], 1)


def test_the_packs_of_a_worker_that_died_are_sent_again(placed):
    placed(range(6), "abc")
    assert placed(range(6), "ac") == ("aaaccc", [0, 1, 4, 5, 2, 3], 2)
    # The new worker gets its share.
    assert placed(range(6), "abc") == ("aabccb", [0, 1, 3, 4, 2, 5], 2)
