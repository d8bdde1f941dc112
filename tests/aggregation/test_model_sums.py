"""Sums that are changed in place, against NumPy."""

import numpy as np

from tff_pmc._lazy import tf


def test_sums_in_a_loop_are_numpys_and_begin_anew_in_each_call():
    from tff_pmc.aggregation.contributions import (
        Contribution,
        ModelSums,
        weighted_updates,
    )

    generator = np.random.default_rng(0)
    updates = generator.normal(size=(5, 3, 2)).astype(np.float32)
    biases = generator.normal(size=(5, 2)).astype(np.float32)
    weights = generator.uniform(size=(5, 3)).astype(np.float32)

    def contribution(k):
        update = (tf.gather(updates, k), {"b": tf.gather(biases, k)})
        return Contribution(None, None, tf.gather(weights, k), update, None)

    @tf.function
    def total(count):
        sums = ModelSums(3, (tf.zeros([3, 2]), {"b": tf.zeros([2])}))
        for k in tf.range(count):
            sums.add(contribution(k))
        return sums.read()

    for count in (5, 5, 2, 0):
        found = total(tf.constant(count))
        assert len(found) == 3
        for s, (kernel, rest) in enumerate(found):
            of_s = weights[:count, s]
            np.testing.assert_allclose(
                kernel, np.tensordot(of_s, updates[:count], 1), atol=1e-6
            )
            np.testing.assert_allclose(rest["b"], of_s @ biases[:count], atol=1e-6)
    alone = weighted_updates(contribution(4))
    np.testing.assert_allclose(alone[2][0], weights[4, 2] * updates[4], rtol=1e-6)
