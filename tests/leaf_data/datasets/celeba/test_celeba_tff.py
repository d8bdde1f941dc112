"""CelebA of TFF's database: read as TFF reads it, downloaded, refused."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest
from PIL import Image

from leaf_data.datasets.celeba import celeba_tff

pytestmark = pytest.mark.usefixtures("no_download")


ATTRIBUTES = ("male", "smiling", "blurry", "young")


def _proto(tf, image, **values):
    values = {**dict.fromkeys(ATTRIBUTES, [1]), "image": image, **values}
    feature = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in values.items()
        if value is not None
    }
    features = tf.train.Features(feature=feature)
    return tf.train.Example(features=features).SerializeToString()


def _flat(toy, k):
    return np.tile(toy.color(k), 84 * 84)


def _example(tf, toy, k):
    return _proto(tf, _flat(toy, k), smiling=[toy.smiling(k)], blurry=[toy.blurry(k)])


@pytest.fixture
def database(tmp_path, tf, toy, write_tff_database):
    rows = [
        (user, f"split_by_examples_{part}", _example(tf, toy, k))
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


def test_tffs_database_is_read_as_tff_reads_it(tmp_path, tf, toy, write_tff_database):
    tff = pytest.importorskip("tensorflow_federated")
    image = np.random.RandomState(0).randint(0, 256, 84 * 84 * 3)
    path = write_tff_database(
        tmp_path / "celeba.sqlite",
        [
            ("7", "split_by_examples_train", _proto(tf, image)),
            ("7", "split_by_examples_test", _proto(tf, image)),
        ],
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

    monkeypatch.setattr(celeba_tff, "_download", download)
    data = toy.load(None, source="tff")
    assert data.origin.source == "TFF's CelebA (its download)"
    assert (tmp_path / "home" / ".tff" / "celeba.sqlite").is_file()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert_refused(
        lambda: toy.load(empty, source="tff"), "celeba: no celeba.sqlite or celeba."
    )


def test_databases_that_are_refused(
    tmp_path, tf, assert_refused, toy, write_tff_database
):
    flat = _flat(toy, 1)
    path = tmp_path / "celeba.sqlite"
    needed = "an example is no tf.train.Example with image and smiling and blurry"
    for proto, message in (
        (_proto(tf, flat, smiling=None), needed),
        (_proto(tf, flat, blurry=None), needed),
        (_proto(tf, None), needed),
        (_proto(tf, flat)[:-9], needed),
        (_proto(tf, flat[:-3]), "an image of 21165 values, not 84 x 84 x 3"),
        (_proto(tf, flat - 61), "an image from -61 to -41, not 0 to 255"),
        (_proto(tf, flat * 26), "an image from 0 to 520, not 0 to 255"),
        (_proto(tf, flat, smiling=[2]), "smiling is [2], not 0 or 1"),
        (_proto(tf, flat, blurry=[0, 1]), "blurry is [0, 1], not 0 or 1"),
    ):
        write_tff_database(path, [("20", "split_by_examples_train", proto)])
        assert_refused(
            lambda: toy.load(tmp_path, source="tff"), f"{path}: client 20: ", message
        )
