"""`mnist`: idx and npz files, where they are looked for, and missing ones."""

import gzip
import hashlib
import os
from unittest.mock import Mock

import numpy as np
import pytest
from made_up import as_idx, assert_not_loaded

import leaf_data
from leaf_data.datasets import mnist

NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


@pytest.fixture
def no_mnist(tmp_path, monkeypatch, empty_home):
    """No environment variable, an empty Keras cache, and no download."""
    refuse = Mock(side_effect=AssertionError("tried to download"))
    monkeypatch.setattr(mnist, "_download", refuse)
    return tmp_path


@pytest.fixture
def small_mnist(monkeypatch):
    """Data in MNIST's format but of 400 and 200 images of 2 x 2."""
    shapes = {"x_train": (400, 2, 2), "y_train": (400,)}
    shapes.update({"x_test": (200, 2, 2), "y_test": (200,)})
    monkeypatch.setattr(mnist, "_SHAPES", shapes)
    random = np.random.RandomState(0)
    return {
        key: random.randint(0, 256 if key[0] == "x" else 10, shape).astype(np.uint8)
        for key, shape in shapes.items()
    }


def write_mnist_idx(folder, arrays, packed=True):
    """Writes arrays by name as MNIST's idx files."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, array in arrays.items():
        data = as_idx(array)
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
    labels, expected = (
        sorted((x.tobytes(), int(y)) for x, y in zip(xs, ys))
        for xs, ys in (
            (data.train_examples.x, data.train_examples.y),
            (arrays["x_train"], arrays["y_train"]),
        )
    )
    assert labels == expected
    for name, digest in data.origin.files:
        with open(os.path.join(data.origin.folder, name), "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest


@pytest.mark.parametrize(("packed", "subfolder"), [(True, ""), (False, "mnist")])
def test_mnist_from_idx_files(no_mnist, small_mnist, packed, subfolder):
    write_mnist_idx(no_mnist / "data" / subfolder, small_mnist, packed)
    data = leaf_data.load("mnist", no_mnist / "data", partition="noniid")
    _check_small(data, small_mnist, "idx files")
    names = [name.split(".")[0] for name, _ in data.origin.files]
    assert names == list(NAMES.values())
    for partition in ("iid", "noniid"):  # The seed decides who has what.
        first, again, other = (
            leaf_data.load("mnist", no_mnist / "data", partition=partition, seed=seed)
            for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first.train_examples.x, again.train_examples.x)
        assert np.any(first.train_examples.x != other.train_examples.x)


def test_mnist_by_environment_variable_cache_and_download(
    no_mnist, small_mnist, monkeypatch
):
    _write_npz(no_mnist / "fetched", small_mnist)
    path = str(no_mnist / "fetched" / "mnist.npz")
    monkeypatch.setattr(mnist, "_download", lambda: path)
    _check_small(leaf_data.load("mnist"), small_mnist, "Keras's download")
    _write_npz(no_mnist / "home" / ".keras" / "datasets", small_mnist)
    _check_small(leaf_data.load("mnist"), small_mnist, "Keras's cache")
    # A folder for other data sets does not keep MNIST from the cache.
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(no_mnist))
    assert leaf_data.load("mnist").origin.source == "Keras's cache"
    _write_npz(no_mnist / "mnist", small_mnist)
    # An incomplete set of idx files does not hide it; a complete one comes first.
    write_mnist_idx(no_mnist / "mnist", {"x_train": small_mnist["x_train"]})
    _check_small(leaf_data.load("mnist"), small_mnist, "npz file")
    write_mnist_idx(no_mnist / "mnist", small_mnist)
    _check_small(leaf_data.load("mnist"), small_mnist, "idx files")
    # What is given counts alone.
    (no_mnist / "empty").mkdir()
    assert_not_loaded("mnist", no_mnist / "empty", no_mnist / "empty")


def test_an_incomplete_set_of_idx_files_is_rejected(no_mnist):
    first, *lacking = NAMES.values()
    (no_mnist / f"{first}.gz").write_bytes(b"")
    words = f"; {no_mnist} lacks {', '.join(lacking)}"
    assert_not_loaded("mnist", no_mnist, words)


def test_mnist_that_cannot_be_downloaded(no_mnist, monkeypatch):
    offline = Exception("URL fetch failure:\nno route to host")
    monkeypatch.setattr(mnist, "_download", Mock(side_effect=offline))
    hint = "(URL fetch failure: no route to host): pass data_dir or set TFF_PMC_DATA"
    cache = no_mnist / "home" / ".keras" / "datasets" / "mnist.npz"
    assert_not_loaded("mnist", None, f"no data in {cache} (Keras's cache)", hint)
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(no_mnist))
    assert_not_loaded("mnist", None, f"no data in {no_mnist} or", hint)


def test_keras_downloads_the_same_file(no_mnist, monkeypatch):
    tf = pytest.importorskip("tensorflow")
    monkeypatch.undo()
    get_file = Mock(return_value="path")
    monkeypatch.setattr(tf.keras.utils, "get_file", get_file)
    assert mnist._download() == "path"
    # Keras's own loader asks for the same file with the same checksum.
    load_data = tf.keras.datasets.mnist.load_data
    monkeypatch.setitem(load_data.__globals__, "get_file", get_file)
    with pytest.raises(FileNotFoundError):
        load_data("mnist.npz")
    first, second = get_file.call_args_list
    assert second == first


class _Bomb:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_damaged_npz_files_are_rejected(no_mnist, small_mnist):
    path, trace = no_mnist / "mnist.npz", no_mnist / "trace"
    labels, images = small_mnist["y_test"], small_mnist["x_test"]
    bomb = np.array([_Bomb(str(trace))], dtype=object)
    for changes, message in (
        ({"y_test": labels.astype("i8")}, "y_test is int64 200, not uint8 200"),
        ({"x_test": images[:, :1]}, "x_test is uint8 200 x 1 x 2, not uint8 200 x 2"),
        ({"x_train": bomb}, "truncated or corrupt (Object arrays"),
    ):
        _write_npz(no_mnist, {**small_mnist, **changes})
        assert_not_loaded("mnist", no_mnist, path, message)
    _write_npz(no_mnist, {k: v for k, v in small_mnist.items() if k != "x_test"})
    lacks = "x_test is not a file in the archive"
    assert_not_loaded("mnist", no_mnist, path, lacks)
    _write_npz(no_mnist, {**small_mnist, "y_train": small_mnist["y_train"] + 1})
    words = "mnist: train has label 10, but"
    assert_not_loaded("mnist", no_mnist, words)
    assert not trace.exists()
