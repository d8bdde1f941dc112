"""What the tests of `leaf_data` share: a data set made by hand, and an empty home."""

import functools
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

from leaf_data import DataError, Examples, FederatedDataset, Origin
from leaf_data.pixels import WHITE_ON_BLACK

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root():
    """The folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def run_python():
    """Runs code in a process of its own, in the repository; it has to exit with 0."""

    def run(code):
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

    return run


@pytest.fixture(scope="session")
def assert_refused(assert_one_line):
    """Checks that a call raises a `DataError` of one line that has these parts."""
    return functools.partial(assert_one_line, DataError)


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """No data named by the environment, and a home without caches."""
    monkeypatch.delenv("TFF_PMC_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))


def _three_clients(**changes):
    fields = {
        "x": np.arange(12, dtype=np.uint8).reshape(6, 2),
        "y": np.array([0, 1, 2, 0, 1, 2], np.int32),
        "row_splits": np.array([0, 3, 3, 6]),
        "client_ids": ("a", "b", "c"),
        "attributes": {"blur": np.linspace(0, 1, 6)},
    }
    return Examples(**{**fields, **changes})


@pytest.fixture(scope="session")
def three_clients():
    """Makes examples of three clients with 3, 0 and 3; fields may be changed."""
    return _three_clients


@pytest.fixture(scope="session")
def toy_dataset():
    """Makes a data set of the three clients; fields may be changed."""

    def make(**changes):
        fields = {
            "name": "toy",
            "train_examples": _three_clients(),
            "test_examples": _three_clients().take(1),
            "num_classes": 3,
            "pixel_convention": WHITE_ON_BLACK,
            "origin": Origin("a test", (("toy.bin", "00ff"),), "somewhere"),
            "options": {"seed": 0},
        }
        return FederatedDataset(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def as_idx():
    """Makes the bytes of an idx file of an array."""

    def make(array, kind=8):
        header = struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape)
        return header + array.tobytes()

    return make
