"""Readers of federations: LEAF's JSON, TFF's databases, and stores."""

from __future__ import annotations

import functools
import json
import lzma
import pathlib
import sqlite3
import tempfile

import numpy as np
from database_mutations import edit_database
from fuzzing import register
from mutations import edit_json, flip
from PIL import Image

import leaf_data

PIXELS = 28 * 28


def _document(users):
    """LEAF's document of users' `x` and `y`."""
    sizes = [len(data["y"]) for data in users.values()]
    document = {"users": list(users), "num_samples": sizes, "user_data": users}
    return json.dumps(document).encode()


def _digits(number):
    """A user's images, of few values, so that the text is short."""
    x = [[k % 2] * number + [0.25] + [1] * (PIXELS - number - 1) for k in range(3)]
    return {"x": x, "y": [number, 61, 0]}


def _leaf_seeds():
    return [_document({name: _digits(k) for k, name in enumerate("abc")})]


def _put_leaf(folder, data):
    path = folder / "all_data" / "all_data_0.json"
    path.parent.mkdir()
    path.write_bytes(data)


def _check_clients(data):
    """What holds of whatever is loaded: images and labels in range, names right."""
    for examples in (data.train_examples, data.test_examples):
        assert examples.num_examples == examples.sizes.sum()
        for name in data.client_ids:
            assert 0 < len(name) <= 256 and "\n" not in name and "\0" not in name
    return data


def _read_leaf(folder, data):
    _put_leaf(folder, data)
    loaded = _check_clients(leaf_data.load("femnist", folder))
    document = json.loads(data.decode("utf-8-sig"))
    held = document["user_data"]
    users = dict.fromkeys(document["users"])
    kept = [user for user in users if len(held[user]["y"]) > 1]
    assert list(loaded.client_ids) == kept
    for user in kept:
        own = [e.client(user) for e in (loaded.train_examples, loaded.test_examples)]
        found = sorted(
            (x.tobytes(), y) for part in own for x, y in zip(part["x"], part["y"])
        )
        expected = [
            (np.rint(255 * np.array(x, np.float64)).astype(np.uint8).tobytes(), y)
            for x, y in zip(held[user]["x"], held[user]["y"])
        ]
        assert found == sorted(expected)


register("leaf_femnist", _leaf_seeds, edit_json, _read_leaf)


def _photos_seeds():
    users = {
        str(user): {
            "x": [f"{5 * user + k:06d}.jpg" for k in range(5)],
            "y": [float(k % 2) for k in range(5)],
        }
        for user in range(3)
    }
    return [_document(users)]


def _read_photos(folder, data):
    _put_leaf(folder, data)
    images = folder / "raw" / "img_align_celeba"
    images.mkdir(parents=True)
    for number in range(15):
        image = Image.new("RGB", (4, 4), (number, 0, 0))
        image.save(images / f"{number:06d}.png")
    loaded = _check_clients(leaf_data.load("celeba", folder, source="leaf"))
    held = json.loads(data.decode("utf-8-sig"))["user_data"]
    for examples in (loaded.train_examples, loaded.test_examples):
        for user in loaded.client_ids:
            own = examples.client(user)
            labels = {
                name.split(".")[0]: label
                for name, label in zip(held[user]["x"], held[user]["y"])
            }
            names = [f"{number:06d}" for number in own["x"][:, 0, 0, 0].tolist()]
            assert [labels[name] for name in names] == list(own["y"])


register("leaf_celeba", _photos_seeds, edit_json, _read_photos)


def _example(**features):
    """A serialized example of floats or integers."""
    import tensorflow as tf

    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        floats = isinstance(values[0], float)
        (feature.float_list if floats else feature.int64_list).value.extend(values)
    return example.SerializeToString(deterministic=True)


def _database(rows):
    """The bytes of a database of TFF's form, of rows of client, split and example."""
    with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
        path = pathlib.Path(folder, "seed.sqlite")
        database = sqlite3.connect(path)
        for table in (
            "examples (client_id TEXT, split_name TEXT, serialized_example_proto BLOB)",
            "client_metadata (client_id TEXT, split_name TEXT, num_examples INTEGER)",
        ):
            database.execute(f"CREATE TABLE {table}")
        database.executemany("INSERT INTO examples VALUES (?, ?, ?)", rows)
        database.execute(
            "INSERT INTO client_metadata SELECT client_id, split_name, count(*) "
            "FROM examples GROUP BY client_id, split_name"
        )
        database.commit()
        database.close()
        return path.read_bytes()


def _emnist_seeds():
    rows = []
    for number, client in enumerate("aabbc"):
        split = "all_test" if number % 2 else "all_train"
        proto = _example(pixels=[number / 4] * PIXELS, label=[5])
        rows.append((client, split, proto))
    return [_database(rows)]


def _reader(data_set, name):
    """The reader of a database of TFF's, under the name of its file."""

    def read(folder, data):
        (folder / name).write_bytes(data)
        _check_clients(leaf_data.load(data_set, folder, source="tff"))

    return read


_read_emnist = _reader("femnist", "emnist_all.sqlite")
register("emnist_sqlite", _emnist_seeds, edit_database, _read_emnist)


def _faces_seeds():
    image = (np.arange(84 * 84 * 3) % 128).tolist()
    proto = _example(image=image, smiling=[1], blurry=[1], young=[1])
    parts = ("train", "test", "train")
    return [_database([("7", f"split_by_examples_{part}", proto) for part in parts])]


_read_faces = _reader("celeba", "celeba.sqlite")
register("celeba_sqlite", _faces_seeds, edit_database, _read_faces)


def _packed_seeds():
    (seed,) = _emnist_seeds()
    forms = (lzma.FORMAT_ALONE, lzma.FORMAT_XZ)
    return [lzma.compress(seed, form) for form in forms]


@functools.lru_cache
def _zeros(size):
    return lzma.compress(bytes(size), lzma.FORMAT_ALONE, preset=0)


def _edit_packed(source, data):
    if source.random() < 0.5:
        return flip(source, data)
    packed = _zeros(source.choice((1, 1 << 20, 1 << 27)))
    return packed + source.choice((b"", data))


_read_packed = _reader("femnist", "emnist_all.sqlite.lzma")
register("sqlite_lzma", _packed_seeds, _edit_packed, _read_packed)


@functools.cache
def _store():
    """The files of a small store, by name."""
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    clients = [(name, x, np.arange(6) % 3) for name in ("a", "bb", "ü")]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "store")
        leaf_data.write_store(clients, path, test_fraction=0.5)
        return {file.name: file.read_bytes() for file in path.iterdir()}


def _read_store(name, folder, data):
    for file, content in {**_store(), name: data}.items():
        (folder / file).write_bytes(content)
    loaded = _check_clients(leaf_data.open_store(folder))
    loaded.describe()
    for examples in (loaded.train_examples, loaded.test_examples):
        for client in loaded.client_ids:
            own = examples.client(client)
            assert len(own["x"]) == len(own["y"])
            assert ((own["y"] >= 0) & (own["y"] < loaded.num_classes)).all()


for _name, _mutate in {
    "header.json": edit_json,
    "client_ids.npy": flip,
    "train_row_splits.npy": flip,
    "test_y.npy": flip,
}.items():
    register(
        f"store_{_name.partition('.')[0]}",
        functools.partial(lambda name: [_store()[name]], _name),
        _mutate,
        functools.partial(_read_store, _name),
    )
