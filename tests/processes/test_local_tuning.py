"""The answers of each client's own model, tuned from the server's."""

import numpy as np

import tff_pmc
from tff_pmc._lazy import tff


def test_local_tuning_answers_for_each_client(
    runtime, toy_examples, toy_model, sgd, trained_alone
):
    """What NumPy's tuned models answer; -1 for the clients who take no part."""
    x = toy_examples.x
    predict = tff_pmc.processes.build_local_tuning_prediction(
        toy_model, 6, len(x), client_optimizer_fn=sgd(), prediction_batch_size=10
    )
    received = tff.learning.models.ModelWeights(*toy_model.initial_weights)
    packs = tff_pmc.pack(toy_examples, [0, 2, 5], num_packs=2)
    answers = np.asarray(predict(received, packs, x))
    assert answers.shape == (6, len(x))
    assert (answers[[1, 3, 4]] == -1).all()
    tuned = [0, 2, 5]
    for k in tuned:
        kernel, bias = trained_alone(toy_model, toy_examples, k)
        expected = (x.reshape(-1, 16) / 255.0 @ kernel + bias).argmax(axis=1)
        np.testing.assert_array_equal(answers[k], expected)
