"""`celeba` of its own files and of LEAF's JSON: clients, cache, images, refusals."""

import hashlib
import os

import numpy as np
import pytest
from leaf_documents import write_leaf
from made_up import assert_refused
from PIL import Image

import leaf_data
from leaf_data.datasets import celeba_clients
from leaf_data.formats import image_folder

pytestmark = pytest.mark.usefixtures("empty_home")

# A small CelebA of 60 photos. Photo k, from 1: whose it is, what it shows, and its one
# color, which says both.
COUNT = 60
HEADER = "5_o_Clock_Shadow Blurry Male Smiling Young"
# What LEAF's JSON and TFF's database hold of them, already split.
TRAIN = {"20": [7, 1, 13], "60": [5, 11, 17, 23]}
TEST = {"20": [19], "60": [29]}
STRICT = {"client_rule": "reference_code", "missing_images": "refuse"}


def load(folder, **options):
    return leaf_data.load("celeba", folder, **options)


def identity(k):
    return 10 * (1 + k % 6)  # 10 photos each of 10, 20, ... 60.


def photos_of(i):
    return [k for k in range(1, COUNT + 1) if identity(k) == i]


def smiling(k):
    return k % 3 == 0


def blurry(k):
    return k % 4 == 0


def color(k):
    return (k, identity(k), 255 * smiling(k))


def name(k):
    return f"{k:06d}.jpg"


def write_identities(folder, edit=lambda lines: lines):
    numbers = range(1, COUNT + 1)
    lines = [f"{name(k)} {identity(k)}" for k in numbers]
    (folder / "identity_CelebA.txt").write_text("\n".join(edit(lines)) + "\n")


def write_attributes(folder, edit=lambda lines: lines):
    lines = [str(COUNT), HEADER + " "]
    for k in range(1, COUNT + 1):
        bits = [1, 1 if blurry(k) else -1, -1, 1 if smiling(k) else -1, 1]
        lines.append(f"{name(k)} {' '.join(f'{bit:2d}' for bit in bits)}")
    path = folder / "list_attr_celeba.txt"
    path.write_text("\r\n".join(edit(lines)) + "\r\n")


def write_json(path, users, change=lambda data: data):
    """LEAF's JSON: labels are floats, as (-1 + 1) / 2 and (1 + 1) / 2 in Python."""
    data = {
        user: dict(x=list(map(name, p)), y=[float(smiling(k)) for k in p])
        for user, p in users.items()
    }
    return write_leaf(path, change(data))


def photos(examples, client):
    """Which photos a client's examples are, by their color; the rest is checked."""
    arrays = examples.client(client)
    images = arrays["x"]
    assert images.shape[1:] == (64, 64, 3)
    assert (images == images[:, :1, :1]).all()
    numbers = images[:, 0, 0, 0].tolist()
    for k, image, y, sharp in zip(numbers, images, arrays["y"], arrays["sharp"]):
        assert tuple(image[0, 0]) == color(k)
        assert str(identity(k)) == client
        assert (y, sharp) == (smiling(k), not blurry(k))
    return numbers


def all_photos(data):
    return {
        client: [
            photos(examples, client)
            for examples in (data.train_examples, data.test_examples)
        ]
        for client in data.client_ids
    }


@pytest.fixture
def raw(tmp_path):
    """LEAF's raw layout; PNG, as LEAF's users have it, where the text says .jpg."""
    folder = tmp_path / "data" / "raw"
    (folder / "img_align_celeba").mkdir(parents=True)
    for k in range(1, COUNT + 1):
        image = Image.new("RGB", (17, 21), color(k))
        image.save(folder / "img_align_celeba" / f"{k:06d}.png")
    write_identities(folder)
    write_attributes(folder)
    return folder


@pytest.mark.parametrize("rule", celeba_clients.RULES)
def test_the_raw_layout(raw, tmp_path, rule):
    order = dict.fromkeys(identity(k) for k in range(1, COUNT + 1))
    # As the identity file has them first.
    photos = {str(i): np.array(photos_of(i)) for i in order}
    expected = celeba_clients.RULES[rule](photos, 4)
    for folder in (tmp_path, tmp_path / "data", raw):
        data = load(folder, client_rule=rule, seed=4)
        photos_by_part = all_photos(data)
        assert list(photos_by_part) == list(expected)
        for client, parts in expected.items():
            assert photos_by_part[client] == [part.tolist() for part in parts]
    assert data.name == "celeba"
    assert data.num_classes == 2
    options = dict(client_rule=rule, source="raw", missing_images="skip", seed=4)
    assert data.options == options
    assert str(data.pixel_convention) == "photograph"
    assert data.origin.source == "CelebA's files"
    digests = dict(data.origin.files)
    for name in ("identity_CelebA.txt", "list_attr_celeba.txt"):
        assert digests[name] == hashlib.sha256((raw / name).read_bytes()).hexdigest()
    assert data.train_examples.attributes["sharp"].dtype == np.uint8


def test_images_are_decoded_once(raw, tmp_path, monkeypatch, caplog):
    first = load(raw)
    assert first.options["client_rule"] == "paper"
    assert sum(first.train_examples.sizes) == 24  # 0.8 of 30.
    assert (raw / "celeba_cache" / "celeba").is_dir()
    monkeypatch.setattr(image_folder, "_decode", None)  # From here on the cache.
    again = load(raw, client_rule="reference_code", seed=2)
    assert again.origin == first.origin
    all_photos(again)
    monkeypatch.undo()
    changed = raw / "img_align_celeba" / "000002.png"
    Image.new("RGB", (17, 21), (9, 9, 9)).save(changed)
    os.utime(changed, ns=(1, 1))
    assert load(raw).origin != first.origin
    load(raw, cache_dir=tmp_path / "caches")
    assert list((tmp_path / "caches" / "celeba_cache").iterdir())
    assert not caplog.records  # Nothing to warn of.


def test_missing_images_are_counted_and_skipped(raw, caplog):
    complete = all_photos(load(raw, client_rule="reference_code"))
    first, second, third = complete
    gone = [complete[first][0][0], *complete[second][0], *complete[third][1]]
    for k in gone:
        (raw / "img_align_celeba" / f"{k:06d}.png").unlink()
    words = (
        f"INCOMPLETE: {30 - len(gone)} of the 30 images of its clients are there, "
        "1 of 3 clients left"
    )
    caplog.clear()
    data = load(raw, client_rule="reference_code")
    # One lost a photo. The others lost all of a part, and are excluded.
    assert all_photos(data) == {first: [complete[first][0][1:], complete[first][1]]}
    assert [words in record.message for record in caplog.records] == [True]
    assert words in data.describe()
    assert words in data.origin.source
    assert_refused(lambda: load(raw, **STRICT), raw / "img_align_celeba", words)


def test_missing_images_of_excluded_and_of_all_clients(raw, caplog):
    clients = all_photos(load(raw, client_rule="reference_code"))

    def remove(of_clients):
        for k in range(1, COUNT + 1):
            if (str(identity(k)) in clients) == of_clients:
                (raw / "img_align_celeba" / f"{k:06d}.png").unlink()

    remove(False)
    assert all_photos(load(raw, **STRICT)) == clients
    assert not caplog.records
    remove(True)
    other = next(i for i in range(10, 70, 10) if str(i) not in clients)
    Image.new("RGB", (5, 5)).save(raw / "img_align_celeba" / "000061.png")
    write_identities(raw, lambda lines: [*lines, f"000061.png {other}"])
    write_attributes(raw, lambda lines: ["61", *lines[1:], "000061.png" + " 1" * 5])
    words = "INCOMPLETE: 0 of the 30 images of its clients are there, 0 of 3 clients"
    assert_refused(lambda: load(raw, client_rule="reference_code"), words)


def test_invalid_folders_are_rejected(raw):
    (raw / "list_attr_celeba.txt").unlink()
    words = raw / "list_attr_celeba.txt", "No such file"
    assert_refused(lambda: load(raw), *words)
    for path in (raw / "img_align_celeba").iterdir():
        path.unlink()
    write_attributes(raw)
    assert_refused(
        lambda: load(raw), "img_align_celeba: contains no .jpg or .png image"
    )


def _line(number, text):
    return lambda lines: [*lines[: number - 1], text, *lines[number:]]


ATTRIBUTES, IDENTITIES = "list_attr_celeba.txt", "identity_CelebA.txt"
FILES = [
    (ATTRIBUTES, _line(2, "Blurry Male Young"), "line 2 has no column Smiling"),
    (ATTRIBUTES, _line(2, "Blurry Male Smiling"), "appears twice"),
    (ATTRIBUTES, lambda lines: lines[:-1], "line 1 is ['60'], but 59 photos follow"),
    (ATTRIBUTES, _line(5, "000003.jpg 1 -1 1 0 1"), "'000003.jpg': Smiling must be"),
    (ATTRIBUTES, _line(5, "000003.jpg 1 -1"), "'000003.jpg': Smiling must be 1 or"),
    (ATTRIBUTES, _line(5, "000003.jpg 1 -1 1 1 1 1"), "cannot be read (Error tokeniz"),
    (ATTRIBUTES, _line(5, "000001.jpg 1 -1 1 1 1"), "'000001' appears twice"),
    (IDENTITIES, _line(3, "000003.jpg Ann"), "'000003.jpg': identity must be a num"),
    (IDENTITIES, _line(3, "000003.jpg"), "'000003.jpg': identity must be a number"),
    (IDENTITIES, lambda lines: [], "contains no photo"),
    (IDENTITIES, lambda lines: lines[1:], "'000001' is in only one of "),
]


@pytest.mark.parametrize(("name", "edit", "message"), FILES, ids=range(len(FILES)))
def test_invalid_files_are_rejected(raw, name, edit, message):
    write = write_identities if name == IDENTITIES else write_attributes
    write(raw, edit)
    where = raw if "only one" in message else raw / name
    assert_refused(lambda: load(raw), f"{where}: ", message)


@pytest.fixture
def split(raw):
    """What LEAF's preprocess.sh leaves: the folders raw, train and test."""
    name = "all_data_niid_05_keep_5_{}_8.json"
    train = write_json(raw.parent / "train" / name.format("train"), TRAIN)
    write_json(raw.parent / "test" / name.format("test"), TEST)
    return train


def test_leafs_json(split, tmp_path, caplog):
    data = load(tmp_path, source="leaf")
    assert all_photos(data) == {user: [TRAIN[user], TEST[user]] for user in TRAIN}
    assert data.options["client_rule"] == "as_split"
    assert data.origin.source == "LEAF JSON and images"
    digest = hashlib.sha256(split.read_bytes()).hexdigest()
    assert dict(data.origin.files)[split.name] == digest
    assert IDENTITIES not in dict(data.origin.files)  # It is there, and not read.
    assert not caplog.records


def test_leafs_clients_without_test_photos_are_excluded_with_a_warning(
    split, tmp_path, caplog
):
    path = split.parents[1] / "test" / split.name.replace("train", "test")
    (first, *others), none = TEST, dict.fromkeys(TEST, [])
    write_json(path, {**TEST, first: []})
    assert set(load(tmp_path, source="leaf").client_ids) == set(others)
    assert "without train or test photos: 1" in caplog.records[0].message
    write_json(path, none)
    words = "no client has train and test photos"
    assert_refused(lambda: load(tmp_path, source="leaf"), words)


def test_leafs_json_without_the_attributes(split, raw, tmp_path):
    (raw / "list_attr_celeba.txt").unlink()
    data = load(tmp_path, source="leaf")
    assert data.train_examples.attributes == {}
    assert data.train_examples.client("20")["y"].tolist() == [0, 0, 0]
    assert data.train_examples.client("60")["x"][:, 0, 0, 0].tolist() == TRAIN["60"]


def test_leafs_json_that_is_not_split(raw, tmp_path):
    users = {str(i): photos_of(i) for i in range(10, 70, 10)}
    path = write_json(raw.parent / "all_data" / "all_data.json", users)
    data = load(tmp_path, source="leaf", seed=3)
    assert data.options["client_rule"] == "paper"
    rows = {user: np.array(photos) for user, photos in users.items()}
    expected = celeba_clients.paper(rows, 3)
    assert all_photos(data) == {
        user: [part.tolist() for part in parts] for user, parts in expected.items()
    }
    path.parent.rename(raw.parent / "sampled_data")
    assert_refused(lambda: load(tmp_path, source="leaf"), "is sampled but not split")
    write_json(raw.parent / "all_data" / "all_data.json", {"10": [1, 7]})
    words = "no client has train and test photos by client_rule=paper"
    (raw.parent / "sampled_data").rename(raw.parent / "away")
    assert_refused(lambda: load(tmp_path, source="leaf"), words)


@pytest.mark.parametrize(
    ("user", "x", "y", "message"),
    [
        ("20", ["000007.jpg"], [2], "'000007.jpg' has the label 2, not 0 or 1"),
        ("20", ["000007.jpg"], [True], "'000007.jpg' has the label True, not 0 or 1"),
        ("20", [[0.5, 0.5]], [0.0], "x holds [0.5, 0.5], not a photo's name"),
        ("20", ["000999.jpg"], [0.0], "has no photo '000999', which LEAF has"),
        ("20", ["000007.jpg"] * 2, [0.0] * 2, "'000007' appears twice"),
        ("20", ["000019.jpg"], [0.0], "'000019' appears twice"),
    ],
)
def test_invalid_leaf_json_is_rejected(split, tmp_path, user, x, y, message):
    users = {user: [7] * len(x)}
    write_json(split, users, lambda data: {user: {"x": x, "y": y}})
    assert_refused(lambda: load(tmp_path, source="leaf"), message)
