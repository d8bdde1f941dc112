"""CelebA of TFF's database: read as TFF reads it, downloaded, refused."""

from __future__ import annotations

import dataclasses
import hashlib
import os

import numpy as np
import pytest
from PIL import Image

from leaf_data.datasets.celeba import celeba_tff

pytestmark = pytest.mark.usefixtures("no_download")


RIGHT = dict.fromkeys(("male", "smiling", "blurry", "young"), [1])


def _flat(toy, k):
    return np.tile(toy.color(k), 84 * 84).tolist()


@pytest.fixture
def database(tmp_path, example_proto, toy, write_tff_database):
    def example(k):
        own = {"smiling": [int(toy.smiling(k))], "blurry": [int(toy.blurry(k))]}
        return example_proto(image=_flat(toy, k), **{**RIGHT, **own})

    rows = [
        (user, f"split_by_examples_{part}", example(k))
        for part, users in (("test", toy.TEST), ("train", toy.TRAIN))
        for user, photos in reversed(list(users.items()))
        for k in photos
    ]
    # The same examples are there a second time, split by clients.
    rows += [(user, "split_by_clients_train", proto) for user, _, proto in rows]
    return write_tff_database(tmp_path / "data" / "celeba.sqlite", rows)


def test_tffs_database(database, toy):
    data = toy.load(database.parent, source="tff")
    assert toy.all_photos(data) == {
        user: [toy.TRAIN[user], toy.TEST[user]] for user in toy.TRAIN
    }
    assert data.options["client_rule"] == "as_split"
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    assert data.origin.source == "TFF's CelebA"
    assert data.origin.files == (("celeba.sqlite", digest),)
    assert (database.parent / "celeba_tff_cache" / "celeba_tff.npz").is_file()


def test_tffs_database_is_read_as_tff_reads_it(
    tmp_path, tf, toy, example_proto, write_tff_database
):
    tff = pytest.importorskip("tensorflow_federated")
    image = np.random.RandomState(0).randint(0, 256, 84 * 84 * 3).tolist()
    proto = example_proto(image=image, **RIGHT)
    path = write_tff_database(
        tmp_path / "celeba.sqlite",
        [("7", f"split_by_examples_{part}", proto) for part in ("train", "test")],
    )
    found = toy.load(tmp_path, source="tff").train_examples.client("7")
    theirs = tff.simulation.datasets.SqlClientData(str(path), "split_by_examples_train")
    (proto,) = theirs.create_tf_dataset_for_client("7").as_numpy_iterator()
    spec = {"image": tf.io.FixedLenFeature((84, 84, 3), tf.int64)}
    parsed = tf.io.parse_single_example(proto, spec)["image"].numpy()
    resized = Image.fromarray(parsed.astype(np.uint8)).resize((64, 64), Image.BICUBIC)
    np.testing.assert_array_equal(found["x"][0], np.asarray(resized))


def test_tffs_download_is_asked_for_by_its_name(
    tmp_path, database, monkeypatch, assert_refused, toy
):
    content = database.read_bytes()

    def download(folder):
        with open(os.path.join(folder, "celeba.sqlite"), "wb") as file:
            file.write(content)

    changed = dataclasses.replace(celeba_tff.DATABASE, download=download)
    monkeypatch.setattr(celeba_tff, "DATABASE", changed)
    data = toy.load(None, source="tff")
    assert data.origin.source == "TFF's CelebA (its download)"
    assert (tmp_path / "home" / ".tff" / "celeba.sqlite").is_file()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert_refused(
        lambda: toy.load(empty, source="tff"), "celeba: no celeba.sqlite or celeba."
    )


NEEDED = "an example is no tf.train.Example with image and smiling and blurry"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda image: {"smiling": None}, NEEDED),
        (lambda image: {"blurry": None}, NEEDED),
        (lambda image: {"image": None}, NEEDED),
        (lambda image: {"image": image[3:]}, NEEDED),
        (lambda image: {"blurry": [0, 1]}, NEEDED),
        (lambda image: {"image": [v - 61 for v in image]}, "an image from -61 to -41"),
        (lambda image: {"image": [26 * v for v in image]}, "an image from 0 to 520"),
        (lambda image: {"smiling": [2]}, "smiling is 2, not 0 or 1"),
    ],
    ids=range(8),
)
def test_examples_that_are_refused(
    tmp_path, change, message, example_proto, assert_refused, toy, write_tff_database
):
    image = _flat(toy, 1)
    values = {**RIGHT, "image": image, **change(image)}
    proto = example_proto(**{name: v for name, v in values.items() if v is not None})
    path = tmp_path / "celeba.sqlite"
    write_tff_database(path, [("20", "split_by_examples_train", proto)])
    assert_refused(
        lambda: toy.load(tmp_path, source="tff"), f"{path}: client 20: ", message
    )
