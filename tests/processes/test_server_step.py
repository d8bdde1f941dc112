"""The server's step, by hand: a rejected update leaves the optimizer as it was."""

import numpy as np
import pytest

from tff_pmc._lazy import tf, tff


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_rejected_update_changes_neither_model_nor_momentum(bad):
    from tff_pmc.processes.round_parts import apply_update

    optimizer = tff.learning.optimizers.build_sgdm(0.5, momentum=0.9)

    def weights(trainable, statistic):
        return tff.learning.models.ModelWeights(
            (tf.constant(trainable),), (tf.constant(statistic),)
        )

    def step(state, model, update):
        return apply_update(optimizer, state, model, update)

    state = optimizer.initialize((tf.TensorSpec([2], tf.float32),))
    state, model, rejected = step(
        state, weights([1.0, 2.0], 5.0), weights([1.0, -1.0], 2.0)
    )
    assert int(rejected) == 0
    np.testing.assert_allclose(model.trainable[0], [0.5, 2.5])
    assert float(model.non_trainable[0]) == 3.0  # An average: no rate, no momentum.

    after, same, rejected = step(state, model, weights([bad, 0.0], 0.0))
    assert int(rejected) == 1
    for old, new in zip(
        tf.nest.flatten((state, model)), tf.nest.flatten((after, same))
    ):
        np.testing.assert_array_equal(old, new)

    # Momentum: velocity 0.9 * [1, -1] + [0, 1] = [0.9, 0.1].
    _, moved, _ = step(after, same, weights([0.0, 1.0], 0.0))
    np.testing.assert_allclose(moved.trainable[0], [0.5 - 0.45, 2.5 - 0.05], rtol=1e-6)
