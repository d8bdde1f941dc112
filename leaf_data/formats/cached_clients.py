"""The arrays of clients' examples that caches keep: their form, and what they may say.

Arrays of clients are `client_ids` [K] and, for each part ("train", "test" or "all"),
`sizes_PART` int64 [K] and fields `FIELD_PART` [N, ...], the clients' examples one after
the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leaf_data import client_names
from leaf_data.errors import DataError
from leaf_data.formats.cache import Arrays

Fields = Mapping[str, tuple[tuple[int, ...], Any]]
"""The shape and type of one example's value in each field, by the field's name."""


def form(parts: Sequence[str], fields: Fields) -> dict[str, Any]:
    """Returns the form of such arrays, as `cache.cached` wants it."""
    made: dict[str, Any] = {"client_ids": ("U", ("K",))}
    for part in parts:
        made[f"sizes_{part}"] = ("int64", ("K",))
        for field, (shape, dtype) in fields.items():
            made[f"{field}_{part}"] = (np.dtype(dtype).name, (f"N_{part}", *shape))
    return made


def check(arrays: Arrays, parts: Sequence[str], num_classes: int) -> None:
    """Refuses arrays of clients that no reader makes.

    Args:
        arrays: the arrays, of that form; `y_PART` are labels.
        parts: the parts.
        num_classes: the number of classes.

    Raises:
        DataError: names are not what names may be, or there twice; sizes do not add
            up; or a label is out of range.
    """
    names = arrays["client_ids"].tolist()
    for name in names:
        client_names.check(name, "client")
    if len(set(names)) != len(names) or "" in names:
        raise DataError("a client is there twice, or has no name")
    for part in parts:
        sizes, labels = arrays[f"sizes_{part}"], arrays[f"y_{part}"]
        # Each by itself first: a sum can wrap.
        if sizes.min(initial=0) < 0 or sizes.max(initial=0) > len(labels):
            raise DataError(f"a client with {sizes.max(initial=0)} {part} examples")
        if sizes.sum() != len(labels):
            raise DataError(f"{sizes.sum()} {part} examples in all, not {len(labels)}")
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= num_classes:
            raise DataError(f"a {part} label that is not below {num_classes}")
