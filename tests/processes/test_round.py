"""Whole packed rounds of the linear model, against NumPy.

A round of a CNN against Keras is in tests/models/test_faces.py.
"""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("num_packs", [1, 2, 4])
@pytest.mark.parametrize("basis", [None, scores.Basis.all_subsets(3)])
def test_three_rounds_equal_numpy(
    runtime,
    toy_examples,
    toy_model,
    batch_size,
    num_packs,
    basis,
    build_prioritized,
    weights_of,
    assert_close,
    batch_order,
    numpy_sgd,
    numpy_criteria,
):
    """Batches, epochs, criteria, weights, server rate and rounds, all at once."""
    epochs, seed, order, server_rate = 2, 9, (2, 1, 0), 0.8
    process = build_prioritized(
        toy_model,
        priority=("MD", "LD", "DS"),
        basis=basis,
        local_epochs=epochs,
        batch_size=batch_size,
        seed=seed,
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(server_rate),
    )
    state = process.initialize()
    model = weights_of(process, state)
    for round_num, cohort in enumerate([[0, 1, 4, 5], [2, 3, 4, 0], [5, 1, 2, 3]]):
        trained, raw = [], []
        for k in cohort:
            part = toy_examples.client(k)
            n = len(part["y"])

            def batches_of(epoch, k=k, n=n, round_num=round_num):
                if not batch_size:
                    return [np.arange(n)]
                return batch_order(seed, round_num, k, epoch, n, batch_size)

            trained.append(numpy_sgd(model, part, epochs=epochs, batches_of=batches_of))
            raw.append(numpy_criteria(part, model, trained[-1]))
        c = np.array(raw) / np.sum(raw, axis=0)
        s = np.cumprod(c[:, order], axis=1).sum(axis=1)
        p = s / s.sum()
        model = [
            w + server_rate * sum(p[i] * (t[j] - w) for i, t in enumerate(trained))
            for j, w in enumerate(model)
        ]
        packs = tff_pmc.pack(toy_examples, cohort, num_packs=num_packs)
        state, _ = process.next(state, packs)
        assert_close(weights_of(process, state), model)
