"""Python's values as the tensors that a TFF type stands for, and back."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from leaf_data.errors import one_line

# A packed client, in the form of `clients.packing.element_spec`.
_PACKED = {"x", "y", "client"}

# The tensors behind the arrays of `to_python` that are still in use, by array.
_tensors: dict[int, tf.Tensor] = {}


def to_tensors(value: Any, type_: tff.Type, place: str) -> list[Any]:
    """Converts a value to tensors in its type's order; a `TypeError` names the place.

    Where the type has a sequence, the value has a `tf.data.Dataset` or a list, and a
    dataset is given: the graph that takes it reads it.
    """
    return [
        (_dataset if isinstance(kind, tff.SequenceType) else _tensor)(leaf, kind, where)
        for leaf, kind, where in _leaves(value, type_, place)
    ]


def _leaves(
    value: Any, type_: tff.Type, place: str
) -> Iterator[tuple[Any, tff.Type, str]]:
    """Yields the values that are no structures, each with its type and place."""
    if isinstance(type_, tff.FederatedType):
        if type_.placement is tff.SERVER or type_.all_equal:
            yield from _leaves(value, type_.member, place)
            return
        _check_clients(value, place or "the argument")
        for number, item in enumerate(value):
            own = f"{place or 'the argument'}[{number}]"
            yield from _leaves(item, type_.member, own)
    elif isinstance(type_, tff.StructType):
        members = list(tff.structure.to_elements(type_))
        items = members_of(value, [name for name, _ in members], place or "the call")
        for number, ((name, member), item) in enumerate(zip(members, items)):
            own = str(name or number)
            yield from _leaves(item, member, f"{place}.{own}" if place else own)
    else:
        yield value, type_, place or "the argument"


def to_python(tensors: Sequence[tf.Tensor], type_: tff.Type) -> Any:
    """Converts tensors to the containers of the type, as NumPy arrays.

    The arrays are views of the tensors: given back, as a process's state is, they cost
    no copy. They are read-only, because TensorFlow takes a tensor not to change.
    """
    return _nested(map(_array, tensors), type_)


def specs_of(type_: tff.Type) -> Any:
    """Returns the `TensorSpec`s of a type, in its containers or TFF's usual ones.

    TFF's `type_to_tf_tensor_specs` fails on a struct that names no container, such as
    the clients' data of its computation that evaluates personalization.
    """
    flat = tff.structure.flatten(type_)
    return _nested((tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in flat), type_)


def _nested(leaves: Iterable[Any], type_: tff.Type) -> Any:
    found = tff.structure.pack_sequence_as(type_, list(leaves))
    return tff.types.type_to_py_container(found, type_)


def _array(tensor: tf.Tensor) -> Any:
    is_text = tensor.dtype == tf.string
    if not tensor.shape.rank or is_text or "CPU" not in tensor.device:
        return tensor.numpy()
    array = np.asarray(memoryview(tensor))
    _tensors[id(array)] = tensor
    weakref.finalize(array, _tensors.pop, id(array))
    return array


def _tensor(value: Any, type_: tff.TensorType, place: str) -> tf.Tensor:
    value = _tensors.get(id(value), value)
    if not tf.is_tensor(value):
        value = np.asarray(value)
        is_text = np.dtype(type_.dtype).kind in "SUO"
        if value.dtype.kind in "biuf" and value.dtype != type_.dtype and not is_text:
            value = _cast_numbers(value, type_, place)
    try:
        tensor = tf.convert_to_tensor(value, type_.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{place} is no {type_}: {one_line(error)}") from error
    if not tf.TensorShape(type_.shape).is_compatible_with(tensor.shape):
        raise TypeError(f"{place} is no {type_}: its shape is {tensor.shape}")
    return tensor


def _cast_numbers(value: np.ndarray, type_: tff.TensorType, place: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        cast = value.astype(type_.dtype)
    # Numbers may change their kind where nothing of them is lost: 1 is also 1.0.
    if cast.dtype.kind in "biu" and (lost := cast != value).any():
        raise TypeError(f"{place} is no {type_}: {value[lost][0]}")
    return cast


def members_of(value: Any, names: Sequence[Optional[str]], place: str) -> Sequence[Any]:
    """Returns the members of a mapping, a sequence or an object in this order."""
    if isinstance(value, tff.structure.Struct):
        value = tff.structure.to_odict_or_tuple(value, recursive=False)
    if isinstance(value, Mapping):
        if set(value) == set(names):
            return [value[name] for name in names]
        found = "those of " + ", ".join(map(str, value))
    elif isinstance(value, (list, tuple)):
        if len(value) == len(names):
            return list(value)
        found = f"{len(value)}"
    elif names and all(name and hasattr(value, name) for name in names):
        return [getattr(value, name) for name in names]
    else:
        found = f"a {type(value).__name__}"
    wanted = ", ".join(name or "one without a name" for name in names) or "none"
    if "state" not in names and hasattr(value, "state"):
        found += "; a round gives two values: state, metrics = process.next(...)"
    raise TypeError(f"{place} must have the members {wanted}; it has {found}")


def _check_clients(value: Any, place: str) -> None:
    """Refuses what is no list with a value for each client."""
    if isinstance(value, (list, tuple)):
        return
    listed = ": put it into a list" if isinstance(value, tf.data.Dataset) else ""
    raise TypeError(
        f"{place} must be a list with the value of each client, and is a "
        f"{type(value).__name__}{listed}"
    )


def check_dataset(value: Any, type_: tff.SequenceType, place: str) -> None:
    """Refuses what is no dataset of elements of the type."""
    if not isinstance(value, tf.data.Dataset):
        raise TypeError(
            f"{place} must be a tf.data.Dataset or a list of its elements, and is "
            f"a {type(value).__name__}{_how_to_make(value, type_)}"
        )
    if not fits(value, type_):
        specs = specs_of(type_.element)
        raise TypeError(
            f"{place} is a dataset of {_short(value.element_spec)}, and must be one of "
            f"{_short(specs)}{_how_to_make(value, type_)}"
        )


def fits(dataset: tf.data.Dataset, type_: tff.SequenceType) -> bool:
    """Returns whether the dataset's elements are of the type."""
    specs = specs_of(type_.element)
    try:
        tf.nest.assert_same_structure(specs, dataset.element_spec, check_types=False)
    except (TypeError, ValueError):
        return False
    pairs = zip(tf.nest.flatten(specs), tf.nest.flatten(dataset.element_spec))
    return all(wanted.is_compatible_with(spec) for wanted, spec in pairs)


def _short(specs: Any) -> str:
    """Describes an element as TFF does: <x=uint8[?,28,28],y=int32[?]>."""
    try:
        return str(tff.types.tensorflow_to_type(specs))
    except (KeyError, TypeError, NotImplementedError):
        # What TFF raises of what its types have not: of variants, of ragged tensors,
        # and of quantized numbers.
        return one_line(specs)


def _dataset(value: Any, type_: tff.SequenceType, place: str) -> tf.data.Dataset:
    """Returns the dataset, or one made of a list of its elements."""
    if isinstance(value, (list, tuple)):
        element = type_.element
        rows = [
            _nested(to_tensors(row, element, f"{place}[{number}]"), element)
            for number, row in enumerate(value)
        ]
        value = tf.data.Dataset.from_generator(
            lambda: iter(rows), output_signature=specs_of(element)
        )
    else:
        check_dataset(value, type_, place)
    return value


class WrongDataError(TypeError):
    """A computation is called with another kind of data than it takes."""


def check(computation: tff.Computation, argument: Any) -> None:
    """Refuses an argument of another kind than the computation's parameter.

    TFF itself reports it by printing both types whole, and after clients have trained.
    The `WrongDataError` names the value in one line. Looked at are containers, the
    number of arguments and the kinds of datasets; single tensors are when they are
    used.
    """
    parameter = computation.type_signature.parameter
    if parameter is None or not tff.types.contains(
        parameter, lambda type_: isinstance(type_, tff.FederatedType)
    ):
        return
    try:
        for value, type_, place in _leaves(argument, parameter, ""):
            is_sequence = isinstance(type_, tff.SequenceType)
            # The elements of a list are looked at when they are read.
            if is_sequence and not isinstance(value, (list, tuple)):
                check_dataset(value, type_, place)
    except TypeError as error:
        # Without the frames below, which do not help the reader of a notebook.
        raise WrongDataError(str(error)) from None


def _how_to_make(value: Any, type_: tff.SequenceType) -> str:
    """Returns a hint at what makes the data that is wanted, where that is known."""
    wanted = _names(specs_of(type_.element))
    found = _names(getattr(value, "element_spec", None))
    if wanted >= _PACKED:
        if found >= _PACKED:
            return ""
        return "; tff_pmc.pack and tff_pmc.pack_client_data make packs of whole clients"
    if found >= _PACKED:
        return (
            "; packs are for processes of a functional model, and this one takes each "
            "client's dataset of batches"
        )
    if isinstance(value, tf.data.Dataset) and fits(value.batch(1), type_):
        return "; is a .batch(...) missing?"
    return ""


def _names(spec: Any) -> set[str]:
    return set(spec) if isinstance(spec, dict) else set()
