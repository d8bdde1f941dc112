"""A federated computation as six TensorFlow graphs, run in this process.

They are the graphs of TFF's MapReduceForm: `prepare` computes the server's message,
`work` a client's values, `zero`, `accumulate` and `merge` sum these values, and
`update` computes the result. `pack_sums.py` runs the graphs as a map and a reduce.
TFF's compiler to that form passes over the whole computation some thirty times, which
takes two seconds. Here each graph is traced from the expressions that it needs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

# These three are private to TFF, whose release requirements.txt pins (0.87.0). If
# another release moves them, this import fails, as tests/runtime/test_local.py shows.
from tensorflow_federated.python.core.environments.tensorflow_backend import (
    tensorflow_tree_transformations,
)
from tensorflow_federated.python.core.impl.types.type_transformations import (
    strip_placement,
)
from tensorflow_federated.python.core.impl.utils import tensorflow_utils

from leaf_data.errors import error_summary
from tff_pmc.runtime import values
from tff_pmc.runtime.pack_sums import GraphParts, ImportedGraph, PackGraphs

# TFF's operations in one process, where a federated value is its member.
_IN_PLACE: dict[str, Callable[[Any], Any]] = {
    "federated_apply": lambda argument: argument[0](argument[1]),
    "federated_map": lambda argument: argument[0](argument[1]),
    "federated_map_all_equal": lambda argument: argument[0](argument[1]),
    "federated_eval_at_clients": lambda function: function(),
    "federated_eval_at_server": lambda function: function(),
    "federated_value_at_clients": lambda value: value,
    "federated_value_at_server": lambda value: value,
    "federated_zip_at_clients": lambda value: value,
    "federated_zip_at_server": lambda value: value,
}
_MODULAR_SUM = "federated_secure_modular_sum"
_SECURE_SUMS = ("federated_secure_sum", "federated_secure_sum_bitwidth", _MODULAR_SUM)
_ABSENT = object()  # Stands for an argument with another placement.

Tensors = Sequence[tf.Tensor]
SumPacks = Callable[[Iterator[Tensors], Tensors], Sequence[tf.Tensor]]
"""Computes the sum of at least one pack, as in `PackSums`, from each pack's tensors and
the server's message, which all packs receive."""


class NotMapReduceError(ValueError):
    """Raised if a computation has no MapReduceForm, or one that this cannot run."""


class MapReduceComputation:
    """A compiled computation of values at SERVER and CLIENTS, its results at SERVER."""

    def __init__(
        self, computation: tff.Computation, sum_packs: Callable[[PackGraphs], SumPacks]
    ) -> None:
        """Compiles the computation, or raises a `NotMapReduceError`."""
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
                raise NotMapReduceError(f"{name} has no placement")
        if any(t.placement is tff.CLIENTS for t in results):
            raise NotMapReduceError("a result is placed at the clients")
        self._at_server = _indices_at(tff.SERVER, self._arguments)
        self._at_clients = _indices_at(tff.CLIENTS, self._arguments)
        if any(self._arguments[i][1].all_equal for i in self._at_clients):
            raise NotMapReduceError("an argument is one value for all clients")
        try:
            self._compile(_Expressions(computation), sum_packs)
        except Exception as error:  # TFF and TensorFlow raise many kinds here.
            raise NotMapReduceError(error_summary(error)) from error

    def __call__(self, argument: Any) -> Any:
        """Runs the computation; a value at CLIENTS is a list with one item each."""
        arguments = [argument]
        if self._names is not None:
            arguments = values.get_members(argument, self._names, "the call")
        state = []
        for number in self._at_server:
            name, type_ = self._arguments[number]
            state += values.to_tensors(arguments[number], type_.member, name)
        packs = self._packs(arguments)
        first_pack = next(packs, None)
        if first_pack is None:
            total, integers = self._zero([]), self._zero_integers
        else:
            message = self._prepare(state)
            sums = self._sum_packs(itertools.chain([first_pack], packs), message)
            num_accumulated = len(sums) - len(self._zero_integers)
            total, integers = sums[:num_accumulated], sums[num_accumulated:]
        integers = [a if m is None else a % m for a, m in zip(integers, self._moduli)]
        result_tensors = self._update([*state, *total, *integers])
        return values.to_python(result_tensors, strip_placement(self._result_type))

    @functools.cached_property
    def _zero(self) -> ImportedGraph:
        """The graph of the empty sum: only a call without packs needs it here."""
        return ImportedGraph(self._zero_parts)

    def _packs(self, arguments: Sequence[Any]) -> Iterator[list[tf.Tensor]]:
        """Yields the tensors of each client, from all arguments in their order."""
        client_values = [(*self._arguments[i], arguments[i]) for i in self._at_clients]
        sizes = {len(value) for _, _, value in client_values}
        if len(sizes) > 1:
            raise TypeError(
                f"the lists of clients in one call have the lengths {sorted(sizes)}: "
                "each must have one item per client"
            )
        for client in range(sizes.pop() if sizes else 0):
            yield [
                tensor
                for name, type_, value in client_values
                for tensor in values.to_tensors(
                    value[client], type_.member, f"{name}[{client}]"
                )
            ]

    def _compile(
        self, expressions: _Expressions, sum_packs: Callable[[PackGraphs], SumPacks]
    ) -> None:
        """Traces the graphs, and imports those that run at the server."""
        aggregations = list(expressions.aggregations.values())
        secure_sums = list(expressions.secure_sums.values())

        def bind_arguments(tensors: list[Any], numbers: list[int]) -> dict[str, Any]:
            """Binds these arguments to values, taken from the front of the tensors."""
            bound_values: list[Any] = [_ABSENT] * len(self._arguments)
            for number in numbers:
                bound_values[number] = _take_front(
                    tensors, self._arguments[number][1].member
                )
            if self._names is None:
                return {expressions.parameter: bound_values[0]} if bound_values else {}
            return {
                expressions.parameter: tff.structure.Struct(
                    zip(self._names, bound_values)
                )
            }

        def prepare(tensors: list[Any]) -> list[Any]:
            bound = bind_arguments(tensors, self._at_server)
            return [
                expressions.evaluate(block, bound)
                for block in expressions.broadcasts.values()
            ]

        def work(tensors: list[Any]) -> list[Any]:
            bound = bind_arguments(tensors, self._at_clients)
            for name, block in expressions.broadcasts.items():
                bound[name] = _take_front(tensors, block.type_signature.member)
            return [
                expressions.evaluate(expression.client_value, bound)
                for expression in (*aggregations, *secure_sums)
            ]

        def zero(tensors: list[Any]) -> list[Any]:
            return [
                expressions.evaluate(aggregation.zero, {})
                for aggregation in aggregations
            ]

        def map_pairs(blocks: list[Any]) -> Callable[[list[Any]], list[Any]]:
            """Builds a function of all blocks' first arguments, then the second."""
            types = [block.type_signature.parameter for block in blocks]

            def apply_to_pairs(tensors: list[Any]) -> list[Any]:
                first, second = (
                    [_take_front(tensors, type_[index]) for type_ in types]
                    for index in (0, 1)
                )
                return [
                    expressions.evaluate(block, {})(_with_names(type_, pair))
                    for block, type_, *pair in zip(blocks, types, first, second)
                ]

            return apply_to_pairs

        def update(tensors: list[Any]) -> list[Any]:
            bound = bind_arguments(tensors, self._at_server)
            for name, aggregation in expressions.aggregations.items():
                bound[name] = expressions.evaluate(aggregation.report, {})(
                    _take_front(tensors, aggregation.total_type)
                )
            for name, secure_sum in expressions.secure_sums.items():
                bound[name] = _take_front(
                    tensors, secure_sum.client_value.type_signature.member
                )
            return [expressions.evaluate(expressions.result, bound)]

        state, data = (
            [self._arguments[number][1].member for number in numbers]
            for numbers in (self._at_server, self._at_clients)
        )
        message = [
            block.type_signature.member for block in expressions.broadcasts.values()
        ]
        totals = [aggregation.total_type for aggregation in aggregations]
        client_values = [
            aggregation.client_value.type_signature.member
            for aggregation in aggregations
        ]
        integers = [
            secure_sum.client_value.type_signature.member for secure_sum in secure_sums
        ]
        flat = [leaf for type_ in integers for leaf in tff.structure.flatten(type_)]
        # In one process there is nobody to hide values from: secure sums are plain
        # integer sums.
        self._zero_integers = [tf.zeros(leaf.shape, leaf.dtype) for leaf in flat]
        self._moduli = [
            modulus
            for secure_sum in secure_sums
            for modulus in expressions.moduli(secure_sum)
        ]
        self._zero_parts = _trace(zero, [])
        self._update = ImportedGraph(_trace(update, [*state, *totals, *integers]))
        if not self._at_clients:  # There are no packs, and no message.
            return
        self._prepare = ImportedGraph(_trace(prepare, state))
        self._sum_packs = sum_packs(
            PackGraphs(
                work=_trace(work, [*data, *message]),
                zero=self._zero_parts,
                accumulate=_trace(
                    map_pairs([aggregation.accumulate for aggregation in aggregations]),
                    [*totals, *client_values],
                ),
                merge=_trace(
                    map_pairs([aggregation.merge for aggregation in aggregations]),
                    [*totals, *totals],
                ),
                num_integers=len(flat),
                seeded=bool(self._at_server),
            )
        )


class _Aggregation(NamedTuple):
    """The expressions of an aggregation: a client's value and four functions."""

    client_value: Any
    zero: Any
    accumulate: Any
    merge: Any
    report: Any

    @property
    def total_type(self) -> tff.Type:
        """The type of the accumulated total."""
        return self.report.type_signature.parameter


class _SecureSum(NamedTuple):
    """The expressions of a secure sum: a client's integers, their bound or modulus."""

    client_value: Any
    limit: Any
    is_modular: bool


class _Expressions:
    """The expressions of a federated computation.

    Attributes:
        parameter: the name of the computation's argument.
        result: the expression of the result.
        broadcasts: the values that are broadcast, by the names of their results.
        aggregations: the aggregations, by the names of their results.
        secure_sums: the secure sums, by the names of their results.
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
        self.broadcasts: dict[str, Any] = {}
        self.aggregations: dict[str, _Aggregation] = {}
        self.secure_sums: dict[str, _SecureSum] = {}
        for name, call in self._calls.items():
            operation = getattr(call.function, "uri", "")
            if operation == "federated_broadcast":
                self.broadcasts[name] = call.argument
            elif operation == "federated_aggregate":
                self.aggregations[name] = _Aggregation(
                    *(_select_member(call.argument, i) for i in range(5))
                )
            elif operation in _SECURE_SUMS:
                client_value, limit = (
                    _select_member(call.argument, i) for i in range(2)
                )
                self.secure_sums[name] = _SecureSum(
                    client_value, limit, operation == _MODULAR_SUM
                )

    def moduli(self, secure_sum: _SecureSum) -> list[Optional[tf.Tensor]]:
        """Returns the modulus of each tensor of a secure sum, or None for each."""
        if secure_sum.is_modular:
            modulus = _trace(lambda tensors: [self.evaluate(secure_sum.limit, {})], [])
            return ImportedGraph(modulus)([])
        return [None] * len(
            tff.structure.flatten(secure_sum.client_value.type_signature.member)
        )

    def evaluate(self, block: Any, bound: dict[str, Any]) -> Any:
        """Returns the value of an expression: tensors, structures or functions.

        Evaluates calls on demand, and stores their results in `bound`.
        """
        kinds = tff.framework
        if isinstance(block, kinds.Reference):
            if block.name not in bound:
                bound[block.name] = self.evaluate(self._calls[block.name], bound)
            value = bound[block.name]
        elif isinstance(block, kinds.Selection):
            value = self.evaluate(block.source, bound)[block.as_index()]
        elif isinstance(block, kinds.Struct):
            elements = tff.structure.to_elements(block)
            value = tff.structure.Struct(
                [(name, self.evaluate(element, bound)) for name, element in elements]
            )
        elif isinstance(block, kinds.Block):
            for name, local in block.locals:
                bound[name] = self.evaluate(local, bound)
            value = self.evaluate(block.result, bound)
        elif isinstance(block, kinds.Call):
            function = self.evaluate(block.function, bound)
            if block.argument is None:
                value = function()
            else:
                value = function(self.evaluate(block.argument, bound))
        elif isinstance(block, kinds.Lambda):

            def value(*argument: Any) -> Any:
                bound.update(zip([block.parameter_name], argument))
                return self.evaluate(block.result, bound)

        elif isinstance(block, kinds.CompiledComputation):
            compiled = kinds.ConcreteComputation.from_building_block(block)

            def value(*argument: Any) -> Any:
                result = compiled(*argument)
                if isinstance(block.type_signature.result, tff.StructType):
                    return tff.structure.from_container(result, recursive=True)
                return result

        elif isinstance(block, kinds.Literal):
            value = tf.constant(block.value)
        else:
            value = _IN_PLACE.get(getattr(block, "uri", ""), _ABSENT)
        if value is _ABSENT:
            raise NotMapReduceError(
                f"{block} depends on a value with another placement"
            )
        return value


def _trace(
    function: Callable[[list[Any]], list[Any]], types: Sequence[tff.Type]
) -> GraphParts:
    """Traces a function from a flat list of tensors to a list of structures."""
    leaves = [leaf for type_ in types for leaf in tff.structure.flatten(type_)]

    def flat_function(tensors: list[Any]) -> tuple[Any, ...]:
        structures = function(tensors)
        return tuple(
            leaf
            for structure in structures
            for leaf in tff.structure.flatten(structure)
        )

    if not leaves:
        return graph_parts(tff.tensorflow.computation(lambda: flat_function([])))

    @tff.tensorflow.computation(tff.StructType([(None, leaf) for leaf in leaves]))
    def computation(tensors):
        return flat_function([tensors[number] for number in range(len(leaves))])

    return graph_parts(computation)


def _take_front(tensors: list[Any], type_: tff.Type) -> Any:
    """Removes the tensors of a type from the front of a list; returns its value."""
    count = len(tff.structure.flatten(type_))
    front, tensors[:count] = tensors[:count], []
    return tff.structure.pack_sequence_as(type_, front)


def _select_member(argument: Any, number: int) -> Any:
    """Returns the expression of a member of a call's argument."""
    if isinstance(argument, tff.framework.Struct):
        return argument[number]
    return tff.framework.Selection(argument, index=number)


def _with_names(type_: tff.Type, members: Sequence[Any]) -> Any:
    """Returns a structure of these members with the names of a type."""
    names = [name for name, _ in tff.structure.to_elements(type_)]
    return tff.structure.Struct(zip(names, members))


def _indices_at(placement: Any, arguments: list[tuple[str, tff.Type]]) -> list[int]:
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
