"""FEMNIST as TFF ships it: `emnist_all.sqlite`, read without TensorFlow.

An example has 784 floats `pixels` and one integer `label`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leaf_data.datasets.femnist import femnist_values
from leaf_data.errors import DataError
from leaf_data.formats import tff_sqlite
from leaf_data.formats.cache import Arrays
from leaf_data.formats.tf_example import Features

# As `tff.simulation.datasets.emnist.load_data(only_digits=False)` names them.
_SPLITS = {"all_train": "train", "all_test": "test"}
_SHAPE = (femnist_values.SIDE, femnist_values.SIDE)


def read(path: str) -> Arrays:
    """Reads all clients, in the order of their sorted ids, as TFF has them.

    Args:
        path: the path of the unpacked database.

    Returns:
        `x_train`, `y_train`, `sizes_train`, the same of `test`, and `client_ids`, as
        `femnist_leaf.read` returns them.

    Raises:
        DataError: it is damaged, no such database, or holds fewer or more examples
            than it says; the message names file and client.
    """
    return tff_sqlite.read(
        path,
        words="TFF's EMNIST",
        splits=_SPLITS,
        fields=femnist_values.FIELDS,
        needed=("pixels", "label"),
        convert=_image_and_label,
        smallest=4 * _SHAPE[0] * _SHAPE[1],
    )


def _image_and_label(features: Features) -> Mapping[str, Any]:
    pixels, label = features["pixels"], features["label"]
    if pixels.dtype != np.float32 or pixels.size != _SHAPE[0] * _SHAPE[1]:
        raise DataError(f"an image of {pixels.size} values, not 784 floats")
    if label.dtype != np.int64 or label.size != 1:
        raise DataError(f"an example with {label.size} labels, not one integer")
    if not 0 <= label[0] < femnist_values.NUM_CLASSES:
        raise DataError(f"the label {label[0]}, not one of 0 to 61")
    return {"x": femnist_values.to_bytes(pixels[None])[0], "y": int(label[0])}
