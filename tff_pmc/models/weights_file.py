"""Reads a model's initial weights from a file of arrays (`.npz`)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, raising_data_error
from leaf_data.formats import data_files
from tff_pmc.models.model_folder import order_arrays


def load_initial_weights(model: Any, path: str, sha256: str) -> Any:
    """Returns a functional model whose initial weights are the arrays of a file.

    See `order_arrays` for their order.

    Raises:
        DataError: the file has another SHA-256, cannot be read, or its arrays do not
            match the model's; the message names file and array.
    """
    path = data_files.expand_path(path)
    if data_files.sha256(path) != sha256:
        raise DataError(f"{path} has changed since the run was set up: start again")
    trainable, non_trainable = model.initial_weights
    expected = [np.asarray(array) for array in (*trainable, *non_trainable)]
    with raising_data_error(path, "cannot be read", Exception):
        with np.load(path, allow_pickle=False) as file:
            arrays_by_name = {name: (name, file[name]) for name in file.files}
    if len(arrays_by_name) != len(expected):
        raise DataError(
            f"{path} has {len(arrays_by_name)} arrays, but the model {len(expected)}"
        )
    arrays = [
        _cast_like(f"{path}: {ascii(name)}", array, expected_array)
        for (name, array), expected_array in zip(
            order_arrays(model, arrays_by_name), expected
        )
    ]
    return with_initial_weights(model, arrays)


def with_initial_weights(model: Any, arrays: Sequence[npt.NDArray[Any]]) -> Any:
    """Returns a functional model with these initial weights, trainable ones first."""
    new_model = copy.copy(model)  # Both share the traces of its functions.
    split = len(model.initial_weights[0])
    new_model._initial_weights = tuple(arrays[:split]), tuple(arrays[split:])
    return new_model


def _cast_like(
    name: str, array: npt.NDArray[Any], expected: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    if (array.dtype.kind, array.shape) != (expected.dtype.kind, expected.shape):
        raise DataError(
            f"{name} is {array.dtype} {array.shape}, but the model's weight there is "
            f"{expected.dtype} {expected.shape}"
        )
    with np.errstate(over="ignore"):
        cast = array.astype(expected.dtype)
    if not np.isfinite(cast).all():
        raise DataError(f"{name} has values that are not finite as {expected.dtype}")
    return cast
