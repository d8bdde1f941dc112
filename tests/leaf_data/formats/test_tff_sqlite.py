"""TFF's databases: read as TFF reads them, found, unpacked, downloaded, refused."""

import collections
import dataclasses
import hashlib
import io
import lzma
import sqlite3
import urllib.error
import urllib.request

import numpy as np
import pytest
from made_up import assert_not_loaded, assert_refused, run_python
from PIL import Image

import leaf_data
from leaf_data.datasets import femnist
from leaf_data.formats import tff_sqlite

pytestmark = pytest.mark.usefixtures("empty_home")

GRAY = [0.5] * 784
NAME = "emnist_all.sqlite"


# TFF's tables.
TABLES = (
    "CREATE TABLE examples (split_name TEXT, client_id TEXT, "
    "serialized_example_proto BLOB)",
    "CREATE TABLE client_metadata (client_id TEXT, split_name TEXT, "
    "num_examples INTEGER)",
)


def example(**features):
    """Makes a serialized example of lists of numbers or bytes, by TensorFlow."""
    import tensorflow as tf

    proto = tf.train.Example()
    for name, values in features.items():
        feature = proto.features.feature[name]
        lists = {float: feature.float_list, bytes: feature.bytes_list}
        lists.get(type(values[0]), feature.int64_list).value.extend(values)
    return proto.SerializeToString()


@pytest.fixture
def write(tmp_path):
    """Writes a database of rows of client, split and example; all may be changed."""

    def write(rows, after=(), name=NAME):
        path = tmp_path / "data" / name
        path.parent.mkdir(exist_ok=True)
        sizes = collections.Counter((client, split) for client, split, _ in rows)
        counts = [(*key, size) for key, size in sizes.items()]
        database = sqlite3.connect(path)
        for statement in TABLES:
            database.execute(statement)
        database.executemany(
            "INSERT INTO examples VALUES (?, ?, ?)", [(s, c, p) for c, s, p in rows]
        )
        database.executemany("INSERT INTO client_metadata VALUES (?, ?, ?)", counts)
        for statement in after:
            database.execute(statement)
        database.commit()
        database.close()
        return path

    return write


@pytest.fixture
def database(write):
    """A path, and what its clients have; "b" is in the test split alone."""
    random, rows, images = np.random.RandomState(0), [], []
    for client, split, count in (
        *(("c", "all_train", 4), ("a", "all_train", 3), ("c", "all_test", 2)),
        *(("b", "all_test", 1), ("a", "digits_only_train", 2)),
    ):
        for _ in range(count):
            pixels, label = random.randint(0, 256, 784), int(random.randint(62))
            proto = example(pixels=(pixels / 255).tolist(), label=[label])
            rows.append((client, split, proto))
            images.append((pixels.tolist(), label))
    order, expected = random.permutation(len(rows)), {}
    for client, split, _ in rows:
        chosen = [images[k] for k in order if rows[k][:2] == (client, split)]
        expected[split, client] = chosen
    return write([rows[k] for k in order]), expected


def _load(folder, **options):
    return leaf_data.load("femnist", folder, source="tff", **options)


def _check(data, expected):
    """Every client's examples, in the order of the database's rows; clients sorted."""
    assert list(data.client_ids) == ["a", "b", "c"]
    parts = {"all_train": data.train_examples, "all_test": data.test_examples}
    for split, examples in parts.items():
        for client in data.client_ids:
            arrays = examples.client(client)
            pairs = zip(arrays["x"].reshape(-1, 784).tolist(), arrays["y"].tolist())
            assert list(pairs) == expected.get((split, client), [])


def test_a_database_is_read_once(database, monkeypatch):
    database, expected = database
    data = _load(database.parent)
    _check(data, expected)
    assert data.pixel_convention.background == 255 and data.num_classes == 62
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    assert data.origin.source == "TFF's EMNIST"
    assert data.origin.files == ((NAME, digest),)
    monkeypatch.setattr(tff_sqlite, "read", None)  # From here on the cache.
    assert _load(database.parent, min_samples=4).client_ids == ("c",)
    sampled = _load(database.parent, sample_fraction=0.5, seed=2)
    sizes = sampled.train_examples.sizes + sampled.test_examples.sizes
    assert sizes.sum() == 5  # Half of 10.
    run_python(
        "import sys, leaf_data\n"
        f"leaf_data.load('femnist', {str(database.parent)!r}, source='tff')\n"
        "sys.exit('tensorflow' in sys.modules)\n"
    )


def test_the_packed_database(database):
    database, expected = database
    packed = database.with_name(NAME + ".lzma")
    data = lzma.compress(database.read_bytes(), lzma.FORMAT_ALONE)
    database.unlink()
    packed.write_bytes(data)
    unpacked = _load(packed.parent)
    _check(unpacked, expected)
    digest = hashlib.sha256(data).hexdigest()
    assert unpacked.origin.files == ((packed.name, digest),)
    for content in (data[:-100], b"text"):
        packed.write_bytes(content)
        assert_refused(lambda: _load(packed.parent), f"{packed}: ")


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (["DROP TABLE client_metadata"], "not TFF's EMNIST"),
        (["ALTER TABLE examples RENAME client_id TO other"], "not TFF's EMNIST"),
        (["DELETE FROM client_metadata"], "has no clients with a split of"),
    ],
)
def test_tables_of_another_schema_are_rejected(write, after, message):
    rows = [("a", "all_train", example(pixels=GRAY, label=[5]))] * 2
    path = write(rows, after=after)
    assert_refused(lambda: _load(path.parent), f"{path}: ", message)
    path.write_bytes(b"text")
    assert_refused(lambda: _load(path.parent), f"{path}: not TFF's EMNIST")


RIGHT = {**dict.fromkeys(("male", "smiling", "blurry", "young"), [1])}
IMAGE = [61, 81, 20] * 84 * 84
EXAMPLES = [
    (b"text", "Could not parse example"),
    (dict(pixels=GRAY), "label"),
    (dict(pixels=GRAY[1:], label=[1]), "pixels"),
    (dict(pixels=[1.5] * 784, label=[1]), "has the value 1.5, not in [0, 1]"),
    (dict(pixels=[np.nan] * 784, label=[1]), "has the value nan, not in [0, 1]"),
    (dict(pixels=GRAY, label=[62]), "a label that is not one of 0 to 61: 62"),
    (dict(RIGHT, image=IMAGE[3:]), "image"),
    (dict(RIGHT, image=[5 * v for v in IMAGE]), "an image from 100 to 405"),
    (dict(RIGHT, image=IMAGE, smiling=[2]), "smiling must be 0 or 1"),
]


@pytest.mark.parametrize(("proto", "message"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_forged_examples(write, proto, message):
    name, split, file = "femnist", "all_train", NAME
    if isinstance(proto, dict) and "image" in proto:
        name, split, file = "celeba", "split_by_examples_train", "celeba.sqlite"
    proto = example(**proto) if isinstance(proto, dict) else proto
    path = write([("a", split, proto)], name=file)
    assert_not_loaded(
        name, path.parent, *(f"{path}: client a: ", message), source="tff"
    )


def test_faces(write):
    """Resized as Pillow does, clients sorted, split by examples and not by clients."""
    pixels = np.random.RandomState(0).randint(0, 256, (4, 84, 84, 3))
    parts = ("7", "test", {}), ("7", "train", {"smiling": [0]}), ("20", "train", {})
    rows = [
        (
            client,
            f"split_by_examples_{part}",
            example(**{**RIGHT, **attributes}, image=image),
        )
        for (client, part, attributes), image in zip(
            (*parts, ("20", "test", {"blurry": [0]})), pixels.reshape(4, -1).tolist()
        )
    ]
    rows.append(("7", "split_by_clients_train", rows[0][2]))
    path = write(rows, name="celeba.sqlite")
    data = leaf_data.load("celeba", path.parent, source="tff")
    assert data.options["client_rule"] == "as_split"
    assert data.client_ids == ("20", "7") and data.origin.source == "TFF's CelebA"
    train, test = data.train_examples, data.test_examples
    for examples, order in ((train, (2, 1)), (test, (3, 0))):
        assert examples.sizes.tolist() == [1, 1]
        for x, k in zip(examples.x, order):
            image = Image.fromarray(pixels[k].astype(np.uint8))
            expected = np.asarray(image.resize((64, 64), Image.BICUBIC))
            np.testing.assert_array_equal(x, expected)
    assert train.y.tolist() == [1, 0]
    assert train.attributes["sharp"].tolist() == [0, 0]
    assert test.attributes["sharp"].tolist() == [1, 0]


def test_passages_of_roles(write, caplog):
    """Those of a role and a part are one text; roles with too little are excluded."""
    rows = [
        ("KENT", "train", b"x" * 50 + b"\n" + b"y" * 30),
        ("FOOL", "train", b"z" * 80),
        ("KENT", "train", b"w {"),
        ("FOOL", "test", b"z" * 80),
        ("LEAR", "test", b"z" * 82),
    ]
    rows = [(client, part, example(snippets=[text])) for client, part, text in rows]
    path = write(rows, name="shakespeare.sqlite")
    data = leaf_data.load("shakespeare", path.parent, source="tff")
    assert data.client_ids == ("KENT", "LEAR")
    words = data.vocabulary
    texts = [words.decode(x) for x in data.train_examples.x]
    text = "x" * 50 + " " + "y" * 30 + " w "  # 84 letters, but for the brace.
    assert texts == [text[k : k + 80] for k in range(4)]
    assert [words.tokens[y] for y in data.train_examples.y] == [*"y w "]
    assert [words.tokens[y] for y in data.test_examples.y] == ["z", "z"]
    line = "excluded 1 of 7 examples with letters that are not among LEAF's 80: '{'"
    assert line in caplog.text and data.origin.source == f"TFF's Shakespeare, {line}"


def test_tffs_cache_and_download(tmp_path, database, monkeypatch):
    database, _ = database
    data = database.read_bytes()
    database.unlink()
    calls = []

    def opened(origin):
        calls.append(origin)
        stream = io.BytesIO(lzma.compress(data, lzma.FORMAT_ALONE))
        stream.headers = {"content-length": None}
        return stream

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    for _ in range(2):
        assert _load(None).origin.source == "TFF's EMNIST (its download)"
    assert [origin.split("/")[-1] for origin in calls] == [NAME + ".lzma"]
    assert (tmp_path / "home" / ".tff" / NAME).read_bytes() == data
    _load(None, cache_dir=tmp_path / "caches")
    assert (tmp_path / "caches" / NAME).read_bytes() == data


def test_a_download_that_fails_is_one_line(tmp_path, monkeypatch):
    def offline(folder):
        raise urllib.error.URLError("no route\nto host")

    changed = dataclasses.replace(femnist.DATABASE, download=offline)
    monkeypatch.setattr(femnist, "DATABASE", changed)
    # A folder that is given is never downloaded for.
    words = f"femnist: no data in {tmp_path} or {tmp_path / 'femnist'}: looked for "
    assert_refused(lambda: _load(tmp_path), f"{words}{NAME} or {NAME}.lzma")
    words = f"{NAME}: TFF could not download it: pass data_dir (<urlopen"
    assert_refused(lambda: _load(None), words)
