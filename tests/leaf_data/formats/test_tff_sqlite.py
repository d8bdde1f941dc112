"""The wire format of `tf.train.Example`, read without TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from leaf_data.formats import tff_sqlite


def _proto(tf, pixels, labels, name="pixels"):
    """A serialized example, by TensorFlow's own class."""
    feature = {
        name: tf.train.Feature(float_list=tf.train.FloatList(value=pixels)),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=labels)),
        "note": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"text"])),
    }
    features = tf.train.Features(feature=feature)
    return tf.train.Example(features=features).SerializeToString()


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**40, 2**63 - 1, -1, -(2**63)])
def test_the_wire_format(tf, value):
    floats = np.random.RandomState(1).rand(5).astype(np.float32)
    found = tff_sqlite.parse_example(_proto(tf, floats, [value, 3]))
    assert sorted(found) == ["label", "pixels"]
    assert found["label"].tolist() == [value, 3]
    np.testing.assert_array_equal(found["pixels"], floats)


def test_values_that_are_not_packed_are_read_too():
    one = bytes([0x0A, 1]) + b"k" + bytes([0x12, 6, 0x1A, 4, 8, 5, 8, 7])
    proto = bytes([0x0A, len(one) + 2, 0x0A, len(one)]) + one
    assert tff_sqlite.parse_example(proto)["k"].tolist() == [5, 7]
