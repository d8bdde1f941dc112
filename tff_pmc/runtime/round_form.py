"""A federated computation as six TensorFlow graphs, run in this process.

They are those of TFF's MapReduceForm: `prepare` makes what the server sends, `work`
what a client answers, `zero`, `accumulate` and `merge` sum the answers, and `update`
makes the result. Whatever runs them as a map and a reduce (`pack_sums.py`) runs the
computation. TFF's compiler to that form goes over the whole computation some thirty
times, which takes two seconds. Here each graph is traced from what it needs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

# These three are private to TFF, whose release requirements.txt pins (0.87.0). In one
# that moves them this import fails, and first with it tests/runtime/test_local.py.
from tensorflow_federated.python.core.environments.tensorflow_backend import (
    tensorflow_tree_transformations,
)
from tensorflow_federated.python.core.impl.types.type_transformations import (
    strip_placement,
)
from tensorflow_federated.python.core.impl.utils import tensorflow_utils

from leaf_data.errors import one_line
from tff_pmc.runtime import values
from tff_pmc.runtime.pack_sums import GraphParts, ImportedGraph, PackGraphs

# What TFF's operations are where a value and its members are at one place.
_IN_PLACE: dict[str, Callable[[Any], Any]] = {
    "federated_apply": lambda given: given[0](given[1]),
    "federated_map": lambda given: given[0](given[1]),
    "federated_map_all_equal": lambda given: given[0](given[1]),
    "federated_eval_at_clients": lambda function: function(),
    "federated_eval_at_server": lambda function: function(),
    "federated_value_at_clients": lambda value: value,
    "federated_value_at_server": lambda value: value,
    "federated_zip_at_clients": lambda value: value,
    "federated_zip_at_server": lambda value: value,
}
_MODULAR = "federated_secure_modular_sum"
_HIDDEN = ("federated_secure_sum", "federated_secure_sum_bitwidth", _MODULAR)
_ABSENT = object()  # Takes the place of an argument of another place.

Tensors = Sequence[tf.Tensor]
SumPacks = Callable[[Iterator[Tensors], Tensors], Sequence[tf.Tensor]]
"""Gives the sum of at least one pack, as `PackSums` has it: of the packs' tensors, and
of what the server sent to each."""


class NotInFormError(ValueError):
    """A computation that has no such form, or one that this engine cannot run."""


class RoundForm:
    """A computation of what is at SERVER and at CLIENTS, with its result at SERVER."""

    def __init__(
        self, computation: tff.Computation, sum_packs: Callable[[PackGraphs], SumPacks]
    ) -> None:
        """Compiles it, or raises a `NotInFormError`."""
        signature = computation.type_signature
        self._result_type = signature.result
        parameter = signature.parameter
        self._names: Optional[list[Optional[str]]] = None
        self._arguments: list[tuple[str, tff.Type]] = []
        if isinstance(parameter, tff.StructType):
            self._names, types = zip(*tff.structure.to_elements(parameter))
            self._arguments = [
                (name or f"argument {number}", type_)
                for number, (name, type_) in enumerate(zip(self._names, types))
            ]
        elif parameter is not None:
            self._arguments = [("the argument", parameter)]
        results = tff.structure.flatten(self._result_type)
        for name, type_ in [*self._arguments, *(("a result", t) for t in results)]:
            if not isinstance(type_, tff.FederatedType):
                raise NotInFormError(f"{name} is at no placement")
        if any(t.placement is tff.CLIENTS for t in results):
            raise NotInFormError("a result stays at the clients")
        self._at_server = _at(tff.SERVER, self._arguments)
        self._at_clients = _at(tff.CLIENTS, self._arguments)
        if any(self._arguments[i][1].all_equal for i in self._at_clients):
            raise NotInFormError("the clients are given one value for all")
        try:
            self._compile(_Body(computation), sum_packs)
        except Exception as error:  # TFF and TensorFlow raise many kinds here.
            raise NotInFormError(one_line(error)) from error

    def __call__(self, argument: Any) -> Any:
        """Runs it on its argument, or a structure of several; clients' are lists."""
        arguments = [argument]
        if self._names is not None:
            arguments = values.members_of(argument, self._names, "the call")
        state = []
        for number in self._at_server:
            name, type_ = self._arguments[number]
            state += values.to_tensors(arguments[number], type_.member, name)
        packs = self._packs(arguments)
        first = next(packs, None)
        if first is None:
            total, hidden = self._zero([]), self._no_hidden
        else:
            sent = self._prepare(state)
            found = self._sum_packs(itertools.chain([first], packs), sent)
            in_clear = len(found) - len(self._no_hidden)
            total, hidden = found[:in_clear], found[in_clear:]
        hidden = [a if m is None else a % m for a, m in zip(hidden, self._moduli)]
        found = self._update([*state, *total, *hidden])
        return values.to_python(found, strip_placement(self._result_type))

    @functools.cached_property
    def _zero(self) -> ImportedGraph:
        """The sums of no answers: only a call without packs needs them here."""
        return ImportedGraph(self._zero_parts)

    def _packs(self, arguments: Sequence[Any]) -> Iterator[list[tf.Tensor]]:
        """Returns the tensors of each value at CLIENTS, of all arguments in turn."""
        given = [(*self._arguments[i], arguments[i]) for i in self._at_clients]
        sizes = {len(value) for _, _, value in given}
        if len(sizes) > 1:
            raise TypeError(
                "the lists of clients in one call have different lengths: "
                f"{sorted(sizes)}"
            )
        for client in range(sizes.pop() if sizes else 0):
            yield [
                tensor
                for name, type_, value in given
                for tensor in values.to_tensors(
                    value[client], type_.member, f"{name}[{client}]"
                )
            ]

    def _compile(
        self, body: _Body, sum_packs: Callable[[PackGraphs], SumPacks]
    ) -> None:
        """Traces the graphs, and imports those that the server needs."""
        sums, hidden = list(body.sums.values()), list(body.hidden.values())

        def bound_to(given: list[Any], numbers: list[int]) -> dict[str, Any]:
            """Binds the arguments of these numbers; takes their tensors from given."""
            found: list[Any] = [_ABSENT] * len(self._arguments)
            for number in numbers:
                found[number] = _taken(given, self._arguments[number][1].member)
            if self._names is None:
                return {body.parameter: found[0]} if found else {}
            return {body.parameter: tff.structure.Struct(zip(self._names, found))}

        def prepare(given: list[Any]) -> list[Any]:
            bound = bound_to(given, self._at_server)
            return [body.value(block, bound) for block in body.sent.values()]

        def work(given: list[Any]) -> list[Any]:
            bound = bound_to(given, self._at_clients)
            for name, block in body.sent.items():
                bound[name] = _taken(given, block.type_signature.member)
            return [body.value(one.answer, bound) for one in (*sums, *hidden)]

        def zero(given: list[Any]) -> list[Any]:
            return [body.value(one.zero, {}) for one in sums]

        def in_pairs(blocks: list[Any]) -> Callable[[list[Any]], list[Any]]:
            """Makes a function of these functions' first arguments, then the second."""
            types = [block.type_signature.parameter for block in blocks]

            def traced(given: list[Any]) -> list[Any]:
                first, second = (
                    [_taken(given, type_[place]) for type_ in types] for place in (0, 1)
                )
                return [
                    body.value(block, {})(_named(type_, pair))
                    for block, type_, *pair in zip(blocks, types, first, second)
                ]

            return traced

        def update(given: list[Any]) -> list[Any]:
            bound = bound_to(given, self._at_server)
            for name, one in body.sums.items():
                bound[name] = body.value(one.report, {})(_taken(given, one.total_type))
            for name, one in body.hidden.items():
                bound[name] = _taken(given, one.answer.type_signature.member)
            return [body.value(body.result, bound)]

        state, data = (
            [self._arguments[number][1].member for number in numbers]
            for numbers in (self._at_server, self._at_clients)
        )
        sent = [block.type_signature.member for block in body.sent.values()]
        totals = [one.total_type for one in sums]
        answers = [one.answer.type_signature.member for one in sums]
        integers = [one.answer.type_signature.member for one in hidden]
        flat = [leaf for type_ in integers for leaf in tff.structure.flatten(type_)]
        # Nobody is there to hide them from: secure sums are their integers' sums.
        self._no_hidden = [tf.zeros(leaf.shape, leaf.dtype) for leaf in flat]
        self._moduli = [modulus for one in hidden for modulus in body.moduli(one)]
        self._zero_parts = _traced(zero, [])
        self._update = ImportedGraph(_traced(update, [*state, *totals, *integers]))
        if not self._at_clients:  # There are no packs, and nothing is sent.
            return
        self._prepare = ImportedGraph(_traced(prepare, state))
        self._sum_packs = sum_packs(
            PackGraphs(
                work=_traced(work, [*data, *sent]),
                zero=self._zero_parts,
                accumulate=_traced(
                    in_pairs([one.accumulate for one in sums]), [*totals, *answers]
                ),
                merge=_traced(
                    in_pairs([one.merge for one in sums]), [*totals, *totals]
                ),
                num_integers=len(flat),
                seeded=bool(self._at_server),
            )
        )


class _Sum(NamedTuple):
    """The expressions of an aggregation: what is summed, and four functions."""

    answer: Any
    zero: Any
    accumulate: Any
    merge: Any
    report: Any

    @property
    def total_type(self) -> tff.Type:
        """The type of what is accumulated."""
        return self.report.type_signature.parameter


class _HiddenSum(NamedTuple):
    """The expressions of a secure sum: its integers, and their bound or modulus."""

    answer: Any
    limit: Any
    is_modular: bool


class _Body:
    """The expressions of a federated computation.

    Attributes:
        parameter: the name of the computation's argument.
        result: the result.
        sent: what is broadcast, by the name of what arrives.
        sums: the aggregations, by the names of their results.
        hidden: the secure sums, by the names of their results.
    """

    def __init__(self, computation: tff.Computation) -> None:
        block = computation.to_building_block()
        # Means, sums, minima and maxima become aggregations.
        block, _ = tensorflow_tree_transformations.replace_intrinsics_with_bodies(block)
        block = tff.framework.to_call_dominant(block)
        self._calls: dict[str, Any] = {}
        self.parameter = ""
        while isinstance(block, (tff.framework.Block, tff.framework.Lambda)):
            if isinstance(block, tff.framework.Block):
                self._calls.update(block.locals)
            else:
                self.parameter = block.parameter_name
            block = block.result
        self.result = block
        self.sent: dict[str, Any] = {}
        self.sums: dict[str, _Sum] = {}
        self.hidden: dict[str, _HiddenSum] = {}
        for name, call in self._calls.items():
            operation = getattr(call.function, "uri", "")
            if operation == "federated_broadcast":
                self.sent[name] = call.argument
            elif operation == "federated_aggregate":
                self.sums[name] = _Sum(*(_member(call.argument, i) for i in range(5)))
            elif operation in _HIDDEN:
                answer, limit = (_member(call.argument, i) for i in range(2))
                self.hidden[name] = _HiddenSum(answer, limit, operation == _MODULAR)

    def moduli(self, hidden: _HiddenSum) -> list[Optional[tf.Tensor]]:
        """Returns the modulus of each tensor of a secure sum; None without one."""
        if hidden.is_modular:
            modulus = _traced(lambda given: [self.value(hidden.limit, {})], [])
            return ImportedGraph(modulus)([])
        return [None] * len(tff.structure.flatten(hidden.answer.type_signature.member))

    def value(self, block: Any, bound: dict[str, Any]) -> Any:
        """Returns the value of an expression: tensors, structures and functions.

        Calls are made when they are needed, and `bound` keeps their results.
        """
        kinds = tff.framework
        if isinstance(block, kinds.Reference):
            if block.name not in bound:
                bound[block.name] = self.value(self._calls[block.name], bound)
            found = bound[block.name]
        elif isinstance(block, kinds.Selection):
            found = self.value(block.source, bound)[block.as_index()]
        elif isinstance(block, kinds.Struct):
            elements = tff.structure.to_elements(block)
            found = tff.structure.Struct(
                [(name, self.value(element, bound)) for name, element in elements]
            )
        elif isinstance(block, kinds.Block):
            for name, local in block.locals:
                bound[name] = self.value(local, bound)
            found = self.value(block.result, bound)
        elif isinstance(block, kinds.Call):
            function = self.value(block.function, bound)
            if block.argument is None:
                found = function()
            else:
                found = function(self.value(block.argument, bound))
        elif isinstance(block, kinds.Lambda):

            def found(*given: Any) -> Any:
                bound.update(zip([block.parameter_name], given))
                return self.value(block.result, bound)

        elif isinstance(block, kinds.CompiledComputation):
            compiled = kinds.ConcreteComputation.from_building_block(block)

            def found(*given: Any) -> Any:
                result = compiled(*given)
                if isinstance(block.type_signature.result, tff.StructType):
                    return tff.structure.from_container(result, recursive=True)
                return result

        elif isinstance(block, kinds.Literal):
            found = tf.constant(block.value)
        else:
            found = _IN_PLACE.get(getattr(block, "uri", ""), _ABSENT)
        if found is _ABSENT:
            raise NotInFormError(f"{block} waits for what is elsewhere")
        return found


def _traced(
    function: Callable[[list[Any]], list[Any]], types: Sequence[tff.Type]
) -> GraphParts:
    """Traces a function of a flat list of tensors that returns structures."""
    leaves = [leaf for type_ in types for leaf in tff.structure.flatten(type_)]

    def flat(given: list[Any]) -> tuple[Any, ...]:
        found = function(given)
        return tuple(leaf for one in found for leaf in tff.structure.flatten(one))

    if not leaves:
        return graph_parts(tff.tensorflow.computation(lambda: flat([])))

    @tff.tensorflow.computation(tff.StructType([(None, leaf) for leaf in leaves]))
    def computation(given):
        return flat([given[number] for number in range(len(leaves))])

    return graph_parts(computation)


def _taken(tensors: list[Any], type_: tff.Type) -> Any:
    """Takes the tensors of a type from the front of a list."""
    count = len(tff.structure.flatten(type_))
    found, tensors[:count] = tensors[:count], []
    return tff.structure.pack_sequence_as(type_, found)


def _member(argument: Any, number: int) -> Any:
    """Returns a member of a call's argument, itself or what stands for it."""
    if isinstance(argument, tff.framework.Struct):
        return argument[number]
    return tff.framework.Selection(argument, index=number)


def _named(type_: tff.Type, members: Sequence[Any]) -> Any:
    """Makes a structure of these members with the names of a type."""
    names = [name for name, _ in tff.structure.to_elements(type_)]
    return tff.structure.Struct(zip(names, members))


def _at(placement: Any, arguments: list[tuple[str, tff.Type]]) -> list[int]:
    return [i for i, (_, t) in enumerate(arguments) if t.placement is placement]


def graph_parts(computation: tff.Computation) -> GraphParts:
    """Returns the parts of a computation that is TensorFlow alone."""
    serialized = tff.framework.serialize_computation(computation).tensorflow
    names = tensorflow_utils.extract_tensor_names_from_binding
    has_parameter = serialized.HasField("parameter")
    return GraphParts(
        serialized.graph_def.value,
        tuple(names(serialized.parameter)) if has_parameter else (),
        tuple(names(serialized.result)),
        serialized.initialize_op,
    )
