"""Packs as bytes: equal for equal packs, and the same pack when read."""

import numpy as np
import pytest

from tff_pmc._lazy import tf


@pytest.fixture(scope="module")
def pack_bytes():
    from tff_pmc.runtime import pack_bytes

    return pack_bytes


def variant(tf, numbers, factor):
    data = tf.data.Dataset.from_tensor_slices(np.array(numbers, np.float32))
    return tf.data.experimental.to_variant(data.map(lambda x: x * factor))


def elements(tf, tensor, spec):
    return [x.numpy() for x in tf.data.experimental.from_variant(tensor, spec)]


def test_equal_packs_are_equal_bytes(pack_bytes):
    """Though TensorFlow has traced other functions between them."""

    def digest(*arguments, last=1):
        pack = [variant(tf, *arguments), tf.constant(last, tf.int32)]
        return pack_bytes.digest(pack_bytes.encoded(pack))

    first = digest([1, 2, 3], 2.0)
    for _ in range(12):
        tf.data.Dataset.range(2).map(lambda x: x + 1)
    assert digest([1, 2, 3], 2.0) == first
    others = [
        digest([1, 2, 4], 2.0),
        digest([1, 2, 3], 2.5),
        digest([1, 2, 3], 2.0, last=2),
    ]
    assert len({first, *others}) == 4


def test_what_is_read_is_what_was_written(pack_bytes):
    pack = [
        variant(tf, [1, 2, 3], 2.0),
        tf.constant([[1, 2]], tf.int64),
        tf.constant(["a", "b"]),
        tf.constant(2.5),
    ]
    parts = pack_bytes.encoded(pack)
    data, numbers, words, scalar = pack_bytes.decoded(parts)
    assert elements(tf, data, tf.TensorSpec([], tf.float32)) == [2.0, 4.0, 6.0]
    for found, given in zip((numbers, words, scalar), pack[1:]):
        assert found.dtype == given.dtype
        np.testing.assert_array_equal(found.numpy(), given.numpy())
    assert pack_bytes.num_bytes(parts) > 3 * 4 + 2 * 8 + 4


def test_batches_of_shuffled_examples_may_be_sent(pack_bytes):
    """As TFF's tutorials make them; every example arrives once."""
    data = tf.data.Dataset.range(20).shuffle(20, seed=1).batch(8)
    (part,) = pack_bytes.encoded([tf.data.experimental.to_variant(data)])
    (read,) = pack_bytes.decoded([part])
    batches = elements(tf, read, tf.TensorSpec([None], tf.int64))
    assert [len(batch) for batch in batches] == [8, 8, 4]
    assert sorted(np.concatenate(batches)) == list(range(20))


@pytest.mark.parametrize("kind", ["python", "random"])
def test_what_depends_on_the_process_is_read_first(pack_bytes, kind):
    """The elements travel, of whatever shapes, and are the same each time."""
    spec = tf.TensorSpec([None], tf.float32)
    if kind == "python":
        rows = [[1.0], [], [2.0, 3.0]]
        data = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=spec)
    else:
        data = tf.data.Dataset.range(3).map(lambda _: tf.random.uniform([2]))
    (part,) = pack_bytes.encoded([tf.data.experimental.to_variant(data)])
    assert part.was_read
    first, again = (elements(tf, *pack_bytes.decoded([part]), spec) for _ in range(2))
    assert len(first) == 3
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
    if kind == "python":
        assert [list(row) for row in first] == rows
