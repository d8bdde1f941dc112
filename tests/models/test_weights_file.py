"""The initial weights of a model from a file."""

import numpy as np
import pytest

from leaf_data.errors import DataError
from leaf_data.formats.data_files import sha256
from tff_pmc.models.weights_file import load_initial_weights

MODEL = [np.zeros((2, 3), np.float32), np.zeros(3, np.float32)]
A, B = np.arange(6.0).reshape(2, 3), np.arange(3.0)


class Model:
    """What is looked at of a functional model: one array is not trained."""

    def __init__(self, arrays):
        self._initial_weights = arrays[:-1], arrays[-1:]

    initial_weights = property(lambda self: self._initial_weights)


def read_like(path, arrays):
    model = Model(arrays)
    trainable, others = load_initial_weights(model, path, sha256(path)).initial_weights
    assert (len(trainable), len(others)) == (len(arrays) - 1, 1)
    assert model.initial_weights[0] is not trainable
    return [*trainable, *others]


@pytest.fixture
def saved(tmp_path):
    """Writes arrays with `np.savez`, under these names or its default ones."""

    def write(*arrays, **named):
        path = str(tmp_path / "w.npz")
        np.savez(path, *arrays, **named)
        return path

    return write


def test_arrays_are_in_the_order_of_the_file(saved):
    for path in (saved(z=A, a=B), saved(A.astype(np.float32), B)):
        for array, expected in zip(read_like(path, MODEL), (A, B)):
            np.testing.assert_array_equal(array, expected)
            assert array.dtype == np.float32


def test_a_model_may_have_many_arrays(saved):
    many = [np.full(1, n, np.float32) for n in range(150)]
    arrays = read_like(saved(*many), [np.zeros(1, np.float32)] * 150)
    assert [int(array[0]) for array in arrays] == [*range(150)]


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ([A], "has 1 arrays, but the model 2"),
        ([A, B, B], "has 3 arrays, but the model 2"),
        (
            [B, A],
            r"'arr_0' is float64 \(3,\), .* weight there is float32 \(2, 3\)",
        ),
        (
            [A, np.arange(3)],
            r"'arr_1' is int64 \(3,\), but the model's weight there is float32",
        ),
        ([A, B * np.nan], "'arr_1' has values that are not finite as float32"),
        ([A, B * 1e39], "'arr_1' has values that are not finite as float32"),
        ([A, np.array([None])], r"w.npz: cannot be read \(Object arrays"),
    ],
)
def test_arrays_that_do_not_match_are_named(saved, arrays, says):
    path = saved(*arrays)
    with pytest.raises(DataError, match=says) as error:
        read_like(path, MODEL)
    assert path in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"PK no archive", None])
def test_a_file_without_arrays_is_named(tmp_path, content):
    path = tmp_path / "w.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"w.npz: cannot be read \("):
        read_like(str(path), MODEL)


def test_a_changed_file_is_named(saved):
    with pytest.raises(DataError, match="w.npz has changed since the run was set up"):
        load_initial_weights(Model(MODEL), saved(A, B), "9f")
