"""The weights that a model begins with, from a file of arrays (`.npz`)."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, one_line
from leaf_data.formats import npz, places

_NUMBERED = re.compile(r"arr_(\d+)")  # As `np.savez` names what has no name.


def with_weights_of(model: Any, path: str, sha256: str) -> Any:
    """Returns a functional model that begins with the weights of a file.

    Raises:
        DataError: the file has another SHA-256, or arrays unlike the model's.
    """
    if places.sha256(path) != sha256:
        raise DataError(f"{path} has changed since it was named: give the flag again")
    trainable, others = model.initial_weights
    found = read_like(path, [*trainable, *others])
    made = copy.copy(model)  # What is traced of its functions serves both.
    split = len(trainable)
    made._initial_weights = tuple(found[:split]), tuple(found[split:])
    return made


def read_like(path: str, model: Sequence[Any]) -> list[npt.NDArray[Any]]:
    """Returns the arrays of a file, which are like those of a model, in its order.

    Their order is that of `np.savez(path, *arrays)`, by number, and else the file's.

    Raises:
        DataError: it cannot be read, or an array is missing, too many, not finite or
            of another shape or kind of numbers; the message names file and array.
    """
    wanted = [np.asarray(one) for one in model]
    try:
        with npz.opened(path, most=len(wanted) + 100) as members:
            numbers = [_NUMBERED.fullmatch(name) for name in members]
            order = list(members)
            if all(numbers):
                order.sort(key=lambda name: int(name.partition("_")[2]))
            if len(order) != len(wanted):
                raise DataError(
                    f"{path} has {len(order)} arrays, and the model {len(wanted)}"
                )
            return [
                _read(f"{path}: {ascii(name)}", members[name], one)
                for name, one in zip(order, wanted)
            ]
    except DataError:
        raise
    except Exception as error:  # Damaged archives raise nearly anything.
        reason = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"{path} is no npz file: {reason}") from error


def _read(name: str, found: npz.Member, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if (found.dtype.kind, found.shape) != (like.dtype.kind, like.shape):
        raise DataError(
            f"{name} is {found.dtype} {found.shape}, and the model has {like.dtype} "
            f"{like.shape} there"
        )
    with np.errstate(over="ignore"):
        array = found.read().astype(like.dtype)
    if not np.isfinite(array).all():
        raise DataError(f"{name} has values that are not finite as {like.dtype}")
    return array
