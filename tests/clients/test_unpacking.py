"""A pack read whole is the clients that were packed."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf


@pytest.fixture
def read():
    """The clients of a pack, read in a graph as training does."""
    from tff_pmc.clients.packing import PackedClients

    @tf.function
    def element(pack, place):
        return PackedClients.read(pack)[place]

    @tf.function
    def count(pack):
        return PackedClients.read(pack).count

    def all_of(pack):
        return [element(pack, tf.constant(k)) for k in range(int(count(pack)))]

    return all_of


def test_every_client_is_read_as_it_was_packed(toy_examples, read):
    (pack,) = tff_pmc.pack(toy_examples, range(6), num_packs=1)
    found = read(pack)
    assert [int(element["client"]) for element in found] == list(range(6))
    for k, element in enumerate(found):
        own = toy_examples.client(k)
        np.testing.assert_array_equal(element["x"], own["x"])
        np.testing.assert_array_equal(element["y"], own["y"])
        assert element["x"].dtype == own["x"].dtype


def test_a_pack_of_nobody_has_no_client(toy_examples, read):
    (pack,) = tff_pmc.pack(toy_examples, range(6), num_packs=1)
    assert read(pack.take(0)) == []


def test_a_second_axis_of_unknown_size_stays_a_tensor(read):
    """Sentences of a client's own length, as a next-word model has them."""
    sentences = [np.arange(6).reshape(2, 3), np.arange(20).reshape(4, 5)]
    spec = {
        "x": tf.TensorSpec([None, None], tf.int64),
        "client": tf.TensorSpec([], tf.int32),
    }
    pack = tf.data.Dataset.from_generator(
        lambda: ({"x": x, "client": k} for k, x in enumerate(sentences)),
        output_signature=spec,
    )
    for element, expected in zip(read(pack), sentences):
        assert isinstance(element["x"], tf.Tensor)
        np.testing.assert_array_equal(element["x"], expected)
