"""Whole clients in packs: how many packs, and how large."""

import numpy as np
import pytest

import tff_pmc


def test_an_uneven_cohort_packs_and_an_empty_one_is_refused(toy_examples):
    assert len(tff_pmc.pack(toy_examples, [0], num_packs=4)) == 1
    with pytest.raises(ValueError, match="empty cohort"):
        tff_pmc.pack(toy_examples, [])
    with pytest.raises(ValueError, match="no attribute 'sharp'.*they have none"):
        tff_pmc.pack(toy_examples, [0], example_attributes=("sharp",))


def numbers_of(packs):
    return sorted(int(e["client"]) for pack in packs for e in pack)


def test_clients_are_named_or_numbered(toy_examples):
    named = tff_pmc.pack(toy_examples, ["toy_4", "toy_1"], num_packs=1)
    for pack, other in zip(named, tff_pmc.pack(toy_examples, [4, 1], num_packs=1)):
        for element, same in zip(pack, other):
            assert int(element["client"]) == int(same["client"]) in (4, 1)
            assert (element["x"].numpy() == same["x"].numpy()).all()
    mixed = np.array([3], np.int64).tolist() + ["toy_0"] + list(np.arange(5, 6))
    assert numbers_of(tff_pmc.pack(toy_examples, mixed)) == [0, 3, 5]
    assert numbers_of(tff_pmc.pack(toy_examples, toy_examples.client_ids)) == [
        *range(6)
    ]


@pytest.mark.parametrize(
    ("cohort", "says"),
    [
        (["toy_1", "toy_9"], "no client 'toy_9': there are 6, 'toy_0' to 'toy_5'"),
        ([6], "no client 6: there are 6"),
        ([-1], "no client -1: there are 6"),
        ("toy_1", "the cohort has to be a list, as ['toy_1']"),
    ],
)
def test_a_client_that_is_not_there_is_named(
    toy_examples, cohort, says, assert_one_line
):
    assert_one_line(ValueError, lambda: tff_pmc.pack(toy_examples, cohort), says)


def test_packs_are_cut_by_bytes(toy_examples):
    """16 bytes an image: 33 images do not fit into two packs of 200 bytes."""
    clients = range(6)
    packs = tff_pmc.pack(toy_examples, clients, num_packs=1, max_bytes=200)
    packed = [[int(e["client"]) for e in pack] for pack in packs]
    assert sorted(sum(packed, [])) == list(clients)
    for pack in packs:
        assert sum(e["x"].shape.num_elements() for e in pack) <= 200
    with pytest.raises(ValueError, match="client 0 has 128 bytes"):
        tff_pmc.pack(toy_examples, clients, max_bytes=100)
