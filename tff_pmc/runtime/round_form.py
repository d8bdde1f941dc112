"""A federated computation in TFF's MapReduceForm, run in this process.

The form is seven TensorFlow graphs: `prepare` makes what the server sends, `work` what
a client answers, `zero`, `accumulate`, `merge` and `report` sum the answers, and
`update` makes the result. Whatever runs them as a map and a reduce (`pack_sums.py`)
runs the computation.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from leaf_data.errors import one_line
from tff_pmc.runtime import values
from tff_pmc.runtime.pack_sums import GraphParts, ImportedGraph, PackGraphs

# Grappler runs when the graphs are called. Applied by TFF before it, as is its default,
# it takes seconds and makes nothing faster (docs/performance.md).
_NO_GRAPPLER = tf.compat.v1.ConfigProto()
_NO_GRAPPLER.graph_options.rewrite_options.disable_meta_optimizer = True

Tensors = Sequence[tf.Tensor]
SumPacks = Callable[[Iterator[Tensors], Tensors], Sequence[tf.Tensor]]
"""Gives the sum of at least one pack, as `PackSums` has it: of the packs' tensors, and
of what the server sent to each."""


class NotInFormError(ValueError):
    """A computation that has no MapReduceForm, or one that this engine cannot run."""


class RoundForm:
    """A computation of what is at SERVER and at CLIENTS, with its result at SERVER."""

    def __init__(
        self, computation: tff.Computation, sum_packs: Callable[[PackGraphs], SumPacks]
    ) -> None:
        """Compiles it, about two seconds for a round, or raises a `NotInFormError`."""
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
            form = tff.backends.mapreduce.get_map_reduce_form_for_computation(
                self._two_arguments(computation), _NO_GRAPPLER
            )
        except Exception as error:  # TFF raises many kinds here.
            raise NotInFormError(one_line(error)) from error
        self._import(form, sum_packs)

    def __call__(self, argument: Any) -> Any:
        """Runs it on its argument, or a structure of several; clients' are lists."""
        arguments = [argument]
        if self._names is not None:
            arguments = values.members_of(argument, self._names, "the call")
        state = [] if self._at_server else [tf.constant(0)]
        for number in self._at_server:
            name, type_ = self._arguments[number]
            state += values.to_tensors(arguments[number], type_.member, name)
        total, hidden = self._zero([]), self._no_hidden
        packs = self._packs(arguments)
        first = next(packs, None)
        if first is not None:
            sent = self._prepare(state)
            found = self._sum_packs(itertools.chain([first], packs), sent)
            total, hidden = found[: len(total)], found[len(total) :]
        hidden = [a if m is None else a % m for a, m in zip(hidden, self._moduli)]
        found = self._update([*state, *self._report(total), *hidden])
        return values.to_python(found, _without_placement(self._result_type))

    def _packs(self, arguments: Sequence[Any]) -> Iterator[list[tf.Tensor]]:
        """The tensors of each value at CLIENTS, of all arguments there, in turn."""
        given = [(*self._arguments[i], arguments[i]) for i in self._at_clients]
        sizes = {len(value) for _, _, value in given}
        if len(sizes) > 1:
            raise TypeError(f"lists of {sorted(sizes)} clients in one call")
        for client in range(sizes.pop() if sizes else 0):
            yield [
                tensor
                for name, type_, value in given
                for tensor in values.to_tensors(
                    value[client], type_.member, f"{name}[{client}]"
                )
            ]

    def _two_arguments(self, computation: tff.Computation) -> tff.Computation:
        """The computation as `(state, data) -> (state, result)`, the form's own shape.

        Arguments at SERVER are the state, which stays as it is; those at CLIENTS, data.
        """

        def zipped(numbers: list[int], placement: Any) -> tff.Type:
            members = [self._arguments[number][1].member for number in numbers]
            return tff.FederatedType(tff.to_type(members or [np.int32]), placement)

        state_type = zipped(self._at_server, tff.SERVER)
        data_type = zipped(self._at_clients, tff.CLIENTS)
        is_zipped = isinstance(self._result_type, tff.FederatedType)

        @tff.federated_computation(state_type, data_type)
        def whole(state, data):
            given = {number: state[i] for i, number in enumerate(self._at_server)}
            given.update({number: data[i] for i, number in enumerate(self._at_clients)})
            result = computation(*(given[i] for i in range(len(self._arguments))))
            return state, result if is_zipped else tff.federated_zip(result)

        return whole

    def _import(
        self,
        form: tff.backends.mapreduce.MapReduceForm,
        sum_packs: Callable[[PackGraphs], SumPacks],
    ) -> None:
        """Imports the graphs that the server needs."""
        _, *hidden, modular = form.work.type_signature.result
        # Nobody is there to hide them from: secure sums are their integers' sums.
        flat = [t for part in (*hidden, modular) for t in tff.structure.flatten(part)]
        self._no_hidden = [tf.zeros(t.shape, t.dtype) for t in flat]
        graphs = PackGraphs(
            *(
                graph_parts(getattr(form, name))
                for name in ("work", "zero", "accumulate", "merge")
            ),
            len(flat),
            bool(self._at_server),
        )
        num_state = len(tff.structure.flatten(form.update.type_signature.parameter[0]))
        try:
            moduli = _imported(form.secure_modular_sum_modulus)([])
            # Without packs there is no work, and nothing to send.
            if self._at_clients:
                self._prepare = _imported(form.prepare)
                self._sum_packs = sum_packs(graphs)
            self._zero = ImportedGraph(graphs.zero)
            self._report = _imported(form.report)
            self._update = _imported(form.update, slice(num_state, None))
        except ValueError as error:
            raise NotInFormError(one_line(error)) from error
        plain = len(flat) - len(tff.structure.flatten(modular))
        self._moduli = [None] * plain + moduli
        assert len(self._moduli) == len(flat)


def _imported(
    computation: tff.Computation, results: Optional[slice] = None
) -> ImportedGraph:
    return ImportedGraph(graph_parts(computation, results))


def _at(placement: Any, arguments: list[tuple[str, tff.Type]]) -> list[int]:
    return [i for i, (_, t) in enumerate(arguments) if t.placement is placement]


def _without_placement(type_: tff.Type) -> tff.Type:
    found, _ = tff.types.type_transformations.transform_type_postorder(
        type_,
        lambda t: (t.member, True) if isinstance(t, tff.FederatedType) else (t, False),
    )
    return found


def graph_parts(
    computation: tff.Computation, results: Optional[slice] = None
) -> GraphParts:
    """The parts of a computation that is TensorFlow alone; `results` picks some."""
    serialized = tff.framework.serialize_computation(computation).tensorflow
    graph = tf.compat.v1.GraphDef()
    serialized.graph_def.Unpack(graph)
    feeds: list[str] = []
    if serialized.HasField("parameter"):
        feeds = list(_names(serialized.parameter))
    fetches = list(_names(serialized.result))[results or slice(None)]
    return GraphParts(
        graph.SerializeToString(deterministic=True),
        tuple(feeds),
        tuple(fetches),
        serialized.initialize_op,
    )


def _names(binding: object) -> Iterable[str]:
    """The names of a binding's tensors, in order."""
    kind = binding.WhichOneof("binding")
    if kind == "tensor":
        yield binding.tensor.tensor_name
    elif kind == "struct":
        for element in binding.struct.element:
            yield from _names(element)
    elif kind == "sequence":
        yield binding.sequence.variant_tensor_name
