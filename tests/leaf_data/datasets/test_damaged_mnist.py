"""`mnist`: files that are damaged, and pickles in the place of an array."""

from __future__ import annotations

import numpy as np

import leaf_data


def test_mnist_files_that_are_damaged(
    no_mnist, small_mnist, assert_refused, write_mnist_idx, mnist_names
):
    folder = no_mnist / "data"
    write_mnist_idx(folder, small_mnist)
    path = folder / (mnist_names["x_test"] + ".gz")
    path.write_bytes(path.read_bytes()[:-30])
    assert_refused(
        lambda: leaf_data.load("mnist", folder), path, "truncated or corrupt"
    )
    write_mnist_idx(folder, {"x_test": small_mnist["x_test"][:-1]})
    assert_refused(
        lambda: leaf_data.load("mnist", folder),
        path,
        "holds 199 x 2 x 2 values, not 200",
    )
    write_mnist_idx(folder, {**small_mnist, "y_train": small_mnist["y_train"] + 1})
    assert_refused(
        lambda: leaf_data.load("mnist", folder), "mnist: train has label 10, but"
    )


def test_npz_files_that_are_damaged(
    no_mnist, small_mnist, assert_refused, write_mnist_npz
):
    folder = no_mnist / "data"
    path = folder / "mnist.npz"

    def fails(message):
        assert_refused(lambda: leaf_data.load("mnist", folder), path, message)

    write_mnist_npz(folder, small_mnist)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    fails("truncated or corrupt")
    flipped = bytearray(good)
    flipped[len(good) // 4] ^= 255
    path.write_bytes(bytes(flipped))
    fails("truncated or corrupt")
    for data in (b"", b"text", good[:4]):
        path.write_bytes(data)
        fails("truncated or corrupt")
    np.save(folder / "array.npy", small_mnist["x_train"])
    (folder / "array.npy").replace(path)
    fails("truncated or corrupt")
    write_mnist_npz(folder, {k: v for k, v in small_mnist.items() if k != "x_test"})
    fails("has no array 'x_test'")
    write_mnist_npz(
        folder, {**small_mnist, "y_test": small_mnist["y_test"].astype(np.int64)}
    )
    fails("y_test is int64 200, not uint8 200")
    write_mnist_npz(folder, {**small_mnist, "x_test": small_mnist["x_test"][:, :1]})
    fails("x_test is uint8 200 x 1 x 2, not uint8 200 x 2 x 2")


def test_an_npz_with_pickled_objects_is_refused(
    no_mnist, small_mnist, assert_refused, write_mnist_npz
):
    folder, trace = no_mnist / "data", no_mnist / "trace"
    bomb = np.array([_Bomb(str(trace))], dtype=object)
    write_mnist_npz(folder, {**small_mnist, "x_train": bomb})
    assert_refused(
        lambda: leaf_data.load("mnist", folder), folder / "mnist.npz", "pickle"
    )
    assert not trace.exists()


class _Bomb:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")
