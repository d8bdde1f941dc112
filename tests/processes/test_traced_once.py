"""Functions of a process that are called every round, in eager mode and in graphs."""

import logging

import numpy as np
import pytest

from tff_pmc._lazy import tf, tff


@pytest.fixture
def traced_once():
    from tff_pmc.processes.server_examples import traced_once

    return traced_once


@pytest.fixture
def warnings():
    """What TensorFlow logs."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    yield lines
    tf.get_logger().removeHandler(handler)


def test_the_servers_measures_of_several_runs_are_not_taken_for_retracing(
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
        tf.function(lambda: tf.constant(1))()
    assert "retracing" in warnings[0]


def test_it_is_traced_once_for_each_shape_and_type(traced_once):
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
