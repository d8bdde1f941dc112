"""Functions of a process that are called every round, outside of its computations."""

import logging

import numpy as np
import pytest

from tff_pmc._lazy import tf, tff


@pytest.fixture
def warnings():
    """What TensorFlow logs."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    tf.get_logger().addHandler(handler)
    yield lines
    tf.get_logger().removeHandler(handler)


def test_server_criteria_of_several_runs_do_not_warn_of_retracing(
    warnings, toy_packed_model, toy_examples
):
    """As in Dual's eight runs, each of which measures its model on such examples."""
    from tff_pmc.processes.server_evaluation import build_confusion

    x, y = toy_examples.x, toy_examples.y
    weights = tff.learning.models.ModelWeights(*toy_packed_model.initial_weights)
    for _ in range(8):
        confusion = build_confusion(toy_packed_model, x, y, 3)
        for _ in range(2):
            counts = np.asarray(confusion(weights))
            assert counts.sum(axis=1).tolist() == np.bincount(y).tolist()
    none = tff.learning.models.ModelWeights([w * np.nan for w in weights.trainable], ())
    assert not np.diag(confusion(none)).any()  # And not class 0's.
    assert not warnings
    for _ in range(8):  # So that this can fail.
        tf.function(lambda: tf.constant(1))()
    assert "retracing" in warnings[0]
