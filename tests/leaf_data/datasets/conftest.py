"""Small files in MNIST's formats, and a home without any."""

import gzip

import numpy as np
import pytest

from leaf_data.datasets import mnist

NAMES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}


@pytest.fixture(scope="session")
def mnist_names():
    """The names of MNIST's idx files by array."""
    return dict(NAMES)


@pytest.fixture
def no_mnist(tmp_path, monkeypatch):
    """No environment variable, an empty Keras cache, and no download."""
    monkeypatch.delenv("TFF_PMC_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def refuse():
        raise AssertionError("tried to download")

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


@pytest.fixture(scope="session")
def write_mnist_idx(as_idx):
    """Writes arrays by name as MNIST's idx files."""

    def write(folder, arrays, packed=True):
        folder.mkdir(parents=True, exist_ok=True)
        for key, array in arrays.items():
            data = as_idx(array)
            name = NAMES[key] + (".gz" if packed else "")
            (folder / name).write_bytes(gzip.compress(data) if packed else data)

    return write
