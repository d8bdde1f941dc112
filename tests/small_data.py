"""A small data set made by hand, and a check of errors, for several test files."""

import numpy as np
import pytest

from leaf_data import DataError, Examples
from leaf_data.federated import WHITE_ON_BLACK, FederatedDataset, Origin


def assert_refused(call, *parts):
    """The call raises a DataError of one line that has these parts."""
    with pytest.raises(DataError) as error:
        call()
    assert "\n" not in str(error.value)
    for part in parts:
        assert str(part) in str(error.value)


def three_clients(**changes):
    fields = {
        "x": np.arange(12, dtype=np.uint8).reshape(6, 2),
        "y": np.array([0, 1, 2, 0, 1, 2], np.int32),
        "row_splits": np.array([0, 3, 3, 6]),
        "client_ids": ("a", "b", "c"),
        "attributes": {"blur": np.linspace(0, 1, 6)},
    }
    return Examples(**{**fields, **changes})


def toy_dataset(**changes):
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
