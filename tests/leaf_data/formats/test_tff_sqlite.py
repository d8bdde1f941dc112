"""The wire format of `tf.train.Example`, read without TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from leaf_data.formats import tff_sqlite


@pytest.mark.parametrize("value", [0, 1, 127, 128, 2**40, 2**63 - 1, -1, -(2**63)])
def test_the_wire_format(example_proto, value):
    floats = np.random.RandomState(1).rand(5).astype(np.float32)
    found = tff_sqlite.parse_example(example_proto(floats, [value, 3]))
    assert sorted(found) == ["label", "pixels"]
    assert found["label"].tolist() == [value, 3]
    np.testing.assert_array_equal(found["pixels"], floats)


def test_values_that_are_not_packed_are_read_too():
    one = bytes([0x0A, 1]) + b"k" + bytes([0x12, 6, 0x1A, 4, 8, 5, 8, 7])
    proto = bytes([0x0A, len(one) + 2, 0x0A, len(one)]) + one
    assert tff_sqlite.parse_example(proto)["k"].tolist() == [5, 7]
