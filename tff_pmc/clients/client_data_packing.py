"""Packs of the clients of any of TFF's simulation data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.clients.packing import MAX_PACK_BYTES, ClientArrays, pack_arrays

_INPUT_KEYS = ("x", "pixels", "image")
_LABEL_KEYS = ("y", "label")


def pack_client_data(
    client_data: tff.simulation.datasets.ClientData,
    client_ids: Optional[Sequence[str]] = None,
    *,
    num_packs: int = 2,
    max_bytes: int = MAX_PACK_BYTES,
    attributes: Optional[Mapping[str, np.ndarray]] = None,
) -> list[tf.data.Dataset]:
    """Packs clients of any `tff.simulation.datasets.ClientData`.

    Args:
        client_data: its elements are `(input, label)`, or mappings with an input
            `x`, `pixels` or `image` and a label `y` or `label`, as TFF's own data
            sets have them.
        client_ids: the ids of the cohort; by default all clients.
        num_packs: see `pack`.
        max_bytes: see `pack`.
        attributes: see `pack`; [K] in the order of `client_data.client_ids`.

    Returns:
        One dataset of packed clients for each pack. A client's number is its
        place in `client_data.client_ids`.

    Raises:
        ValueError: as `pack`; an element has not this form.
    """
    numbers = {name: place for place, name in enumerate(client_data.client_ids)}
    parts = []
    for name in numbers if client_ids is None else client_ids:
        dataset = client_data.create_tf_dataset_for_client(name)
        pairs = dataset.map(lambda *element: _input_and_label(element))
        rows = list(pairs.as_numpy_iterator())
        x, y = (
            np.array([row[part] for row in rows], spec.dtype.as_numpy_dtype).reshape(
                [len(rows), *spec.shape]
            )
            for part, spec in enumerate(pairs.element_spec)
        )
        if np.issubdtype(y.dtype, np.integer):
            y = y.astype(np.int32)  # TFF's data sets mix int32 and int64.
        parts.append(ClientArrays(numbers[name], x, y))
    return pack_arrays(parts, num_packs, max_bytes, attributes or {})


def _input_and_label(element: tuple) -> tuple[Any, Any]:
    """Returns an element's input and label, from the arguments of `Dataset.map`."""
    if len(element) == 2:
        return element
    if isinstance(element[0], Mapping):
        found = [
            [element[0][key] for key in keys if key in element[0]]
            for keys in (_INPUT_KEYS, _LABEL_KEYS)
        ]
        if all(len(values) == 1 for values in found):
            return found[0][0], found[1][0]
    raise ValueError(
        f"cannot tell input and label in an element {element}: it must be a pair, or a "
        f"mapping with one of {_INPUT_KEYS} and one of {_LABEL_KEYS}"
    )
