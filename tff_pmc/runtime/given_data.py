"""What a computation is called with, looked at before anything runs.

TFF itself, and its worker, say what is wrong with data by printing both types whole,
which for a learning process is pages. Here it is one line, which names the value; and
no client has trained when the last one's data is refused.
"""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.runtime import values

# A packed client, as `clients.packing.element_spec` has it.
_PACKED = {"x", "y", "client"}


class WrongDataError(TypeError):
    """A computation is called with another kind of data than it takes."""


def check(computation: tff.Computation, argument: Any) -> None:
    """Refuses an argument of another kind than the computation's parameter.

    Looked at are containers, the number of arguments and the kinds of datasets; single
    tensors are when they are used.

    Raises:
        WrongDataError: it is of another kind; the message names it, in one line.
    """
    parameter = computation.type_signature.parameter
    if parameter is None or not tff.types.contains(parameter, _is_federated):
        return
    try:
        _check(argument, parameter, "")
    except TypeError as error:
        # Without the frames below, which say nothing to who reads it in a notebook.
        raise WrongDataError(str(error)) from None


def _is_federated(type_: tff.Type) -> bool:
    return isinstance(type_, tff.FederatedType)


def _check(value: Any, type_: tff.Type, place: str) -> None:
    if isinstance(type_, tff.FederatedType):
        if type_.placement is tff.CLIENTS and not type_.all_equal:
            values.check_clients(value, place or "the argument")
            for number, item in enumerate(value):
                _check(item, type_.member, f"{place or 'the argument'}[{number}]")
        else:
            _check(value, type_.member, place)
    elif isinstance(type_, tff.StructType):
        members = list(tff.structure.to_elements(type_))
        names = [name for name, _ in members]
        try:
            items = values.members_of(value, names, place or "the call")
        except TypeError as error:
            raise TypeError(f"{error}{_other_member(value, names)}") from None
        for number, ((name, member), item) in enumerate(zip(members, items)):
            own = str(name or number)
            _check(item, member, f"{place}.{own}" if place else own)
    elif isinstance(type_, tff.SequenceType):
        if isinstance(value, (list, tuple)):
            return  # Its elements are looked at when they are read.
        try:
            values.check_dataset(value, type_, place or "the argument")
        except TypeError as error:
            raise TypeError(f"{error}{_how_to_make(value, type_)}") from None


def _other_member(value: Any, names: list[Optional[str]]) -> str:
    """Words on what a round gives, where it is given to the next in one."""
    if "state" not in names and hasattr(value, "state"):
        return "; a round gives two values: state, metrics = process.next(...)"
    return ""


def _how_to_make(value: Any, type_: tff.SequenceType) -> str:
    """Words on what makes the data that is wanted, as far as that can be told."""
    wanted = _names(tff.types.type_to_tf_tensor_specs(type_.element))
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
    if isinstance(value, tf.data.Dataset) and values.fits(value.batch(1), type_):
        return "; is a .batch(...) missing?"
    return ""


def _names(spec: Any) -> set[str]:
    return set(spec) if isinstance(spec, dict) else set()
