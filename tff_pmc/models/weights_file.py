"""The weights that a model begins with, from a file of arrays (`.npz`)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, reading
from leaf_data.formats import data_files
from tff_pmc.models.model_folder import order_arrays


def load_initial_weights(model: Any, path: str, sha256: str) -> Any:
    """Returns a functional model that begins with the arrays of a file.

    See `order_arrays` for their order.

    Raises:
        DataError: the file has another SHA-256, cannot be read, or has arrays unlike
            the model's; the message names file and array.
    """
    path = data_files.expand_path(path)
    if data_files.sha256(path) != sha256:
        raise DataError(f"{path} has changed since the run was set up: start again")
    trainable, others = model.initial_weights
    wanted = [np.asarray(one) for one in (*trainable, *others)]
    with reading(path, "cannot be read", Exception):
        with np.load(path, allow_pickle=False) as file:
            found = {name: (name, file[name]) for name in file.files}
    if len(found) != len(wanted):
        raise DataError(f"{path} has {len(found)} arrays, and the model {len(wanted)}")
    arrays = [
        _cast_like(f"{path}: {ascii(name)}", array, like)
        for (name, array), like in zip(order_arrays(model, found), wanted)
    ]
    return with_initial_weights(model, arrays)


def with_initial_weights(model: Any, arrays: Sequence[npt.NDArray[Any]]) -> Any:
    """Returns a functional model that begins with arrays, trainable weights first."""
    made = copy.copy(model)  # What is traced of its functions serves both.
    split = len(model.initial_weights[0])
    made._initial_weights = tuple(arrays[:split]), tuple(arrays[split:])
    return made


def _cast_like(
    name: str, found: npt.NDArray[Any], like: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    if (found.dtype.kind, found.shape) != (like.dtype.kind, like.shape):
        raise DataError(
            f"{name} is {found.dtype} {found.shape}, and the model has {like.dtype} "
            f"{like.shape} there"
        )
    with np.errstate(over="ignore"):
        array = found.astype(like.dtype)
    if not np.isfinite(array).all():
        raise DataError(f"{name} has values that are not finite as {like.dtype}")
    return array
