"""CelebA of LEAF's JSON: split or not, with images or attributes missing, refused."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from leaf_data.datasets.celeba import celeba_clients

pytestmark = pytest.mark.usefixtures("no_download")


@pytest.fixture
def split(raw, toy):
    """What LEAF's preprocess.sh leaves: beside the raw folder, train and test."""
    name = "all_data_niid_05_keep_5_{}_8.json"
    train = toy.write_json(raw.parent / "train" / name.format("train"), toy.TRAIN)
    toy.write_json(raw.parent / "test" / name.format("test"), toy.TEST)
    return train


def test_leafs_json(split, tmp_path, caplog, toy):
    data = toy.load(tmp_path, source="leaf")
    assert toy.all_photos(data) == {
        user: [toy.TRAIN[user], toy.TEST[user]] for user in toy.TRAIN
    }
    assert data.options["client_rule"] == "as_split"
    assert data.origin.source == "LEAF JSON and images"
    assert dict(data.origin.files)[split.name] == (
        hashlib.sha256(split.read_bytes()).hexdigest()
    )
    assert not caplog.records


def test_leafs_json_with_images_missing(split, raw, tmp_path, assert_refused, toy):
    for k in toy.TEST["20"]:
        (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    data = toy.load(tmp_path, source="leaf")
    assert data.client_ids == ("60",)
    words = "INCOMPLETE: 8 of the 9 images of its clients are there, 1 of 2 clients"
    assert words in data.origin.source
    assert_refused(
        lambda: toy.load(tmp_path, source="leaf", missing_images="refuse"), words
    )


def test_leafs_json_without_the_attributes(split, raw, tmp_path, caplog, toy):
    (raw / "list_attr_celeba.txt").unlink()
    data = toy.load(tmp_path, source="leaf")
    assert data.train_examples.attributes == {}
    assert data.train_examples.client("20")["y"].tolist() == [0, 0, 0]
    assert data.train_examples.client("60")["x"][:, 0, 0, 0].tolist() == toy.TRAIN["60"]
    assert ["nothing is known of sharp" in r.message for r in caplog.records] == [True]


def test_leafs_json_that_is_not_split(raw, tmp_path, assert_refused, toy):
    users = {
        str(i): [k for k in range(1, toy.COUNT + 1) if toy.identity(k) == i]
        for i in range(10, 70, 10)
    }
    path = toy.write_json(raw.parent / "all_data" / "all_data.json", users)
    data = toy.load(tmp_path, source="leaf", seed=3)
    assert data.options["client_rule"] == "paper"
    rows = {user: np.array(photos) for user, photos in users.items()}
    expected = celeba_clients.paper(rows, 3)
    assert toy.all_photos(data) == {
        user: [part.tolist() for part in parts] for user, parts in expected.items()
    }
    path.parent.rename(raw.parent / "sampled_data")
    assert_refused(
        lambda: toy.load(tmp_path, source="leaf"), "is sampled but not split"
    )


@pytest.mark.parametrize(
    ("user", "x", "y", "message"),
    [
        ("20", ["000007.jpg"], [1.0], "000007 has the label 1, Smiling in list_attr_"),
        ("20", ["000007.jpg"], [2], "000007.jpg has the label 2, not 0 or 1"),
        ("20", ["000007.jpg"], [True], "000007.jpg has the label True, not 0 or 1"),
        ("20", [[0.5, 0.5]], [0.0], "x holds [0.5, 0.5], not a photo's name"),
        ("20", ["000999.jpg"], [0.0], "000999 is not in list_attr_celeba.txt"),
        ("20", ["000007.jpg"] * 2, [0.0] * 2, "000007 is there twice"),
        ("20", ["000019.jpg"], [0.0], "000019 is there twice"),
    ],
)
def test_leafs_json_that_is_refused(
    split, tmp_path, user, x, y, message, assert_refused, toy
):
    users = {user: [7] * len(x)}
    toy.write_json(split, users, lambda data: {user: {"x": x, "y": y}})
    assert_refused(lambda: toy.load(tmp_path, source="leaf"), f"user {user}: {message}")
