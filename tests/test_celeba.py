"""`celeba` and `drawn_faces`: every source, missing images, every error message."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from small_data import assert_refused

import leaf_data
from leaf_data import celeba_clients, celeba_images, celeba_tff, drawn_faces

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADER = "5_o_Clock_Shadow Blurry Male Smiling Young"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No data by environment, no cache of the user, no download."""
    monkeypatch.delenv("TFF_PMC_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))

    def refuse(folder):
        raise AssertionError("tried to download")

    monkeypatch.setattr(celeba_tff, "_download", refuse)


# Photo k, from 1: whose it is, what it shows, and its one color, which says so.
COUNT = 60


def _identity(k):
    return 10 * (1 + k % 6)  # 10 photos each of 10, 20, ... 60.


def _smiling(k):
    return k % 3 == 0


def _blurry(k):
    return k % 4 == 0


def _color(k):
    return (k, _identity(k), 255 * _smiling(k))


def _name(k):
    return f"{k:06d}.jpg"


@pytest.fixture
def raw(tmp_path):
    """LEAF's raw layout; PNG, as LEAF's users have it, where the text says .jpg."""
    folder = tmp_path / "data" / "raw"
    (folder / "img_align_celeba").mkdir(parents=True)
    for k in range(1, COUNT + 1):
        image = Image.new("RGB", (17, 21), _color(k))
        image.save(folder / "img_align_celeba" / f"{k:06d}.png")
    _write_identities(folder)
    _write_attributes(folder)
    return folder


def _write_identities(folder, edit=lambda lines: lines):
    lines = [f"{_name(k)} {_identity(k)}" for k in range(1, COUNT + 1)]
    (folder / "identity_CelebA.txt").write_text("\n".join(edit(lines)) + "\n")


def _write_attributes(folder, edit=lambda lines: lines):
    lines = [str(COUNT), HEADER + " "]
    for k in range(1, COUNT + 1):
        bits = [1, 1 if _blurry(k) else -1, -1, 1 if _smiling(k) else -1, 1]
        lines.append(f"{_name(k)} {' '.join(f'{bit:2d}' for bit in bits)}")
    (folder / "list_attr_celeba.txt").write_text("\r\n".join(edit(lines)) + "\r\n")


def _load(folder, **options):
    return leaf_data.load("celeba", folder, **options)


def _photos(examples, client):
    """Which photos a client's examples are, by their color; the rest is checked."""
    found = examples.client(client)
    images = found["x"]
    assert images.shape[1:] == (64, 64, 3)
    assert (images == images[:, :1, :1]).all()
    numbers = images[:, 0, 0, 0].tolist()
    for k, image, y, sharp in zip(numbers, images, found["y"], found["sharp"]):
        assert tuple(image[0, 0]) == _color(k)
        assert str(_identity(k)) == client
        assert (y, sharp) == (_smiling(k), not _blurry(k))
    return numbers


def _all_photos(data):
    return {
        client: [
            _photos(examples, client)
            for examples in (data.train_examples, data.test_examples)
        ]
        for client in data.client_ids
    }


@pytest.mark.parametrize("rule", celeba_clients.RULES)
def test_the_raw_layout(raw, tmp_path, rule):
    photos = {
        str(i): np.array([k for k in range(1, COUNT + 1) if _identity(k) == i])
        for i in range(10, 70, 10)
    }
    # As the identity file has them first.
    order = dict.fromkeys(str(_identity(k)) for k in range(1, COUNT + 1))
    photos = {identity: photos[identity] for identity in order}
    expected = celeba_clients.by_name(rule, photos, 4)
    for folder in (tmp_path, tmp_path / "data", raw):
        data = _load(folder, client_rule=rule, seed=4)
        found = _all_photos(data)
        assert list(found) == list(expected)
        for client, parts in expected.items():
            assert found[client] == [part.tolist() for part in parts]
    assert data.name == "celeba"
    assert data.num_classes == 2
    assert data.options == {
        "client_rule": rule,
        "source": "raw",
        "missing_images": "skip",
        "seed": 4,
    }
    assert str(data.pixel_convention) == "photograph"
    assert data.origin.source == "CelebA's files"
    digests = dict(data.origin.files)
    for name in ("identity_CelebA.txt", "list_attr_celeba.txt"):
        assert digests[name] == hashlib.sha256((raw / name).read_bytes()).hexdigest()
    assert data.train_examples.attributes["sharp"].dtype == np.uint8


def test_the_paper_is_the_default(raw):
    assert _load(raw).options["client_rule"] == "paper"
    assert sum(_load(raw).train_examples.sizes) == 24  # 0.8 of 30.


def test_images_are_decoded_once(raw, tmp_path, monkeypatch, caplog):
    first = _load(raw)
    assert (raw / "celeba_cache" / "celeba.npz").is_file()
    monkeypatch.setattr(celeba_images, "to_pixels", None)  # From here on the cache.
    again = _load(raw, client_rule="reference_code", seed=2)
    assert again.origin == first.origin
    _all_photos(again)
    monkeypatch.undo()
    changed = raw / "img_align_celeba" / "000002.png"
    Image.new("RGB", (17, 21), (9, 9, 9)).save(changed)
    os.utime(changed, ns=(1, 1))
    assert _load(raw).origin != first.origin
    _load(raw, cache_dir=tmp_path / "caches")
    assert list((tmp_path / "caches" / "celeba_cache").iterdir())
    assert not caplog.records  # Nothing to warn of.


def test_images_are_resized_whole_and_averaged(tmp_path):
    wide = np.zeros((128, 256, 3), np.uint8)
    wide[:, 128:, 0] = 200  # The right half is red,
    wide[64:, :, 2] = 100  # the lower half blue,
    wide[::2, :, 1] = 255  # and every other line green.
    found = celeba_images.to_pixels(Image.fromarray(wide)).astype(int)
    assert found.shape == (64, 64, 3)
    for (row, column), red, blue in (
        ((10, 10), 0, 0),
        ((10, 53), 200, 0),
        ((53, 10), 0, 100),
        ((53, 53), 200, 100),
    ):
        assert found[row, column, 0] == red
        assert found[row, column, 2] == blue
    assert abs(found[..., 1] - 127.5).max() < 20  # Nearest would be 0 or 255.
    # What has no three channels becomes RGB.
    gray = celeba_images.to_pixels(Image.new("L", (30, 20), 77))
    assert gray.shape == (64, 64, 3) and (gray == 77).all()


def test_missing_images_are_counted_and_skipped(raw, caplog):
    complete = _all_photos(_load(raw, client_rule="reference_code"))
    first, second, third = complete
    gone = [complete[first][0][0], *complete[second][0], *complete[third][1]]
    for k in gone:
        (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    words = (
        f"INCOMPLETE: {30 - len(gone)} of the 30 images of its clients are there, "
        "1 of 3 clients left"
    )
    caplog.clear()
    data = _load(raw, client_rule="reference_code")
    # One lost a photo. The others lost all of a part, and are left out.
    assert _all_photos(data) == {first: [complete[first][0][1:], complete[first][1]]}
    assert [words in record.message for record in caplog.records] == [True]
    assert words in data.describe()
    assert words in data.origin.source
    assert_refused(
        lambda: _load(raw, client_rule="reference_code", missing_images="refuse"),
        raw / "img_align_celeba",
        words,
    )


def test_other_peoples_missing_images_do_not_matter(raw, caplog):
    clients = _all_photos(_load(raw, client_rule="reference_code"))
    for k in range(1, COUNT + 1):
        if str(_identity(k)) not in clients:
            (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    data = _load(raw, client_rule="reference_code", missing_images="refuse")
    assert _all_photos(data) == clients
    assert not caplog.records


def test_no_client_is_left(raw):
    clients = _load(raw, client_rule="reference_code").client_ids
    for k in range(1, COUNT + 1):
        if str(_identity(k)) in clients:
            (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    assert_refused(
        lambda: _load(raw, client_rule="reference_code"),
        "INCOMPLETE: 0 of the 30 images of its clients are there, 0 of 3 clients left",
    )


def test_options_that_are_refused(raw):
    for options, parts in (
        ({"source": "png"}, ["no source 'png': there are raw, leaf, tff"]),
        ({"missing_images": ""}, ["no missing_images '': there are skip, refuse"]),
        ({"client_rule": "leaf"}, ["no client_rule 'leaf'"]),
        ({"seed": -1}, ["seed has to be"]),
        ({"fraction": 1}, ["celeba has no option 'fraction'"]),
        (
            {"client_rule": "reference_code", "source": "leaf"},
            ["client_rule=reference_code needs source=raw, not leaf"],
        ),
    ):
        assert_refused(lambda options=options: _load(raw, **options), *parts)


def _without_column(name):
    return lambda lines: [lines[0], lines[1].replace(name, ""), *lines[2:]]


def _line(number, text):
    return lambda lines: [*lines[: number - 1], text, *lines[number:]]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_without_column("Smiling"), "line 2 has no column Smiling"),
        (_without_column("Blurry"), "line 2 has no column Blurry"),
        (_without_column("Male"), "line 3 has 6 fields, not a photo and 4 attributes"),
        (lambda lines: lines[:-1], "line 1 says 60 photos, 59 follow"),
        (lambda lines: [], "line 2 has no column Smiling"),
        (_line(5, "000003.jpg 1 -1 1 0 1"), "line 5: an attribute is 1 or -1, not '0'"),
        (_line(5, "000001.jpg 1 -1 1 1 1"), "line 5: 000001 is there twice"),
    ],
)
def test_attribute_files_that_are_refused(raw, edit, message):
    _write_attributes(raw, edit)
    assert_refused(lambda: _load(raw), f"{raw / 'list_attr_celeba.txt'}: {message}")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_line(3, "000003.jpg"), "line 3 has to be a photo and a number"),
        (_line(3, "000003.jpg Ann"), "line 3 has to be a photo and a number, not '0"),
        (_line(3, "000001.jpg 10"), "line 3: 000001 is there twice"),
        (lambda lines: [], "lists no photo"),
    ],
)
def test_identity_files_that_are_refused(raw, edit, message):
    _write_identities(raw, edit)
    assert_refused(lambda: _load(raw), f"{raw / 'identity_CelebA.txt'}: {message}")


def test_files_that_disagree_are_refused(raw):
    _write_identities(raw, lambda lines: lines[1:])
    assert_refused(
        lambda: _load(raw), raw, "000001 is in list_attr_celeba.txt, not in ident"
    )
    _write_identities(raw, lambda lines: [*lines, "000099.jpg 10"])
    assert_refused(
        lambda: _load(raw), raw, "000099 is in identity_CelebA.txt, not in list_"
    )
    _write_identities(raw)
    images = raw / "img_align_celeba"
    Image.new("RGB", (5, 5)).save(images / "0001.png")
    assert_refused(
        lambda: _load(raw), images, "0001.png, one of 1 images, is not in identity"
    )
    (images / "0001.png").rename(images / "000001.jpg")
    assert_refused(lambda: _load(raw), images, "holds both 000001.jpg and 000001.png")


def test_corrupt_images_are_named(raw):
    path = raw / "img_align_celeba" / "000007.png"
    for content in (b"", b"text", path.read_bytes()[:60]):
        path.write_bytes(content)
        assert_refused(lambda: _load(raw), f"{path}: cannot be decoded (")
    path.unlink()
    image = Image.fromarray(_noise())
    image.save(path.with_suffix(".jpg"))
    cut = path.with_suffix(".jpg").read_bytes()[:900]
    path.with_suffix(".jpg").write_bytes(cut)
    assert_refused(
        lambda: _load(raw), f"{path.with_suffix('.jpg')}: cannot be decoded ("
    )
    assert not list((raw / "celeba_cache").glob("*.npz"))


def _noise():
    return np.random.RandomState(0).randint(0, 256, (50, 40, 3)).astype(np.uint8)


def test_folders_that_are_refused(raw, tmp_path):
    assert_refused(lambda: _load(None), "pass data_dir or set TFF_PMC_DATA_DIR")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert_refused(lambda: _load(empty), "no img_align_celeba in", empty)
    (raw / "list_attr_celeba.txt").unlink()
    assert_refused(
        lambda: _load(raw), f"{raw}: has img_align_celeba but no list_attr_celeba"
    )
    for path in (raw / "img_align_celeba").iterdir():
        path.unlink()
    _write_attributes(raw)
    assert_refused(lambda: _load(raw), "img_align_celeba: holds no .jpg or .png image")


def test_loading_imports_no_tensorflow(raw):
    code = (
        "import sys, leaf_data\n"
        f"leaf_data.load('celeba', {str(raw)!r})\n"
        "sys.exit('tensorflow' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def _write_json(path, users, change=lambda data: data):
    """LEAF's JSON: labels are floats, as (-1 + 1) / 2 and (1 + 1) / 2 are in Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {
        user: {
            "x": [_name(k) for k in photos],
            "y": [float(_smiling(k)) for k in photos],
        }
        for user, photos in users.items()
    }
    document = {
        "users": list(users),
        "num_samples": [len(photos) for photos in users.values()],
        "user_data": change(data),
    }
    path.write_text(json.dumps(document))
    return path


TRAIN = {"20": [7, 1, 13], "60": [5, 11, 17, 23]}
TEST = {"20": [19], "60": [29]}


@pytest.fixture
def split(raw):
    """What LEAF's preprocess.sh leaves: beside the raw folder, train and test."""
    name = "all_data_niid_05_keep_5_{}_8.json"
    train = _write_json(raw.parent / "train" / name.format("train"), TRAIN)
    _write_json(raw.parent / "test" / name.format("test"), TEST)
    return train


def test_leafs_json(split, tmp_path, caplog):
    data = _load(tmp_path, source="leaf")
    assert _all_photos(data) == {user: [TRAIN[user], TEST[user]] for user in TRAIN}
    assert data.options["client_rule"] == "as_split"
    assert data.origin.source == "LEAF JSON and images"
    assert dict(data.origin.files)[split.name] == (
        hashlib.sha256(split.read_bytes()).hexdigest()
    )
    assert not caplog.records


def test_leafs_json_with_images_missing(split, raw, tmp_path):
    for k in TEST["20"]:
        (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    data = _load(tmp_path, source="leaf")
    assert data.client_ids == ("60",)
    words = "INCOMPLETE: 8 of the 9 images of its clients are there, 1 of 2 clients"
    assert words in data.origin.source
    assert_refused(
        lambda: _load(tmp_path, source="leaf", missing_images="refuse"), words
    )


def test_leafs_json_without_the_attributes(split, raw, tmp_path, caplog):
    (raw / "list_attr_celeba.txt").unlink()
    data = _load(tmp_path, source="leaf")
    assert data.train_examples.attributes == {}
    assert data.train_examples.client("20")["y"].tolist() == [0, 0, 0]
    assert data.train_examples.client("60")["x"][:, 0, 0, 0].tolist() == TRAIN["60"]
    assert ["nothing is known of sharp" in r.message for r in caplog.records] == [True]


def test_leafs_json_that_is_not_split(raw, tmp_path):
    users = {
        str(i): [k for k in range(1, COUNT + 1) if _identity(k) == i]
        for i in range(10, 70, 10)
    }
    path = _write_json(raw.parent / "all_data" / "all_data.json", users)
    data = _load(tmp_path, source="leaf", seed=3)
    assert data.options["client_rule"] == "paper"
    rows = {user: np.array(photos) for user, photos in users.items()}
    expected = celeba_clients.paper(rows, 3)
    assert _all_photos(data) == {
        user: [part.tolist() for part in parts] for user, parts in expected.items()
    }
    path.parent.rename(raw.parent / "sampled_data")
    assert_refused(lambda: _load(tmp_path, source="leaf"), "is sampled but not split")


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
def test_leafs_json_that_is_refused(split, tmp_path, user, x, y, message):
    users = {user: [7] * len(x)}
    _write_json(split, users, lambda data: {user: {"x": x, "y": y}})
    assert_refused(lambda: _load(tmp_path, source="leaf"), f"user {user}: {message}")


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


def _flat(k):
    return np.tile(_color(k), 84 * 84)


def _example(tf, k):
    return _proto(tf, _flat(k), smiling=[_smiling(k)], blurry=[_blurry(k)])


def _write_database(path, rows):
    """A database of TFF's form, of (split, client, proto)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE examples (split_name TEXT, client_id TEXT,"
            " serialized_example_proto BLOB)"
        )
        database.execute(
            "CREATE TABLE client_metadata (client_id TEXT, split_name TEXT,"
            " num_examples INTEGER)"
        )
        database.executemany("INSERT INTO examples VALUES (?, ?, ?)", rows)
        pairs = [(client, split) for split, client, _ in rows]
        database.executemany(
            "INSERT INTO client_metadata VALUES (?, ?, ?)",
            [(*pair, pairs.count(pair)) for pair in sorted(set(pairs))],
        )
    database.close()
    return path


@pytest.fixture
def database(tmp_path, tf):
    rows = [
        (f"split_by_examples_{part}", user, _example(tf, k))
        for part, users in (("test", TEST), ("train", TRAIN))
        for user, photos in reversed(list(users.items()))
        for k in photos
    ]
    # The same examples are there a second time, split by clients.
    rows += [("split_by_clients_train", user, proto) for _, user, proto in rows]
    return _write_database(tmp_path / "data" / "celeba.sqlite", rows)


def test_tffs_database(database):
    data = _load(database.parent, source="tff")
    assert _all_photos(data) == {user: [TRAIN[user], TEST[user]] for user in TRAIN}
    assert data.options["client_rule"] == "as_split"
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    assert data.origin.source == "TFF's CelebA"
    assert data.origin.files == (("celeba.sqlite", digest),)
    assert (database.parent / "celeba_tff_cache" / "celeba_tff.npz").is_file()


def test_tffs_database_is_read_as_tff_reads_it(tmp_path, tf):
    tff = pytest.importorskip("tensorflow_federated")
    image = np.random.RandomState(0).randint(0, 256, 84 * 84 * 3)
    path = _write_database(
        tmp_path / "celeba.sqlite",
        [
            ("split_by_examples_train", "7", _proto(tf, image)),
            ("split_by_examples_test", "7", _proto(tf, image)),
        ],
    )
    found = _load(tmp_path, source="tff").train_examples.client("7")
    theirs = tff.simulation.datasets.SqlClientData(str(path), "split_by_examples_train")
    (proto,) = theirs.create_tf_dataset_for_client("7").as_numpy_iterator()
    spec = {"image": tf.io.FixedLenFeature((84, 84, 3), tf.int64)}
    parsed = tf.io.parse_single_example(proto, spec)["image"].numpy()
    resized = Image.fromarray(parsed.astype(np.uint8)).resize((64, 64), Image.BICUBIC)
    np.testing.assert_array_equal(found["x"][0], np.asarray(resized))


def test_tffs_download_is_asked_for_by_its_name(tmp_path, database, monkeypatch):
    content = database.read_bytes()

    def download(folder):
        with open(os.path.join(folder, "celeba.sqlite"), "wb") as file:
            file.write(content)

    monkeypatch.setattr(celeba_tff, "_download", download)
    data = _load(None, source="tff")
    assert data.origin.source == "TFF's CelebA (its download)"
    assert (tmp_path / "home" / ".tff" / "celeba.sqlite").is_file()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert_refused(
        lambda: _load(empty, source="tff"), "celeba: no celeba.sqlite or celeba."
    )


def test_databases_that_are_refused(tmp_path, tf):
    flat = _flat(1)
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
        _write_database(path, [("split_by_examples_train", "20", proto)])
        assert_refused(
            lambda: _load(tmp_path, source="tff"), f"{path}: client 20: ", message
        )


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """240 drawings or so of 12 people."""
    folder = tmp_path_factory.mktemp("drawn")
    drawn_faces.write(str(folder), 12, 20, seed=1)
    return folder


def test_drawn_faces_say_what_they_are(drawn, tmp_path):
    data = leaf_data.load("celeba", drawn, cache_dir=tmp_path)
    assert data.name == "drawn_faces"
    assert "drawn faces, no photographs" in data.describe()
    assert "pixels: drawing, no photograph" in data.describe()
    names = os.listdir(drawn / "img_align_celeba")
    assert all(name.startswith("drawn_") for name in names)


def test_drawn_faces_are_the_same_again(drawn, tmp_path):
    drawn_faces.write(str(tmp_path), 12, 20, seed=1)
    for folder in ("", "img_align_celeba"):
        for path in (drawn / folder).iterdir():
            if path.is_file():
                other = tmp_path / folder / path.name
                assert other.read_bytes() == path.read_bytes()
    drawn_faces.write(str(tmp_path / "other"), 12, 20, seed=2)
    name = "img_align_celeba/drawn_000001.png"
    other = (tmp_path / "other" / name).read_bytes()
    assert other != (drawn / name).read_bytes()


def test_drawn_clients_differ(drawn):
    attributes = [
        line.split()
        for line in (drawn / "list_attr_celeba.txt").read_text().split("\n")
    ][2:-1]
    identities = [
        line.split()[1]
        for line in open(drawn / "identity_CelebA.txt", encoding="utf-8")
    ]
    sizes = np.unique(identities, return_counts=True)[1]
    assert len(sizes) == 12
    assert sizes.min() >= 10 and sizes.max() <= 30 and len(set(sizes)) > 4
    smiles = {}
    for identity, (_, _, smiling) in zip(identities, attributes):
        smiles.setdefault(identity, []).append(smiling == "1")
    rates = [np.mean(values) for values in smiles.values()]
    assert max(rates) - min(rates) > 0.3


def _pixels(examples):
    return examples.x.reshape(examples.num_examples, -1) / 255.0


def test_a_linear_classifier_sees_the_smile():
    data = leaf_data.load("drawn_faces", num_identities=30, images_per_identity=16)
    train, test = data.train_examples, data.test_examples
    x, mean = _pixels(train), _pixels(train).mean(axis=0)
    kernel = (x - mean) @ (x - mean).T + 50 * np.eye(len(x))
    weights = (x - mean).T @ np.linalg.solve(kernel, train.y - train.y.mean())
    predicted = (_pixels(test) - mean) @ weights + train.y.mean() > 0.5
    majority = max(test.y.mean(), 1 - test.y.mean())
    assert np.mean(predicted == test.y) > majority + 0.1


def test_blurred_drawings_are_blurred():
    data = leaf_data.load("drawn_faces", num_identities=20, images_per_identity=12)
    x, sharp = data.train_examples.x, data.train_examples.attributes["sharp"]
    edges = np.abs(np.diff(x.astype(float), axis=2)).max(axis=(1, 2, 3))
    assert 0 < sharp.mean() < 1
    assert np.median(edges[sharp == 1]) > 1.5 * np.median(edges[sharp == 0])


def test_the_registered_stand_in():
    data = leaf_data.load("drawn_faces", num_identities=6, images_per_identity=10)
    assert data.name == "drawn_faces"
    assert data.element_shape == (64, 64, 3)
    assert data.options == {
        "client_rule": "paper",
        "num_identities": 6,
        "images_per_identity": 10,
        "seed": 0,
    }
    assert "drawn faces, no photographs" in str(data.origin)
    assert data.origin.folder == ""
    again = leaf_data.load("drawn_faces", num_identities=6, images_per_identity=10)
    np.testing.assert_array_equal(data.test_examples.x, again.test_examples.x)
    assert data.origin == again.origin


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_identities": 1}, "num_identities has to be an integer from 2, not 1"),
        (
            {"num_identities": 2.5},
            "num_identities has to be an integer from 2, not 2.5",
        ),
        ({"images_per_identity": 0}, "images_per_identity has to be an integer from 1"),
        ({"num_identities": 4, "images_per_identity": 2}, "keeps none of the 4"),
        ({"client_rule": "all"}, "no client_rule 'all'"),
        ({"seed": "x"}, "seed has to be an integer"),
    ],
)
def test_drawings_that_are_refused(options, message):
    assert_refused(lambda: leaf_data.load("drawn_faces", **options), message)


@pytest.fixture(scope="module")
def real_folder():
    folder = os.environ.get("TFF_PMC_DATA_DIR")
    if not folder or not os.path.isdir(os.path.join(folder, "celeba", "data", "raw")):
        pytest.skip("needs CelebA: set TFF_PMC_DATA_DIR to its folder")
    return folder


@pytest.fixture(scope="module")
def caches(tmp_path_factory):
    return tmp_path_factory.mktemp("caches")


def test_real_photos(real_folder, caches):
    data = _load(real_folder, client_rule="reference_code", cache_dir=caches)
    assert data.name == "celeba"
    train, test = data.train_examples, data.test_examples
    assert train.x.shape[1:] == (64, 64, 3)
    total = train.num_examples + test.num_examples
    if total < 96417:
        words = f"{total:,} of the 96,417 images"
        assert words in data.describe()
        assert "of 4,168 clients left" in data.describe()
    assert 0.3 < train.y.mean() < 0.7
    assert 0.8 < train.attributes["sharp"].mean() < 1
    # Faces: brighter in the middle than black, and not all the same.
    assert 40 < train.x.mean() < 200 and train.x.std() > 30


def test_the_5898_real_photos(real_folder, caches):
    folder = os.path.join(real_folder, "celeba", "data", "raw", "img_align_celeba")
    if len(os.listdir(folder)) != 5898:
        pytest.skip("other photos than those of the counts below")
    data = _load(real_folder, client_rule="reference_code", cache_dir=caches)
    assert data.train_examples.num_clients == 121
    assert data.train_examples.num_examples == 2130
    assert data.test_examples.num_examples == 529
