"""CelebA's two client rules: on made-up identities, and on the real identity file."""

import random

import numpy as np
import pytest

from leaf_data.datasets import celeba_clients


def _photos(sizes):
    """identity -> rows; rows of different identities lie mixed, as in the file."""
    identities = np.repeat(list(sizes), list(sizes.values()))
    np.random.RandomState(5).shuffle(identities)
    return {str(i): np.flatnonzero(identities == i) for i in sizes}


def _lists(clients):
    return {c: [rows.tolist() for rows in parts] for c, parts in clients.items()}


# Number of photos -> of them for testing, by hand: a fifth, rounded.
_FIFTH = {10: 2, 11: 2, 12: 2, 13: 3, 14: 3, 15: 3, 17: 3, 18: 4, 23: 5}


def test_the_rule_of_the_reference_code_by_hand():
    # Ids whose order as text is another than as numbers, and too few photos twice.
    sizes = dict(zip([30, 4, 111, 7, 25, 9, 100, 8, 52], [*_FIFTH]))
    sizes.update({60: 9, 61: 1})
    photos = _photos(sizes)
    random.seed(3)
    order = sorted(sizes)
    random.shuffle(order)
    clients = celeba_clients.reference_code(photos, 3)
    kept = [i for i in order[:5] if sizes[i] >= 10]  # 11 identities, half is 5.
    assert list(clients) == [str(i) for i in kept]
    for i in kept:
        rows, count = photos[str(i)].tolist(), _FIFTH[sizes[i]]
        assert _lists(clients)[str(i)] == [rows[count:], rows[:count]]
    reverse = dict(reversed(list(photos.items())))
    assert _lists(celeba_clients.reference_code(reverse, 3)) == _lists(clients)


def test_pythons_random_numbers_are_unchanged():
    random.seed(1)
    state = random.getstate()
    celeba_clients.reference_code(_photos({i: 10 for i in range(4)}), 0)
    assert random.getstate() == state


@pytest.mark.parametrize("seed", range(5))
def test_the_rule_of_the_paper_by_its_properties(seed):
    sizes = {i: 1 + i % 13 for i in range(1, 61)}
    photos = _photos(sizes)
    clients = celeba_clients.paper(photos, seed)
    half = sum(sizes.values()) // 2
    cut, total = 0, 0
    for client, (train, test) in clients.items():
        rows, count = photos[client].tolist(), len(train) + len(test)
        assert sorted([*train, *test]) == rows[:count]  # An identity is cut at the end.
        assert count >= 5
        assert len(train) == 4 * count // 5
        assert train.tolist() == sorted(train) and test.tolist() == sorted(test)
        cut += count < len(rows)
        total += count
    assert cut <= 1
    # What is missing to the half was of identities with 1 to 4 photos.
    small = sum(size for size in sizes.values() if size < 5)
    assert half - small - 4 <= total <= half
    order = [client for client in photos if client in clients]
    assert list(clients) == order


def test_the_rule_of_the_paper_draws_by_its_seed():
    photos = _photos({i: 20 for i in range(1, 41)})
    first, again, other = (celeba_clients.paper(photos, seed) for seed in (1, 1, 2))
    assert _lists(first) == _lists(again)
    assert set(first) != set(other)
    assert len(first) == 20
    # The split is at random too: neither the first nor the last are for testing.
    places = [
        np.searchsorted(photos[client], test).tolist()
        for client, (_, test) in first.items()
    ]
    assert len({tuple(place) for place in places}) > 15
