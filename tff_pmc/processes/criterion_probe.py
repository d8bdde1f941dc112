"""The probe of criteria: each is tried on a made-up client before anything is built."""

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
# What wraps where the type of its numbers, T, is narrow.
_ARITHMETIC = (
    *("Sum", "Mean", "Prod", "Cumsum", "SegmentSum", "UnsortedSegmentSum"),
    *("AddV2", "AddN", "Sub", "Mul", "Square", "MatMul", "BatchMatMulV2", "Einsum"),
)


def probe_criteria(
    found: Sequence[criteria_lib.Criterion],
    model_fn: Any,
    weights: tff.learning.models.ModelWeights,
    input_spec: Any,
    client_attributes: Sequence[str],
) -> None:
    """Tries each criterion on a made-up client, so that a wrong one is named here.

    DS, LD, CB and MD are not tried: they work with every model, and it takes .4 s.

    Raises:
        CriterionError: a criterion fails on it, is no scalar, is negative, computes
            with integers of less than 32 bits, gives another value in a graph or each
            time, or needs classes where labels are none; the message names it.
    """
    _, label = specs = split_batch(input_spec)
    received = _ProbeModel(model_fn, input_spec)
    for criterion in found:
        if criterion.needs_classes and not received.has_classes(label):
            raise criteria_lib.CriterionError(
                f"the criterion {criterion.code} needs labels that are the numbers of "
                f"classes, no one-hot vectors, and the model's are {label}: give such "
                "labels and a loss that takes them, or name other criteria"
            )
    found = [one for one in found if one.value not in _WITH_EVERY_MODEL]
    if not found:
        return
    x, y = (tf.nest.map_structure(make_probe_array, spec) for spec in specs)
    by_example = criteria_lib.example_attributes(found)
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
    for criterion in found:
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
                f"the criterion {criterion.code} gives another value each time: is it "
                "random? use tf.random.stateless_uniform; what changes from round to "
                "round has to be a client attribute"
            )
        if not np.isclose(eager, in_graph, equal_nan=True, rtol=1e-3):
            raise criteria_lib.CriterionError(
                f"the criterion {criterion.code} gives {eager:g} called directly but "
                f"{in_graph:g} in a graph, where TFF runs it: is there an == between "
                "tensors that should be tf.equal?"
            )


@contextlib.contextmanager
def criterion_errors(criterion: criteria_lib.Criterion, where: str) -> Iterator[None]:
    """Makes a `CriterionError` of any error within."""
    try:
        yield
    except Exception as error:
        reason = getattr(error, "message", None) or str(error)
        if isinstance(error, KeyError):
            reason = " ".join(["KeyError:", *map(str, error.args)])
        if where == _IN_GRAPH and "None" in reason:
            reason += " (tf.shape gives the size, which is not known yet)"
        raise criteria_lib.CriterionError(
            f"the criterion {criterion.code} fails {where}: {' '.join(reason.split())}"
        ) from error


class _Attributes(dict):
    def __missing__(self, name: Any) -> Any:
        named = ", ".join(self) or "none"
        raise KeyError(f"there is no {name!r}; the client attributes are: {named}")


class _ProbeModel:
    """The model that a made-up client received, if a criterion runs it."""

    def __init__(self, model_fn: Any, input_spec: Any) -> None:
        self._model_fn, self._spec = model_fn, input_spec

    @functools.cached_property
    def _output(self) -> Any:
        """Its output on the client's examples, in arrays."""
        batch = tf.nest.map_structure(make_probe_array, self._spec)
        if isinstance(self._model_fn, tff.learning.models.FunctionalModel):
            predictions, loss = evaluate_initial_model(
                self._model_fn, *split_batch(batch)
            )
        else:
            batch = tf.nest.map_structure(tf.constant, batch)
            model = with_penalties(self._model_fn())  # Its functions do not keep it.
            output = model.forward_pass(batch, training=False)
            # NumPy itself cannot take a tensor of bfloat16.
            predictions, loss = tf.nest.map_structure(
                lambda t: t.numpy(), (output.predictions, output.loss)
            )
        arrays = tf.nest.map_structure(np.asarray, (loss, predictions))
        return tff.learning.models.BatchOutput(*arrays, PROBE_EXAMPLES)

    def has_classes(self, label: Any) -> bool:
        """Returns whether labels are class numbers, of whole examples or of steps."""
        if not isinstance(label, tf.TensorSpec) or not label.dtype.is_integer:
            return False
        if label.shape.rank in (None, 1) or label.shape[-1] == 1:
            return True
        # Sequences: of one-hot labels the predictions have the same axes.
        return np.ndim(self._output.predictions) == label.shape.rank + 1

    def client(self, values: dict[str, Any]) -> criteria_lib.LocalClient:
        """Returns the client of these values."""
        values = dict(values, attributes=_Attributes(values["attributes"]))

        def mean(of_batch: Any) -> Any:
            output = tf.nest.map_structure(tf.constant, self._output)
            return tf.cast(of_batch(output, values["y"]), tf.float32)

        return criteria_lib.LocalClient(
            **dict(values, num_examples=tf.constant(PROBE_EXAMPLES)),
            steps=tf.constant(1),
            mean_on_received=mean,
            mean_on_trained=mean,
            memory=tf.ones([]),
        )


def _values_in_graph(
    criterion: criteria_lib.Criterion, received: _ProbeModel, arrays: dict[str, Any]
) -> list[float]:
    """Computes the criterion for a client of these arrays twice, in TFF's graphs."""
    by_example = ("x", "y", "example_attributes")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        # Fed, and no constants: a graph takes seconds to hold a large model's weights,
        # and TFF's does not have a client's number of examples.
        fed = {
            name: tf.nest.map_structure(
                lambda a, known=name not in by_example: tf.compat.v1.placeholder(
                    a.dtype, a.shape if known else [None, *a.shape[1:]]
                ),
                value,
            )
            for name, value in arrays.items()
        }
        with _forbid_tensor_equality():
            value = evaluate_criterion(
                criterion, received.client(fed), check_sign=False
            )
        graph = session.graph.as_graph_def()
        bodies = (function.node_def for function in graph.library.function)
        for node in itertools.chain(graph.node, *bodies):
            of = tf.as_dtype(node.attr["T"].type if node.op in _ARITHMETIC else "int32")
            if of.is_integer and of.size < 4:
                raise TypeError(f"its {node.op} is of {of.name}, which {TOO_NARROW}")
        feeds = dict(zip(tf.nest.flatten(fed), tf.nest.flatten(arrays)))
        return [float(session.run(value, feeds)) for _ in range(2)]


@contextlib.contextmanager
def _forbid_tensor_equality() -> Iterator[None]:
    """Refuses `==` and `!=` of tensors, which compare Python objects in a graph.

    With labels that the made-up client lacks this would not be seen by values.
    """
    operators = {"__eq__": "tf.equal", "__ne__": "tf.not_equal"}
    before = {name: getattr(tf.Tensor, name) for name in operators}

    def refusing(name: str) -> Callable[[Any, Any], Any]:
        def compare(self: Any, other: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if other is None or caller.partition(".")[0] in ("tensorflow", "keras"):
                return before[name](self, other)
            raise TypeError(
                f"tensors are compared by {operators[name]} in TFF's graphs"
            )

        return compare

    for name in operators:
        setattr(tf.Tensor, name, refusing(name))
    try:
        yield
    finally:
        for name, original in before.items():
            setattr(tf.Tensor, name, original)
