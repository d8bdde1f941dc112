"""Many whole clients in one pack.

A *packed* element is one whole client, `OrderedDict(x=[n, ...], y=[n],
client=int32 [], place=int32 [])`, with attributes of the client or of its examples
where criteria need them; a *pack* is a sequence of them, which to TFF is the data of
one of its clients. A deployment has one client in a pack; a simulation packs many, so
that one TensorFlow loop trains them and no model travels for each. `client` is the
client's index in the federation, to which its random streams belong, and `place` that
in the cohort, in whose order its results come: neither depends on the packs.
"""

from __future__ import annotations

import collections
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, TypedDict, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from declared_settings import AT_LEAST_1, check_value, require_sequence
from leaf_data.client_ids import ClientNumber
from leaf_data.client_table import values_by_client
from tff_pmc.aggregation.tff_utils import check_kind
from tff_pmc.clients.stored_packs import ClientArrays, StoredPack, dataset_of
from tff_pmc.models.tff_types.packed_model import split_batch

MAX_PACK_BYTES = 500_000_000
"""Default limit of a pack: a message to the worker cannot exceed 2 GB."""

EXAMPLES = "leaf_data.Examples, as data.train_examples"
Attributes = Union[leaf_data.ClientTable, Mapping[str, np.ndarray]]
_INPUT_KEYS, _LABEL_KEYS = ("x", "pixels", "image"), ("y", "label")


def element_spec(
    input_spec: Any,
    client_attributes: Sequence[str] = (),
    example_attributes: Sequence[str] = (),
) -> collections.OrderedDict:
    """Returns the `TensorSpec`s of a model's packed client with these attributes."""
    x, y = split_batch(input_spec)
    number = tf.TensorSpec([], tf.int32)
    spec = collections.OrderedDict(x=x, y=y, client=number, place=number)
    if client_attributes:
        spec["attributes"] = attribute_spec(client_attributes)
    if example_attributes:
        spec["example_attributes"] = attribute_spec(example_attributes, [None])
    return spec


def attribute_spec(
    names: Sequence[str], shape: Sequence[Optional[int]] = ()
) -> collections.OrderedDict:
    """Returns float32 for each name, sorted, so that their order does not matter."""
    return collections.OrderedDict(
        (name, tf.TensorSpec(shape, tf.float32)) for name in sorted(names)
    )


def check_attribute(name: str, values: Any) -> None:
    """Raises a `ValueError` that names an attribute with a value out of [0, 1]."""
    array = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        raise ValueError(f"the attribute {name} has masked values: fill them")
    for value in array.flat if array.dtype.kind not in "biuf" else ():
        if not isinstance(value, (numbers.Real, np.bool_)):
            raise ValueError(
                f"the attribute {name} must be booleans or numbers, got {value!r:.40}"
            )
    array = array.astype(float)
    wrong = array[~((array >= 0) & (array <= 1))]
    if wrong.size:
        raise ValueError(f"the attribute {name} must be in [0, 1], got {wrong[0]}")


def split_evenly(sizes: Sequence[int], num_packs: int) -> list[list[int]]:
    """Deals clients of these sizes to packs of about equal work, largest clients first.

    The positions in `sizes`, ascending, for each pack; none is empty.
    """
    loads = [0] * min(num_packs, len(sizes))
    packs: list[list[int]] = [[] for _ in loads]
    for position in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        lightest = loads.index(min(loads))
        packs[lightest].append(position)
        loads[lightest] += max(sizes[position], 1)
    return [sorted(pack) for pack in packs]


class PackingOptions(TypedDict, total=False):
    """The options of `pack`, which `data_source` takes by name, too."""

    num_packs: int
    max_bytes: int
    attributes: Optional[Attributes]
    example_attributes: Sequence[str]
    num_classes: Optional[int]


def pack(
    examples: leaf_data.Examples,
    clients: Sequence[Union[int, str]],
    *,
    num_packs: int = 2,
    max_bytes: int = MAX_PACK_BYTES,
    attributes: Optional[Attributes] = None,
    example_attributes: Sequence[str] = (),
    num_classes: Optional[int] = None,
) -> list[tf.data.Dataset]:
    """Packs a cohort for `LearningProcess.next`.

    Args:
        examples: the federation's training examples.
        clients: the cohort, each client by its index in the federation or by its name,
            one of `examples.client_ids`. A number that could be both is refused.
        num_packs: the number of packs; more are made where one would exceed
            `max_bytes`, and fewer where there are fewer clients.
        max_bytes: the most bytes of inputs in a pack. A store's client may be larger:
            its pack has no arrays, but names the place where they are mapped.
        attributes: the client attributes that travel along: a table, in any order; or
            by name arrays [K] in the federation's order, or what has a value by client
            in any order: a dict, or a pandas Series whose index names the clients.
            Also a data frame of such Series.
        example_attributes: the names of the examples' attributes that travel along;
            `criteria.example_attributes` are those that criteria need.
        num_classes: the model's, by which labels are checked; by default they are not,
            as a `FederatedDataset` has done it.

    Returns:
        One `tf.data.Dataset` of packed clients for each pack. Of the examples of a
        store (`leaf_data.open_store`) it refers to the clients, which are read where
        they are trained: a cluster's workers read them of the store at the same path.

    Raises:
        leaf_data.DataError: there is no client of an index or a name, or in the table.
        ValueError: the cohort is empty, one name by itself or has a client twice, one
            client alone exceeds `max_bytes`, an attribute is not K values in [0, 1], or
            the examples lack one, or a label or number is out of range.

    Examples:
        >>> pack(data.train_examples, ["client_003", "client_017"])
    """
    check_kind("examples", examples, leaf_data.Examples, EXAMPLES)
    for name in example_attributes:
        if name not in examples.attributes:
            raise ValueError(
                f"the examples have no attribute {name!r}, which a criterion needs; "
                f"they have {', '.join(examples.attributes) or 'none'}"
            )
    parts = []
    for client in require_sequence("clients", clients):
        k = examples.position(client)
        own = examples.client(ClientNumber(k))
        if num_classes is not None and own["y"].max(initial=0) >= num_classes:
            raise ValueError(
                f"client {examples.client_ids[k]!r} has label {own['y'].max()}, but "
                f"there are {num_classes} classes"
            )
        extras = {name: own[name] for name in sorted(example_attributes)}
        parts.append(ClientArrays(k, own["x"], own["y"], {}, extras))
    names = examples.client_ids
    if examples.store_part is None:
        check_bytes(
            [part.x.nbytes for part in parts],
            [names[part.number] for part in parts],
            max_bytes,
        )
    packs = split_arrays(parts, names, num_packs, max_bytes, attributes)
    if examples.store_part is None:
        return [dataset_of(pack) for pack in packs]
    return [StoredPack(pack, examples.store_part) for pack in packs]


def pack_client_data(
    client_data: tff.simulation.datasets.ClientData,
    client_ids: Optional[Sequence[str]] = None,
    *,
    num_packs: int = 2,
    max_bytes: int = MAX_PACK_BYTES,
    attributes: Optional[Attributes] = None,
) -> list[tf.data.Dataset]:
    """Packs clients of any `tff.simulation.datasets.ClientData`.

    Args:
        client_data: its elements are `(input, label)`, or mappings with an input
            `x`, `pixels` or `image` and a label `y` or `label`, as TFF's data
            sets have them.
        client_ids: the ids of the cohort; by default all clients. A client's number
            is its place in `client_data.client_ids`.
        num_packs: see `pack`.
        max_bytes: see `pack`.
        attributes: see `pack`; arrays are in the order of `client_data.client_ids`.

    Returns:
        One dataset of packed clients for each pack.

    Raises:
        ValueError: as `pack`; there is no client of a name, or an element has not this
            form.
    """
    numbers = {name: place for place, name in enumerate(client_data.client_ids)}
    parts = []
    ids = (
        [*numbers] if client_ids is None else require_sequence("client_ids", client_ids)
    )
    for name in ids:
        if name not in numbers:
            raise ValueError(f"there is no client {name!r} in the client data")
        dataset = client_data.create_tf_dataset_for_client(name)
        pairs = dataset.map(lambda *element: _input_and_label(element))
        if any(None in spec.shape for spec in pairs.element_spec):
            raise ValueError(
                f"the elements of client {name!r} have an axis of unknown size: give "
                "them without .batch(...)"
            )
        rows = list(pairs.as_numpy_iterator())
        x, y = (
            np.array([row[part] for row in rows], spec.dtype.as_numpy_dtype).reshape(
                [len(rows), *spec.shape]
            )
            for part, spec in enumerate(pairs.element_spec)
        )
        if np.issubdtype(y.dtype, np.integer):  # TFF's data sets mix int32 and int64.
            if (y != y.astype(np.int32)).any():
                raise ValueError(f"client {name!r} has a label that is no int32")
            y = y.astype(np.int32)
        parts.append(ClientArrays(numbers[name], x, y))
    check_bytes([part.x.nbytes for part in parts], [*ids], max_bytes)
    packs = split_arrays(parts, [*numbers], num_packs, max_bytes, attributes)
    return [dataset_of(pack) for pack in packs]


def _input_and_label(element: tuple) -> tuple[Any, Any]:
    """Returns an element's input and label from the arguments of `Dataset.map`."""
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


def check_bytes(
    sizes: Iterable[int], names: Sequence[str], limit: int, option: str = "max_bytes"
) -> None:
    """Raises a `ValueError` that names a client whose bytes no pack can hold."""
    for name, size in zip(names, sizes):
        if size > limit:
            raise ValueError(
                f"client {name!r} has {size} bytes of examples; a pack holds at most "
                f"{limit}: raise {option}, or keep the data in a store "
                "(leaf_data.write_store), which has no such limit"
            )


def split_arrays(
    clients: Sequence[ClientArrays],
    names: Sequence[str],
    num_packs: int,
    max_bytes: int,
    attributes: Optional[Attributes],
) -> list[list[ClientArrays]]:
    """Splits clients into packs, with attributes; takes and raises what `pack` does.

    The names are of all K clients. Of arrays that lie on the disk nothing is read.
    """
    if not clients:
        raise ValueError("clients is empty: name at least one client")
    check_value("num_packs", num_packs, int, AT_LEAST_1)
    check_value("max_bytes", max_bytes, int, AT_LEAST_1)
    if isinstance(attributes, leaf_data.ClientTable):
        attributes = attributes.of(names).values
    if hasattr(attributes, "columns"):  # A data frame.
        attributes = {name: attributes[name] for name in attributes.columns}
    if attributes is None:
        attributes = {}
    check_kind(
        "attributes", attributes, Mapping, "a leaf_data.ClientTable or a mapping"
    )
    attributes = {
        name: values_by_client(column, names, f"the attribute {name}")
        for name, column in attributes.items()
    }
    for name, column in attributes.items():
        if np.shape(column) != (len(names),):
            found = f"[{len(names)}], one value a client, got {list(np.shape(column))}"
            raise ValueError(f"the attribute {name} must be {found}")
        check_attribute(name, column)
    (most, count), *_ = collections.Counter(c.number for c in clients).most_common(1)
    if count > 1:
        raise ValueError(f"client {names[most]!r} is in the cohort {count} times")
    sizes = [len(client.y) for client in clients]
    packs = split_evenly(sizes, num_packs)
    while num_packs < len(clients) and any(
        sum(clients[i].x.nbytes for i in pack) > max_bytes for pack in packs
    ):
        num_packs += 1
        packs = split_evenly(sizes, num_packs)
    placed = []
    for place, client in enumerate(clients):
        own = {k: np.float32(v[client.number]) for k, v in attributes.items()}
        placed.append(client._replace(attributes=own, place=place))
    return [[placed[place] for place in pack] for pack in packs]
