"""What a client does with its trained model, against NumPy."""

import numpy as np
import pytest

import tff_pmc


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_quantized_is_the_printed_formula_of_the_parameters(bits):
    """`round(theta (2^Q - 1)) / (2^Q - 1)`, of w - d; values far above 1 among them."""
    random = np.random.default_rng(bits)
    received = [
        random.normal(0, 2, shape).astype(np.float32) for shape in ((4, 3), (3,))
    ]
    update = [random.normal(0, 0.3, w.shape).astype(np.float32) for w in received]
    sent = tff_pmc.aggregation.quantize_parameters(bits)(received, update)
    for w, d, s in zip(received, update, sent):
        theta = w.astype(float) - d
        expected = np.round(theta * (2**bits - 1)) / (2**bits - 1)
        np.testing.assert_allclose(w - np.asarray(s), expected, atol=1e-6)


def test_half_way_goes_to_the_even_multiple():
    zero = [np.zeros(4, np.float32)]
    halves = [np.array([-0.5, -1.5, -2.5, -3.5], np.float32)]
    (sent,) = tff_pmc.aggregation.quantize_parameters(1)(zero, halves)
    assert (-np.asarray(sent)).tolist() == [0, 2, 2, 4]


@pytest.mark.parametrize("bits", [0, 17])
def test_bits_out_of_range_are_named(bits):
    with pytest.raises(ValueError, match="bits must be from 1 to 16"):
        tff_pmc.aggregation.quantize_parameters(bits)
