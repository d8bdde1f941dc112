"""Converts Python values to the tensors of a TFF type, and back."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from leaf_data.errors import error_summary, shorten

# A packed client, in the form of `clients.packing.element_spec`.
_PACKED = {"x", "y", "client"}

# The tensors of the arrays that `to_python` returned and that still exist, by array id.
_tensors: dict[int, tf.Tensor] = {}


def to_tensors(value: Any, type_: tff.Type, path: str) -> list[Any]:
    """Converts a value to tensors in its type's order; a `TypeError` names the path.

    `path` is the value's name in messages, such as `clients[3].x`. For a sequence type
    the value is a `tf.data.Dataset` or a list, and the result is a dataset, which the
    graph reads.
    """
    return [
        (_to_dataset if isinstance(leaf_type, tff.SequenceType) else _to_tensor)(
            leaf, leaf_type, leaf_path
        )
        for leaf, leaf_type, leaf_path in _leaves(value, type_, path)
    ]


def _leaves(
    value: Any, type_: tff.Type, path: str
) -> Iterator[tuple[Any, tff.Type, str]]:
    """Yields the values that are not structures, each with its type and path."""
    if isinstance(type_, tff.FederatedType):
        if type_.placement is tff.SERVER or type_.all_equal:
            yield from _leaves(value, type_.member, path)
            return
        _check_clients(value, path or "the argument")
        for number, item in enumerate(value):
            item_path = f"{path or 'the argument'}[{number}]"
            yield from _leaves(item, type_.member, item_path)
    elif isinstance(type_, tff.StructType):
        members = list(tff.structure.to_elements(type_))
        items = get_members(value, [name for name, _ in members], path or "the call")
        for number, ((name, member), item) in enumerate(zip(members, items)):
            item_path = str(name or number)
            yield from _leaves(
                item, member, f"{path}.{item_path}" if path else item_path
            )
    else:
        yield value, type_, path or "the argument"


def to_python(tensors: Sequence[tf.Tensor], type_: tff.Type) -> Any:
    """Converts tensors to the containers of the type, as NumPy arrays.

    The arrays are views of the tensors: passed in again, like a process's state, they
    are not copied. They are read-only, because TensorFlow relies on tensors not to
    change.
    """
    return _to_containers(map(_to_array, tensors), type_)


def tensor_specs(type_: tff.Type) -> Any:
    """Returns the `TensorSpec`s of a type, in its containers or TFF's usual ones.

    TFF's `type_to_tf_tensor_specs` fails on a struct that names no container, such as
    the clients' data of its computation that evaluates personalization.
    """
    flat = tff.structure.flatten(type_)
    return _to_containers(
        (tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in flat), type_
    )


def _to_containers(leaves: Iterable[Any], type_: tff.Type) -> Any:
    structure = tff.structure.pack_sequence_as(type_, list(leaves))
    return tff.types.type_to_py_container(structure, type_)


def _to_array(tensor: tf.Tensor) -> Any:
    is_text = tensor.dtype == tf.string
    if not tensor.shape.rank or is_text or "CPU" not in tensor.device:
        return tensor.numpy()
    array = np.asarray(memoryview(tensor))
    _tensors[id(array)] = tensor
    weakref.finalize(array, _tensors.pop, id(array))
    return array


def _to_tensor(value: Any, type_: tff.TensorType, path: str) -> tf.Tensor:
    value = _tensors.get(id(value), value)
    if not tf.is_tensor(value):
        value = np.asarray(value)
        is_text = np.dtype(type_.dtype).kind in "SUO"
        if value.dtype.kind in "biuf" and value.dtype != type_.dtype and not is_text:
            value = _cast_numbers(value, type_, path)
    try:
        tensor = tf.convert_to_tensor(value, type_.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{path} is not of type {type_}: {error_summary(error)}"
        ) from error
    if not tf.TensorShape(type_.shape).is_compatible_with(tensor.shape):
        raise TypeError(f"{path} is not of type {type_}: its shape is {tensor.shape}")
    return tensor


def _cast_numbers(value: np.ndarray, type_: tff.TensorType, path: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        cast = value.astype(type_.dtype)
    # Numbers may change their type if no value changes: 1 is also 1.0.
    if cast.dtype.kind in "biu" and (lost := cast != value).any():
        raise TypeError(f"{path} is not of type {type_}: {value[lost][0]}")
    return cast


def get_members(value: Any, names: Sequence[Optional[str]], path: str) -> Sequence[Any]:
    """Returns the members of a mapping, a sequence or an object in this order."""
    if isinstance(value, tff.structure.Struct):
        value = tff.structure.to_odict_or_tuple(value, recursive=False)
    if isinstance(value, Mapping):
        if set(value) == set(names):
            return [value[name] for name in names]
        actual = "has the members " + ", ".join(map(str, value))
    elif isinstance(value, (list, tuple)):
        if len(value) == len(names):
            return list(value)
        actual = f"has {len(value)} members"
    elif names and all(name and hasattr(value, name) for name in names):
        return [getattr(value, name) for name in names]
    else:
        actual = f"is a {type(value).__name__}"
    expected = ", ".join(name or "one without a name" for name in names) or "none"
    if "state" not in names and hasattr(value, "state"):
        actual += "; a round returns two values: state, metrics = process.next(...)"
    raise TypeError(f"{path} must have the members {expected}; it {actual}")


def _check_clients(value: Any, path: str) -> None:
    """Raises a `TypeError` if the value is not a list with an item per client."""
    if isinstance(value, (list, tuple)):
        return
    hint = ": put it into a list" if isinstance(value, tf.data.Dataset) else ""
    raise TypeError(
        f"{path} must be a list with the value of each client; got "
        f"{type(value).__name__}{hint}"
    )


def check_dataset(value: Any, type_: tff.SequenceType, path: str) -> None:
    """Raises a `TypeError` if the value is not a dataset of elements of the type."""
    if not isinstance(value, tf.data.Dataset):
        raise TypeError(
            f"{path} must be a tf.data.Dataset or a list of its elements; got "
            f"{type(value).__name__}{_hint(value, type_)}"
        )
    if not has_elements_of(value, type_):
        specs = tensor_specs(type_.element)
        raise TypeError(
            f"{path} is a dataset of {_format_specs(value.element_spec)}; it must be "
            f"one of {_format_specs(specs)}{_hint(value, type_)}"
        )


def has_elements_of(dataset: tf.data.Dataset, type_: tff.SequenceType) -> bool:
    """Returns whether the elements of a dataset have the type of the sequence."""
    specs = tensor_specs(type_.element)
    try:
        tf.nest.assert_same_structure(specs, dataset.element_spec, check_types=False)
    except (TypeError, ValueError):
        return False
    pairs = zip(tf.nest.flatten(specs), tf.nest.flatten(dataset.element_spec))
    return all(expected.is_compatible_with(spec) for expected, spec in pairs)


def _format_specs(specs: Any) -> str:
    """Describes an element as TFF does: <x=uint8[?,28,28],y=int32[?]>."""
    try:
        return str(tff.types.tensorflow_to_type(specs))
    except (KeyError, TypeError, NotImplementedError):
        # TFF raises these for values without a TFF type: variants, ragged tensors and
        # quantized numbers.
        return shorten(specs)


def _to_dataset(value: Any, type_: tff.SequenceType, path: str) -> tf.data.Dataset:
    """Returns the dataset, or builds it from a list of its elements."""
    if isinstance(value, (list, tuple)):
        element = type_.element
        rows = [
            _to_containers(to_tensors(row, element, f"{path}[{number}]"), element)
            for number, row in enumerate(value)
        ]
        value = tf.data.Dataset.from_generator(
            lambda: iter(rows), output_signature=tensor_specs(element)
        )
    else:
        check_dataset(value, type_, path)
    return value


class WrongDataError(TypeError):
    """Raised if a computation is called with data of the wrong kind."""


def check_argument(computation: tff.Computation, argument: Any) -> None:
    """Raises a `WrongDataError` if the argument's kind differs from the parameter's.

    TFF itself would print both types in full, and only after clients have trained; the
    message names the value in one line. It checks containers, the number of arguments
    and the types of datasets; tensors are checked when they are converted.
    """
    parameter = computation.type_signature.parameter
    if parameter is None or not tff.types.contains(
        parameter, lambda type_: isinstance(type_, tff.FederatedType)
    ):
        return
    try:
        for value, type_, path in _leaves(argument, parameter, ""):
            is_sequence = isinstance(type_, tff.SequenceType)
            # The elements of a list are checked when they are read.
            if is_sequence and not isinstance(value, (list, tuple)):
                check_dataset(value, type_, path)
    except TypeError as error:
        # Without the inner frames, which do not help the reader of a notebook.
        raise WrongDataError(str(error)) from None


def _hint(value: Any, type_: tff.SequenceType) -> str:
    """Returns a hint how to build the expected data, or an empty text."""
    expected = _member_names(tensor_specs(type_.element))
    actual = _member_names(getattr(value, "element_spec", None))
    if expected >= _PACKED:
        if actual >= _PACKED:
            return ""
        return "; tff_pmc.pack and tff_pmc.pack_client_data build packs of clients"
    if actual >= _PACKED:
        return (
            "; packs are for processes of a functional model, but this process needs "
            "each client's dataset of batches"
        )
    if isinstance(value, tf.data.Dataset) and has_elements_of(value.batch(1), type_):
        return "; is a .batch(...) missing?"
    return ""


def _member_names(spec: Any) -> set[str]:
    return set(spec) if isinstance(spec, dict) else set()
