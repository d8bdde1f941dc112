"""Helpers of the tests of `leaf_data`: a made-up data set, and checks."""

import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

import leaf_data
from leaf_data import DataError, Examples, FederatedDataset, Origin
from leaf_data.pixels import WHITE_ON_BLACK

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run_python(code):
    """Runs code in a new process, in the repository; it must exit with 0."""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def assert_refused(call, *parts):
    """Checks that a call raises a `DataError` of one line that has these parts."""
    with pytest.raises(DataError) as error:
        call()
    assert "\n" not in str(error.value)
    for part in parts:
        assert str(part) in str(error.value)


def assert_not_loaded(name, folder, *parts, **options):
    """Checks that a data set is refused in one line that has these parts."""
    assert_refused(lambda: leaf_data.load(name, folder, **options), *parts)


def three_clients(**changes):
    """Returns examples of three clients, with 3, 0 and 3; `changes` replace fields."""
    fields = {
        "x": np.arange(12, dtype=np.uint8).reshape(6, 2),
        "y": np.array([0, 1, 2, 0, 1, 2], np.int32),
        "row_splits": np.array([0, 3, 3, 6]),
        "client_ids": ("a", "b", "c"),
        "attributes": {"blur": np.linspace(0, 1, 6)},
    }
    return Examples(**{**fields, **changes})


def toy_dataset(**changes):
    """Returns a data set of the three clients, with these fields replaced."""
    fields = {
        "name": "toy",
        "train_examples": three_clients(),
        "test_examples": three_clients().take(1),
        "num_classes": 3,
        "pixel_convention": WHITE_ON_BLACK,
        "origin": Origin("a test", (("toy.bin", "00ff"),), "somewhere"),
        "options": {"seed": 0},
    }
    return FederatedDataset(**{**fields, **changes})


def as_idx(array, kind=8):
    """Returns the bytes of an idx file of an array."""
    header = struct.pack(f">HBB{array.ndim}I", 0, kind, array.ndim, *array.shape)
    return header + array.tobytes()
