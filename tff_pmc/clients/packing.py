"""Many whole clients in one pack.

A *packed* element is one whole client, `OrderedDict(x=[n, ...], y=[n],
client=int32 [], place=int32 [])`, with attributes of the client or of its examples if
criteria need them, and with the client's number of epochs where it differs between
clients (`local_epochs`, int32 []). A *pack* is a sequence of packed clients; to TFF it
is the data of one client. A deployment has one client per pack. A simulation packs
many: one TensorFlow loop trains them, and the model is sent once per pack. `client` is
the client's index in the federation, which seeds its random streams; `place` is its
index in the cohort, which orders the recorded criteria. Neither depends on the packs.
"""

from __future__ import annotations

import collections
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, TypedDict, Union

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from declared_settings import AT_LEAST_1, check_value, require_sequence
from leaf_data.client_ids import ClientNumber
from leaf_data.client_table import values_by_client
from tff_pmc.aggregation.tff_utils import check_type
from tff_pmc.clients.stored_packs import ClientArrays, StoredPack, build_pack_dataset
from tff_pmc.models.tff_types.packed_model import split_batch

MAX_PACK_BYTES = 500_000_000
"""The default limit of a pack's inputs: a message to a worker cannot exceed 2 GB."""

EXAMPLES = "leaf_data.Examples, as data.train_examples"
"""The description of the argument `examples` in errors."""
Attributes = Union[leaf_data.ClientTable, Mapping[str, np.ndarray]]
_INPUT_KEYS, _LABEL_KEYS = ("x", "pixels", "image"), ("y", "label")


def element_spec(
    input_spec: Any,
    client_attributes: Sequence[str] = (),
    example_attributes: Sequence[str] = (),
    *,
    epochs_by_client: bool = False,
) -> collections.OrderedDict:
    """Returns the `TensorSpec`s of a packed client with these attributes."""
    x, y = split_batch(input_spec)
    number = tf.TensorSpec([], tf.int32)
    spec = collections.OrderedDict(x=x, y=y, client=number, place=number)
    if client_attributes:
        spec["attributes"] = attribute_spec(client_attributes)
    if example_attributes:
        spec["example_attributes"] = attribute_spec(example_attributes, [None])
    if epochs_by_client:
        spec["local_epochs"] = number
    return spec


def attribute_spec(
    names: Sequence[str], shape: Sequence[Optional[int]] = ()
) -> collections.OrderedDict:
    """Returns a float32 `TensorSpec` by name, sorted so that the order is defined."""
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
    """Assigns clients to packs of about equal work, largest clients first.

    Returns the indices into `sizes` of each pack, ascending; no pack is empty.
    """
    loads = [0] * min(num_packs, len(sizes))
    packs: list[list[int]] = [[] for _ in loads]
    for position in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        lightest = loads.index(min(loads))
        packs[lightest].append(position)
        loads[lightest] += max(sizes[position], 1)
    return [sorted(pack) for pack in packs]


class PackingOptions(TypedDict, total=False):
    """The options of `pack` for any cohort, which `data_source` also takes by name."""

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
    local_epochs: Optional[npt.ArrayLike] = None,
) -> list[tf.data.Dataset]:
    """Packs a cohort for `LearningProcess.next`.

    Args:
        examples: the federation's training examples.
        clients: the cohort, each client by its index in the federation or by its name,
            one of `examples.client_ids`. A number that could be either raises an error.
        num_packs: the number of packs; there are more if one would exceed `max_bytes`,
            and fewer if there are fewer clients.
        max_bytes: the maximum bytes of inputs in a pack. A client of a store may be
            larger, because its pack holds references instead of arrays.
        attributes: the client attributes to pack: a `ClientTable`, in any order; or a
            mapping from name to an array [K] in the federation's order, or to values by
            client in any order (a dict, or a pandas Series indexed by client); or a
            data frame of such Series.
        example_attributes: the names of the example attributes to pack;
            `criteria.example_attributes` returns those that criteria need.
        num_classes: the model's number of classes, to check the labels; by default they
            are not checked, because `FederatedDataset` has checked them.
        local_epochs: the number of epochs of each client of the cohort, for a process
            with `epochs_by_client`, as `selections.draw_local_epochs` returns it; 0
            excludes the client. By default the packs do not contain it.

    Returns:
        One `tf.data.Dataset` of packed clients per pack. A pack of a store
        (`leaf_data.open_store`) holds references: workers read its clients from the
        store at the same path when they train them.

    Raises:
        leaf_data.DataError: a client is unknown to the examples, or not in the table.
        ValueError: the cohort is empty, a single name, or lists a client twice; a
            client alone exceeds `max_bytes`; an attribute does not have K values in
            [0, 1]; the examples lack an attribute; a label or number is out of range;
            or `local_epochs` are not one whole number from 0 per client.

    Examples:
        >>> pack(data.train_examples, ["client_003", "client_017"])
    """
    check_type("examples", examples, leaf_data.Examples, EXAMPLES)
    for name in example_attributes:
        if name not in examples.attributes:
            raise ValueError(
                f"the examples have no attribute {name!r}, which a criterion needs: "
                f"they have {', '.join(examples.attributes) or 'none'}"
            )
    parts = []
    cohort = require_sequence("clients", clients)
    epochs = _check_local_epochs(local_epochs, len(cohort))
    for client, client_epochs in zip(cohort, epochs):
        k = examples.position(client)
        client_examples = examples.client(ClientNumber(k))
        largest = client_examples["y"].max(initial=0)
        if num_classes is not None and largest >= num_classes:
            raise ValueError(
                f"client {examples.client_ids[k]!r} has label {largest}, but there are "
                f"{num_classes} classes, with labels from 0"
            )
        extras = {name: client_examples[name] for name in sorted(example_attributes)}
        x, y = client_examples["x"], client_examples["y"]
        parts.append(ClientArrays(k, x, y, {}, extras, local_epochs=client_epochs))
    names = examples.client_ids
    if examples.store_part is None:
        check_bytes(
            [part.x.nbytes for part in parts],
            [names[part.number] for part in parts],
            max_bytes,
        )
    packs = split_clients(parts, names, num_packs, max_bytes, attributes)
    if examples.store_part is None:
        return [build_pack_dataset(pack) for pack in packs]
    return [StoredPack(pack, examples.store_part) for pack in packs]


def _check_local_epochs(
    local_epochs: Optional[npt.ArrayLike], num_clients: int
) -> Sequence[Optional[int]]:
    """Returns each client's number of epochs; None for each if there are none."""
    if local_epochs is None:
        return [None] * num_clients
    epochs = np.asarray(local_epochs)
    if epochs.shape != (num_clients,) or epochs.dtype.kind not in "iu":
        raise ValueError(
            f"local_epochs must be [{num_clients}], a whole number for each client of "
            f"the cohort, got {epochs.dtype} {list(epochs.shape)}"
        )
    if (epochs < 0).any():
        raise ValueError(f"local_epochs must be 0 or more, got {epochs.min()}")
    return [int(number) for number in epochs]


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
        client_data: the clients. Its elements are `(input, label)`, or mappings with an
            input `x`, `pixels` or `image` and a label `y` or `label`, as in TFF's data
            sets.
        client_ids: the ids of the cohort; by default all clients. A client's number
            is its index in `client_data.client_ids`.
        num_packs: see `pack`.
        max_bytes: see `pack`.
        attributes: see `pack`; arrays are in the order of `client_data.client_ids`.

    Returns:
        One dataset of packed clients per pack.

    Raises:
        ValueError: as `pack`; a client is unknown, or an element has another form.
    """
    numbers = {name: index for index, name in enumerate(client_data.client_ids)}
    parts = []
    ids = (
        [*numbers] if client_ids is None else require_sequence("client_ids", client_ids)
    )
    for name in ids:
        if name not in numbers:
            raise ValueError(f"unknown client {name!r}: client_data does not have it")
        dataset = client_data.create_tf_dataset_for_client(name)
        pairs = dataset.map(lambda *element: _input_and_label(element))
        if any(None in spec.shape for spec in pairs.element_spec):
            raise ValueError(
                f"the elements of client {name!r} have an axis of unknown size: pass "
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
                raise ValueError(f"client {name!r} has a label outside int32")
            y = y.astype(np.int32)
        parts.append(ClientArrays(numbers[name], x, y))
    check_bytes([part.x.nbytes for part in parts], [*ids], max_bytes)
    packs = split_clients(parts, [*numbers], num_packs, max_bytes, attributes)
    return [build_pack_dataset(pack) for pack in packs]


def _input_and_label(element: tuple) -> tuple[Any, Any]:
    """Returns an element's input and label from the arguments of `Dataset.map`."""
    if len(element) == 2:
        return element
    if isinstance(element[0], Mapping):
        matches = [
            [element[0][key] for key in keys if key in element[0]]
            for keys in (_INPUT_KEYS, _LABEL_KEYS)
        ]
        if all(len(values) == 1 for values in matches):
            return matches[0][0], matches[1][0]
    raise ValueError(
        f"cannot tell input from label in the element {element}: it must be a pair, or "
        f"a mapping with one of {_INPUT_KEYS} and one of {_LABEL_KEYS}"
    )


def check_bytes(
    sizes: Iterable[int], names: Sequence[str], limit: int, option: str = "max_bytes"
) -> None:
    """Raises a `ValueError` that names a client which alone exceeds a pack's limit."""
    for name, size in zip(names, sizes):
        if size > limit:
            raise ValueError(
                f"client {name!r} has {size} bytes of examples; a pack holds at most "
                f"{limit}: raise {option}, or keep the data in a store "
                "(leaf_data.write_store), which has no such limit"
            )


def split_clients(
    clients: Sequence[ClientArrays],
    names: Sequence[str],
    num_packs: int,
    max_bytes: int,
    attributes: Optional[Attributes],
) -> list[list[ClientArrays]]:
    """Splits clients into packs and adds their attributes.

    Arguments and errors are those of `pack`; `names` are those of all K clients. Arrays
    on disk are not read.
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
    check_type(
        "attributes", attributes, Mapping, "a leaf_data.ClientTable or a mapping"
    )
    attributes = {
        name: values_by_client(column, names, f"the attribute {name}")
        for name, column in attributes.items()
    }
    for name, column in attributes.items():
        if np.shape(column) != (len(names),):
            raise ValueError(
                f"the attribute {name} must be [{len(names)}], one value per client, "
                f"got {list(np.shape(column))}"
            )
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
        client_attributes = {
            k: np.float32(v[client.number]) for k, v in attributes.items()
        }
        placed.append(client._replace(attributes=client_attributes, place=place))
    return [[placed[place] for place in pack] for pack in packs]
