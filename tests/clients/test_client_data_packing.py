"""Packs of TFF's own client data, and of clients with attributes."""

import collections

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff


def test_an_attribute_out_of_range_is_refused(toy_examples):
    part = toy_examples.client(0)
    dataset = tf.data.Dataset.from_tensor_slices((part["x"], part["y"])).batch(2)
    with pytest.raises(ValueError, match="attribute battery must be in"):
        tff_pmc.with_attributes(dataset, {"battery": 1.5})
    with pytest.raises(ValueError, match="attribute battery must be in"):
        tff_pmc.pack(toy_examples, [0], attributes={"battery": [7.0] * 6})


def test_any_client_data_can_be_packed(runtime, toy_examples, toy_model):
    client_data = tff.simulation.datasets.TestClientData(
        {
            f"user_{k}": collections.OrderedDict(
                x=toy_examples.client(k)["x"], y=toy_examples.client(k)["y"]
            )
            for k in range(6)
        }
    )
    packs = tff_pmc.pack_client_data(client_data, ["user_4", "user_1"], num_packs=2)
    packed = {int(e["client"]): e for one in packs for e in one}
    assert sorted(packed) == [1, 4]
    np.testing.assert_array_equal(packed[4]["x"], toy_examples.client(4)["x"])
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model, client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1)
    )
    ours = process.next(process.initialize(), tff_pmc.pack(toy_examples, [4, 1]))
    theirs = process.next(process.initialize(), packs)
    for found, expected in zip(
        process.get_model_weights(theirs.state).trainable,
        process.get_model_weights(ours.state).trainable,
    ):
        gap = np.linalg.norm(found - expected)
        assert gap <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("names", [("x", "y"), ("pixels", "label"), ("image", "label")])
def test_input_and_label_are_told_by_name(names):
    """TFF's EMNIST has the label before the pixels, in the alphabet's order."""
    x, y = np.arange(12, dtype=np.float32).reshape(3, 2, 2), np.array([5, 6, 7])
    client_data = tff.simulation.datasets.TestClientData(
        {"a": collections.OrderedDict(sorted(zip(names, (x, y))))}
    )
    (element,) = next(iter(tff_pmc.pack_client_data(client_data))).batch(1)
    np.testing.assert_array_equal(element["x"][0], x)
    np.testing.assert_array_equal(element["y"][0], y)


def test_an_element_of_another_form_is_refused():
    client_data = tff.simulation.datasets.TestClientData(
        {"a": collections.OrderedDict(first=np.zeros(2), second=np.zeros(2))}
    )
    with pytest.raises(ValueError, match="cannot tell input and label"):
        tff_pmc.pack_client_data(client_data)
