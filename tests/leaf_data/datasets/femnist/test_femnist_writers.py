"""Which of FEMNIST's writers are clients: sampled, small ones removed."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("no_download")


def _federation(tmp_path, toy):
    """Three unsplit files of five writers, 1 to 15 images each."""
    sizes = {}
    for number in range(3):
        users = {}
        for k in range(5):
            sizes[f"f{number}_{k}"] = size = 5 * number + k + 1
            users[f"f{number}_{k}"] = toy.user(5 * number + k, size)
        toy.write(tmp_path / "all_data" / f"all_data_{number}.json", users)
    return sizes


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("fraction", [0.34, 0.5, 0.93])
def test_sampling_by_leafs_niid_rule(tmp_path, fraction, seed, toy):
    sizes = _federation(tmp_path, toy)
    data = toy.load(tmp_path, sample_fraction=fraction, seed=seed)
    train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
    # Writers left with one image are taken by the sampling but cannot be split.
    kept = {user: len(train[user]) + len(test[user]) for user in train}
    assert list(kept) == [user for user in sizes if user in kept]
    for number in range(3):
        own = {u: n for u, n in sizes.items() if u.startswith(f"f{number}")}
        budget = int(fraction * sum(own.values()))
        taken = {u: kept[u] for u in own if u in kept}
        cut = [u for u in taken if taken[u] != own[u]]
        assert budget - 2 <= sum(taken.values()) <= budget and len(cut) <= 1
        for user in cut:  # Its first images.
            found = sorted(which for _, which in train[user] + test[user])
            assert found == list(range(taken[user]))


def test_sampling_split_data(tmp_path, toy):
    toy.write_split(tmp_path)
    whole = toy.load(tmp_path)
    for seed in range(6):
        data = toy.load(tmp_path, sample_fraction=0.5, seed=seed)
        train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
        assert list(train) == [client for client in toy.SPLIT if client in train]
        total = {u: len(train[u]) + len(test[u]) for u in train}
        in_2 = sum(total.get(u, 0) for u in "cbe")
        in_10 = sum(total.get(u, 0) for u in "da")
        assert (in_2, in_10) == (int(0.5 * 33), int(0.5 * 13))
        for user in train:  # The first of each part.
            for found, source in ((train, whole.train_examples), (test, None)):
                source = source or whole.test_examples
                assert found[user] == toy.seen(source)[user][: len(found[user])]


def test_min_samples_counts_both_parts_after_sampling(tmp_path, assert_refused, toy):
    toy.write_split(tmp_path)
    assert toy.load(tmp_path, min_samples=10).client_ids == ("c", "b", "d")
    assert toy.load(tmp_path, min_samples=11).client_ids == ("c", "d")
    assert toy.load(tmp_path, min_samples=20).client_ids == ("c",)
    for seed in range(6):
        options = {"sample_fraction": 0.5, "seed": seed}
        sampled = toy.load(tmp_path, **options)
        sizes = sampled.train_examples.sizes + sampled.test_examples.sizes
        kept = [u for u, n in zip(sampled.client_ids, sizes) if n >= 4]
        assert list(toy.load(tmp_path, min_samples=4, **options).client_ids) == kept
    assert_refused(
        lambda: toy.load(tmp_path, min_samples=21),
        "no writer in",
        "sample_fraction=1.0 and min_samples=21",
    )
    assert_refused(lambda: toy.load(tmp_path, sample_fraction=0.001), "no writer in")
