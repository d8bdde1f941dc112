"""`cifar10`: python batches and image folders, their clients, missing ones."""

import hashlib
import struct

import numpy as np
import pytest
from made_up import assert_not_loaded
from PIL import Image

import leaf_data
from leaf_data.datasets import cifar10, partitioned
from leaf_data.formats import image_folder

# A tiny CIFAR-10: 40 images a batch. Classes as in the real one.
SIZE = 40

NAMES = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]


CLASSES = "airplane automobile bird cat deer dog frog horse ship truck".split()


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(cifar10, "_BATCH_SIZE", SIZE)
    monkeypatch.delenv("TFF_PMC_DATA_DIR", raising=False)


def _batch(number):
    """A batch as CIFAR-10 stores it, in planes, and its labels.

    Red is the batch, green the place in it, and blue zero but for one pixel.
    """
    data = np.zeros((SIZE, 3, 32, 32), np.uint8)
    data[:, 0] = 10 * number
    data[:, 1] = np.arange(SIZE)[:, None, None]
    data[:, 2, 0, 1] = 255  # Row 0, column 1.
    labels = np.random.default_rng(number).permutation(np.arange(SIZE) % 10)
    return data.reshape(SIZE, 3072), labels.tolist()


def _python_2_pickle(data, labels):
    """The pickle by hand: text of one byte a character, none of Python 3's detours."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    raw, (rows, columns) = data.tobytes(), data.shape
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
        + text(b"b")
        + b"\x87R(K\x01"
        + struct.pack("<cHcH", b"M", rows, b"M", columns)
        + (b"\x86cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R")
        + (b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
        + (b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb")
    )
    listed = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + listed + b"u."


@pytest.fixture
def write(monkeypatch):
    """Writes a file, which from then on is what CIFAR-10's has to be."""

    def write(path, content):
        path.write_bytes(content)
        monkeypatch.setitem(
            cifar10._BATCHES, path.name, hashlib.md5(content).hexdigest()
        )

    return write


@pytest.fixture
def write_batches(write):
    def write_all(folder):
        folder.mkdir(exist_ok=True)
        for number, name in enumerate(NAMES, 1):
            write(folder / name, _python_2_pickle(*_batch(number)))

    return write_all


def _write_images(folder, suffix=".png"):
    """4 test and 20 training images a class: red is the class, green the number."""
    for part, count in (("train", 20), ("test", 4)):
        for label, name in enumerate(CLASSES):
            place = folder / part / name
            place.mkdir(parents=True)
            for number in range(count):
                color = (label, number, 255 if part == "test" else 0)
                image = Image.new("RGB", (32, 32), color)
                image.save(place / f"{number:04d}{suffix}")


@pytest.mark.parametrize(
    ("num_clients", "place"), [(3, ""), (4, "cifar-10-batches-py"), (4, "cifar10")]
)
def test_four_batches_are_clients_and_the_fifth_is_the_servers(
    tmp_path, num_clients, place, write_batches
):
    write_batches(tmp_path / place)
    data = leaf_data.load("cifar10", tmp_path, num_clients=num_clients)
    assert data.client_ids == ("C1", "C2", "C3", "C4")[:num_clients]
    assert data.element_shape == (32, 32, 3)
    for number in range(1, num_clients + 1):
        client = data.train_examples.client(f"C{number}")
        assert np.unique(client["x"][..., 0]).tolist() == [10 * number]
        np.testing.assert_array_equal(client["x"][:, 5, 5, 1], np.arange(SIZE))
        assert client["y"].tolist() == _batch(number)[1]
        blue = client["x"][0, :, :, 2]
        assert blue[0, 1] == 255 and np.count_nonzero(blue) == 1
    server = data.server_examples
    assert np.unique(server.x[..., 0]).tolist() == [50]
    assert server.y.tolist() == _batch(5)[1]

    test = data.test_examples
    assert sorted(test.x[:, 0, 0, 1]) == list(range(SIZE))
    labels = np.array(_batch(6)[1])
    np.testing.assert_array_equal(test.y, labels[test.x[:, 0, 0, 1]])
    assert max(test.sizes) - min(test.sizes) == (num_clients == 3)
    for k in range(num_clients):
        assert len(set(test.client(k)["y"])) == 10
    assert "python batches" in data.origin.source
    assert len(data.origin.files) == 6


def test_image_folders_deal_the_batches_by_class(tmp_path):
    _write_images(tmp_path)

    def load(seed):
        return leaf_data.load("cifar10", tmp_path, seed=seed)

    data = load(1)
    seen = []
    for examples in (
        *map(data.train_examples.client, range(4)),
        data.server_examples.client(0),
    ):
        assert np.bincount(examples["y"]).tolist() == [4] * 10  # Of each class.
        np.testing.assert_array_equal(examples["x"][:, 9, 9, 0], examples["y"])
        seen += zip(examples["y"].tolist(), examples["x"][:, 9, 9, 1].tolist())
    assert sorted(seen) == [(label, n) for label in range(10) for n in range(20)]
    test = data.test_examples
    assert np.unique(test.x[..., 2]).tolist() == [255]
    assert test.num_examples == SIZE
    assert [len(set(test.client(k)["y"])) for k in range(4)] == [10] * 4
    np.testing.assert_array_equal(load(1).train_examples.x, data.train_examples.x)
    for part in ("train_examples", "test_examples"):
        assert getattr(load(2), part).x.tobytes() != getattr(data, part).x.tobytes()
    assert "dealt at random" in data.describe()
    assert str(data.pixel_convention) == "photograph"


@pytest.mark.parametrize("images", [False, True])
def test_all_training_images_are_dealt(images, tmp_path, monkeypatch, write_batches):
    """Each image is somebody's once, and the classes take turns in the tests."""
    monkeypatch.setattr(partitioned, "_NUM_CLIENTS", 4)
    _write_images(tmp_path) if images else write_batches(tmp_path)
    options = {"partition": "dirichlet", "dirichlet_alpha": 0.1}
    data = leaf_data.load("cifar10_dealt", tmp_path, **options)
    whole = leaf_data.load("cifar10", tmp_path)
    pool = [*whole.train_examples.x, *whole.server_examples.x]
    for examples, all_of in (
        (data.train_examples, pool),
        (data.test_examples, whole.test_examples.x),
    ):
        assert sorted(x.tobytes() for x in examples.x) == sorted(
            x.tobytes() for x in all_of
        )
    assert [len(set(data.test_examples.client(k)["y"])) for k in range(4)] == [10] * 4
    counts = [np.bincount(data.train_examples.client(k)["y"]) for k in range(4)]
    assert max(count.max() for count in counts) > 10  # Of 20 of each class.
    assert data.server_examples is None and "dealt" not in data.origin.source


def test_a_fraction_of_every_batch_by_class(tmp_path, monkeypatch):
    _write_images(tmp_path, ".jpg")
    whole = leaf_data.load("cifar10", tmp_path)
    monkeypatch.setattr(image_folder, "_decode", None)  # From here on the cache.
    data = leaf_data.load("cifar10", tmp_path, image_fraction=0.5)
    assert data.origin == whole.origin
    for k in range(4):  # A client's images are a part of those it has of all.
        part, all_ = (d.train_examples.client(k) for d in (data, whole))
        assert np.bincount(part["y"]).tolist() == [2] * 10
        assert {x.tobytes() for x in part["x"]} < {x.tobytes() for x in all_["x"]}
    assert np.bincount(data.server_examples.y).tolist() == [2] * 10
    assert np.bincount(data.test_examples.y).tolist() == [2] * 10
    words = "image_fraction=0.01 keeps no image of a batch"
    assert_not_loaded("cifar10", tmp_path, words, image_fraction=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:5000], "is not CIFAR-10's data_batch_2, MD5 "),
        (None, "cannot be read"),
    ],
    ids=["cut", "none"],
)
def test_batches_of_other_data_are_rejected(tmp_path, change, message, write_batches):
    write_batches(tmp_path)
    path = tmp_path / "data_batch_2"
    content = path.read_bytes()
    path.unlink() if change is None else path.write_bytes(change(content))
    assert_not_loaded("cifar10", tmp_path, f"{path}: {message}")


def test_the_published_checksums_of_batches():
    """Those that torchvision compares them with, each written once."""
    together = hashlib.sha256("".join(cifar10._BATCHES.values()).encode()).hexdigest()
    assert list(cifar10._BATCHES) == NAMES and together.startswith("f7358627169f1877")


def test_missing_or_damaged_images_are_rejected(tmp_path):
    _write_images(tmp_path)

    def fails(path, message):
        assert_not_loaded("cifar10", tmp_path, f"{path}: {message}")

    path = tmp_path / "train" / "dog" / "0007.png"
    good = path.read_bytes()
    path.unlink()
    fails(path.parent, "holds 19 images, not 20")
    path.write_bytes(good[:40])
    fails(path, "cannot be decoded")
    Image.new("RGB", (32, 31)).save(path)
    fails(path, "is 32 x 31, not 32 x 32")
