"""The probe of criteria: each is evaluated on a synthetic client before the build."""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.clients.client_work import TOO_NARROW, evaluate_criterion
from tff_pmc.criteria import client_criteria
from tff_pmc.models.tff_types.keras_models import with_penalties
from tff_pmc.models.tff_types.packed_model import (
    PROBE_EXAMPLES,
    evaluate_initial_model,
    make_probe_array,
    split_batch,
)

_IN_GRAPH = "in a graph, as TFF runs it"
_WITH_EVERY_MODEL = (
    client_criteria.dataset_size,
    client_criteria.label_diversity,
    client_criteria.class_balance,
    client_criteria.model_divergence,
)
# The operations that overflow silently if their type, T, is a narrow integer.
_ARITHMETIC = (
    *("Sum", "Mean", "Prod", "Cumsum", "SegmentSum", "UnsortedSegmentSum"),
    *("AddV2", "AddN", "Sub", "Mul", "Square", "MatMul", "BatchMatMulV2", "Einsum"),
)


def probe_criteria(
    criteria: Sequence[criteria_lib.Criterion],
    model_fn: Any,
    weights: tff.learning.models.ModelWeights,
    input_spec: Any,
    client_attributes: Sequence[str],
) -> None:
    """Evaluates each criterion on a synthetic client, so that a faulty one fails here.

    DS, LD, CB and MD are skipped: they work with every model, and the probe of one
    takes 0.4 s.

    Raises:
        CriterionError: a criterion fails, is not a scalar, is negative, computes with
            integers of fewer than 32 bits, differs between calls or between eager and
            graph mode, or needs class labels that the model does not have; the message
            names it.
    """
    _, label = specs = split_batch(input_spec)
    received = _ProbeModel(model_fn, input_spec)
    for criterion in criteria:
        if criterion.needs_classes and not received.has_classes(label):
            raise criteria_lib.CriterionError(
                f"the criterion {criterion.code} needs class numbers as labels, not "
                f"one-hot vectors or real numbers, and the model's labels are {label}: "
                "use such labels and a loss that takes them, or other criteria"
            )
    criteria = [c for c in criteria if c.value not in _WITH_EVERY_MODEL]
    if not criteria:
        return
    x, y = (tf.nest.map_structure(make_probe_array, spec) for spec in specs)
    by_example = criteria_lib.example_attributes(criteria)
    arrays = dict(
        x=x,
        y=y,
        initial_weights=weights,
        trained_weights=tf.nest.map_structure(
            lambda w: np.asarray(w + w.dtype.type(1)), weights
        ),
        attributes={name: np.float32(0.5) for name in client_attributes},
        example_attributes={
            name: np.ones(PROBE_EXAMPLES, np.float32) for name in by_example
        },
    )
    client = received.client(tf.nest.map_structure(tf.constant, arrays))
    made_up = f"for a made-up client of {PROBE_EXAMPLES} examples"
    for criterion in criteria:
        with criterion_errors(criterion, made_up):
            eager = float(evaluate_criterion(criterion, client, check_sign=False))
        with criterion_errors(criterion, _IN_GRAPH):
            in_graph, repeated = _values_in_graph(criterion, received, arrays)
        if eager < 0:
            raise criteria_lib.CriterionError(
                f"the criterion {criterion.code} gave a negative value, {eager:g}, "
                f"{made_up}"
            )
        again = float(evaluate_criterion(criterion, client, check_sign=False))
        first, second = [eager, in_graph], [again, repeated]
        if not np.allclose(first, second, equal_nan=True, rtol=1e-3):
            raise criteria_lib.CriterionError(
                f"the criterion {criterion.code} differs between two calls: if it is "
                "random, use tf.random.stateless_uniform; a value that changes from "
                "round to round must be a client attribute"
            )
        if not np.isclose(eager, in_graph, equal_nan=True, rtol=1e-3):
            raise criteria_lib.CriterionError(
                f"the criterion {criterion.code} returns {eager:g} if called directly "
                f"but {in_graph:g} in a graph, where TFF runs it: is there an == "
                "between tensors that should be tf.equal?"
            )


@contextlib.contextmanager
def criterion_errors(criterion: criteria_lib.Criterion, where: str) -> Iterator[None]:
    """Raises a `CriterionError` from any error within; it names criterion and place."""
    try:
        yield
    except Exception as error:
        reason = getattr(error, "message", None) or str(error)
        if isinstance(error, KeyError):
            reason = " ".join(["KeyError:", *map(str, error.args)])
        if where == _IN_GRAPH and "None" in reason:
            reason += " (use tf.shape: the static size is unknown)"
        raise criteria_lib.CriterionError(
            f"the criterion {criterion.code} fails {where}: {' '.join(reason.split())}"
        ) from error


class _Attributes(dict):
    """Attributes by name; an unknown name raises an error that lists the known ones."""

    def __missing__(self, name: Any) -> Any:
        known_names = ", ".join(self) or "none"
        raise KeyError(
            f"unknown attribute {name!r}; the client attributes are: {known_names}"
        )


class _ProbeModel:
    """The model that a synthetic client received; it runs at most once."""

    def __init__(self, model_fn: Any, input_spec: Any) -> None:
        self._model_fn, self._spec = model_fn, input_spec

    @functools.cached_property
    def _output(self) -> Any:
        """The model's output on the client's examples, as arrays."""
        batch = tf.nest.map_structure(make_probe_array, self._spec)
        if isinstance(self._model_fn, tff.learning.models.FunctionalModel):
            predictions, loss = evaluate_initial_model(
                self._model_fn, *split_batch(batch)
            )
        else:
            batch = tf.nest.map_structure(tf.constant, batch)
            # Kept in a variable, because its functions hold no reference to it.
            model = with_penalties(self._model_fn())
            output = model.forward_pass(batch, training=False)
            # NumPy itself cannot convert a tensor of bfloat16.
            predictions, loss = tf.nest.map_structure(
                lambda t: t.numpy(), (output.predictions, output.loss)
            )
        arrays = tf.nest.map_structure(np.asarray, (loss, predictions))
        return tff.learning.models.BatchOutput(*arrays, PROBE_EXAMPLES)

    def has_classes(self, label: Any) -> bool:
        """Returns whether labels are class numbers, one per example or per step."""
        if not isinstance(label, tf.TensorSpec) or not label.dtype.is_integer:
            return False
        if label.shape.rank in (None, 1) or label.shape[-1] == 1:
            return True
        # Sequences: with class numbers, predictions have one axis more than labels.
        return np.ndim(self._output.predictions) == label.shape.rank + 1

    def client(self, values: dict[str, Any]) -> criteria_lib.LocalClient:
        """Returns the client with these values."""
        values = dict(values, attributes=_Attributes(values["attributes"]))

        def batch_mean(batch_metric: Any) -> Any:
            output = tf.nest.map_structure(tf.constant, self._output)
            return tf.cast(batch_metric(output, values["y"]), tf.float32)

        return criteria_lib.LocalClient(
            **dict(values, num_examples=tf.constant(PROBE_EXAMPLES)),
            steps=tf.constant(1),
            mean_on_received=batch_mean,
            mean_on_trained=batch_mean,
            memory=tf.ones([]),
        )


def _values_in_graph(
    criterion: criteria_lib.Criterion, probe_model: _ProbeModel, arrays: dict[str, Any]
) -> list[float]:
    """Computes the criterion for a client of these arrays twice, in graph mode."""
    by_example = ("x", "y", "example_attributes")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        # Placeholders instead of constants: a graph takes seconds to store a large
        # model's weights, and TFF's graphs do not know a client's number of examples.
        fed = {
            name: tf.nest.map_structure(
                lambda a, has_known_size=name not in by_example: (
                    tf.compat.v1.placeholder(
                        a.dtype, a.shape if has_known_size else [None, *a.shape[1:]]
                    )
                ),
                value,
            )
            for name, value in arrays.items()
        }
        with _forbid_tensor_equality():
            value = evaluate_criterion(
                criterion, probe_model.client(fed), check_sign=False
            )
        graph = session.graph.as_graph_def()
        bodies = (function.node_def for function in graph.library.function)
        for node in itertools.chain(graph.node, *bodies):
            dtype = tf.as_dtype(
                node.attr["T"].type if node.op in _ARITHMETIC else "int32"
            )
            if dtype.is_integer and dtype.size < 4:
                raise TypeError(f"its {node.op} is of {dtype.name}, which {TOO_NARROW}")
        feeds = dict(zip(tf.nest.flatten(fed), tf.nest.flatten(arrays)))
        return [float(session.run(value, feeds)) for _ in range(2)]


@contextlib.contextmanager
def _forbid_tensor_equality() -> Iterator[None]:
    """Makes `==` and `!=` of tensors raise: in a graph they compare Python objects.

    The synthetic client's values would not show it for labels that the client lacks.
    """
    operators = {"__eq__": "tf.equal", "__ne__": "tf.not_equal"}
    originals = {name: getattr(tf.Tensor, name) for name in operators}

    def reject(name: str) -> Callable[[Any, Any], Any]:
        def compare(self: Any, other: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if other is None or caller.partition(".")[0] in ("tensorflow", "keras"):
                return originals[name](self, other)
            raise TypeError(
                f"compare tensors by {operators[name]}: in TFF's graphs == and != "
                "compare Python objects"
            )

        return compare

    for name in operators:
        setattr(tf.Tensor, name, reject(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(tf.Tensor, name, original)
