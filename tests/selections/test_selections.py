"""The selection of a round's clients, by each rule and by a user's."""

import dataclasses
import itertools
import re

import numpy as np
import pytest

from declared_settings import SettingError
from tff_pmc.selections import SELECTIONS, Clients, CohortSampler, Selection

SIZES = np.array([1, 7, 3, 9, 4, 2])


def clients(sizes=SIZES, losses=None):
    """What a selection is told; the places that it asks for are kept."""
    measured = []

    def measure(name, places):
        assert name == "loss"
        measured.extend(int(place) for place in places)
        return np.array([losses[place] for place in places], float)

    return Clients(np.asarray(sizes), measure), measured


def chosen(name, generator, count=2, *, among=None, **settings):
    places = SELECTIONS[name](**settings).choose(
        generator, among or clients()[0], count
    )
    return [int(place) for place in places]


def make_sampler(sizes, seed=0, name="uniform", **options):
    """A sampler of clients of these sizes, whose attribute is their number."""
    table = {"battery": np.arange(len(sizes))}
    return CohortSampler(
        sizes, seed, SELECTIONS[name](**options), name=name, attributes=table
    )


def test_uniform_is_a_pure_function_of_seed_and_round():
    """The numbers are those of the first version: a run of then is one of now."""
    full = make_sampler([5] * 100, seed=3)
    first, second = (full.draw(round_num, 10).clients for round_num in (1, 2))
    assert first == [14, 23, 32, 38, 41, 53, 73, 83, 89, 99]
    assert second == [0, 2, 10, 12, 23, 52, 65, 69, 76, 78]
    assert full.draw(1, 10) == (first, 0)  # Whatever came before.
    other = make_sampler([5] * 100, seed=4)
    assert other.draw(1, 10).clients != first
    # Clients without examples are ignored: the same indices, among the others.
    gaps = make_sampler([5, 0] * 100, seed=3)
    assert gaps.draw(1, 10).clients == [2 * k for k in first]


def by_hand(sizes, count):
    """How likely each client is among `count` drawn one after another."""
    likely = np.zeros(len(sizes))
    for order in itertools.permutations(range(len(sizes)), count):
        p, left = 1.0, sum(sizes)
        for k in order:
            p, left = p * sizes[k] / left, left - sizes[k]
        likely[list(order)] += p
    return likely


@pytest.mark.parametrize(
    ("name", "sizes"), [("uniform", [1] * 6), ("by_size", list(SIZES))]
)
def test_clients_are_drawn_at_the_expected_frequencies(name, sizes):
    counts, draws, generator = np.zeros(6), 20_000, np.random.default_rng(1)
    for _ in range(draws):
        places = chosen(name, generator, 3)
        assert len(set(places)) == 3
        counts[places] += 1
    # Five standard deviations are at most 0.018.
    np.testing.assert_allclose(counts / draws, by_hand(sizes, 3), atol=0.018)


def test_power_of_choice_takes_the_highest_losses_of_its_candidates():
    losses = [2.0, 0.5, 9.0, 1.0, 3.0, 0.7]
    for seed in range(40):
        candidates, measured = clients(losses=losses)
        generator = np.random.default_rng(seed)
        places = chosen("power_of_choice", generator, among=candidates, candidates=3)
        assert len(set(measured)) == 3  # Nobody else is sent the model.
        assert places == sorted(measured, key=lambda k: -losses[k])[:2]
    # Candidates are drawn by size, not more than there are.
    seen = np.zeros(6)
    for seed in range(4000):
        candidates, measured = clients(losses=losses)
        chosen("power_of_choice", np.random.default_rng(seed), 1, among=candidates)
        seen[measured] += 1
    np.testing.assert_allclose(seen / 4000, by_hand(list(SIZES), 2), atol=0.04)
    candidates, measured = clients(losses=losses)
    chosen("power_of_choice", np.random.default_rng(0), 4, among=candidates)
    assert sorted(measured) == list(range(6))


def test_ties_are_random_and_nan_comes_last():
    first = np.zeros(6)
    for seed in range(3000):
        candidates, _ = clients(losses=[1.0] * 5 + [np.nan])
        generator = np.random.default_rng(seed)
        places = chosen("power_of_choice", generator, 1, among=candidates, candidates=6)
        first[places] += 1
    assert first[5] == 0
    # 600 of 3000 expected, five standard deviations 110: not the large ones first.
    assert np.abs(first[:5] - 600).max() < 110
    candidates, _ = clients(losses=[1.0, np.inf, np.nan, 2.0, 3.0, 4.0])
    generator = np.random.default_rng(0)
    places = chosen("power_of_choice", generator, 6, among=candidates)
    assert (places[0], places[-1]) == (1, 2)


@dataclasses.dataclass(frozen=True)
class Own(Selection):
    """One that gives what the test says, or asks for what is known of clients."""

    needs = ("battery",)

    def choose(self, generator, clients, count):
        if isinstance(ANSWER, str):
            return np.argsort(-clients.measure(ANSWER, range(len(clients.sizes))))[:2]
        return ANSWER


ANSWER = "battery"


@pytest.fixture
def choose_with(monkeypatch):
    """`Own` registered, and what it answers."""
    monkeypatch.setattr(SELECTIONS, "_things", dict(SELECTIONS))
    SELECTIONS.register("own", Own)

    def choose_answer(answer, sizes=(4, 0, 4, 4)):
        monkeypatch.setitem(globals(), "ANSWER", answer)
        return make_sampler(sizes, name="own").draw(1, 2)

    return choose_answer


def test_a_registered_rule_may_return_a_set(choose_with):
    assert choose_with({2, 0}) == ([0, 3], 0)  # The second client has no examples.


def test_a_registered_rule_sees_the_client_table(choose_with):
    assert choose_with("battery") == ([2, 3], 0)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([0], "2 different places from 0 to 2, and chose [0]"),
        ([0.5, 1.5], "and chose [0.5 1.5]"),
        (None, "and chose None"),
        ([1, 1], "and chose [1 1]"),
        ([0, 1, 1], "and chose [0 1 1]"),
        ([0, 3], "and chose [0 3]"),
        ([-1, 0], "and chose [-1 0]"),
        ("loss", "it reads 'loss', which its `needs` do not name: add it there"),
    ],
)
def test_a_rule_with_an_invalid_choice_is_named(choose_with, answer, says):
    with pytest.raises(SettingError, match=f"^--selection=own: .*{re.escape(says)}$"):
        choose_with(answer)


@pytest.mark.parametrize(
    ("name", "options", "size", "says"),
    [
        ("uniform", {}, 2, None),
        ("power_of_choice", {"candidates": 3}, 2, None),
        ("power_of_choice", {"candidates": 4}, 2, "from 2, .* to 3, the clients that"),
        ("power_of_choice", {"candidates": 1}, 2, "--choice_candidates=1 must be"),
    ],
)
def test_settings_that_do_not_fit_the_clients_are_rejected(name, options, size, says):
    sampler = make_sampler([4, 0, 4, 4], name=name, **options)
    if says is None:
        sampler.check(size)
    else:
        with pytest.raises(SettingError, match=says):
            sampler.check(size)


def test_an_attribute_that_no_client_has_is_rejected(choose_with, monkeypatch):
    monkeypatch.setattr(Own, "needs", ("battery", "distance"))
    with pytest.raises(SettingError, match="needs 'distance' .*; known: loss, batt"):
        make_sampler([4, 4], name="own").check(1)
