"""Functions of a process that are called every round, in eager mode and in graphs."""

import logging

import numpy as np
import pytest

from tff_pmc._lazy import tf, tff


def doubled(function_of, tf):
    """A function as several processes make it: other functions of the same code."""

    @function_of
    def double(numbers, rest):
        return {"twice": 2 * numbers, "sum": tf.reduce_sum(rest["more"])}

    return double


@pytest.fixture
def warnings():
    """What TensorFlow logs."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    yield lines
    tf.get_logger().removeHandler(handler)


def test_the_servers_measures_of_several_runs_are_not_either(
    warnings, toy_packed_model, toy_examples
):
    """As in Dual's eight runs, each of which measures its model on such examples."""
    from tff_pmc.processes.server_examples import build_confusion

    x, y = toy_examples.x, toy_examples.y
    weights = tff.learning.models.ModelWeights(*toy_packed_model.initial_weights)
    for _ in range(8):
        confusion = build_confusion(toy_packed_model, x, y, 3)
        for _ in range(2):
            counts = np.asarray(confusion(weights))
            assert counts.sum(axis=1).tolist() == np.bincount(y).tolist()
    assert not warnings
    for _ in range(8):  # So that this can fail.
        for number in (1.0, 2.0):
            double = doubled(tf.function, tf)
            double(np.float32(number), {"more": np.float32(1)})
    assert "retracing" in warnings[0]


def test_it_is_traced_once_for_each_shape_and_type():
    from tff_pmc.processes.server_examples import traced_once

    traced = []

    @traced_once
    def double(numbers):
        traced.append(1)
        return 2 * numbers

    for value in (1.0, 2.0):
        assert float(double(np.float32(value))) == 2 * value
    assert len(traced) == 1
    for numbers in (np.ones(3, np.float32), np.arange(2)):
        np.testing.assert_array_equal(double(numbers), 2 * numbers)
    assert len(traced) == 3


def test_within_a_graph_it_is_part_of_it():
    from tff_pmc.processes.server_examples import traced_once

    double = doubled(traced_once, tf)

    @tff.tensorflow.computation(tff.TensorType(np.float32, [2]))
    def twice(numbers):
        return double(numbers, {"more": numbers})["twice"]

    assert str(twice.type_signature) == "(float32[2] -> float32[2])"

    @tf.function
    def whole(numbers):
        return double(numbers, {"more": numbers})["sum"]

    assert float(whole(tf.constant([1.0, 2.0]))) == 3
