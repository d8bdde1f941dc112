"""Whole clients in packs: how many packs, and how large."""

import pytest

import tff_pmc


def test_an_uneven_cohort_packs_and_an_empty_one_is_refused(toy_examples):
    assert len(tff_pmc.pack(toy_examples, [0], num_packs=4)) == 1
    with pytest.raises(ValueError, match="empty cohort"):
        tff_pmc.pack(toy_examples, [])


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
