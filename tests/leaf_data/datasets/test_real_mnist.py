"""`mnist` on the real files, where TFF_PMC_DATA_DIR has them."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import pytest

import leaf_data
from leaf_data.formats import idx

MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


@pytest.fixture(scope="module", params=["iid", "noniid"])
def full(request, mnist_names):
    folder = os.environ.get("TFF_PMC_DATA_DIR")
    if not folder or not any(
        os.path.exists(os.path.join(folder, sub, mnist_names["x_train"] + ".gz"))
        for sub in ("", "mnist")
    ):
        pytest.skip("needs MNIST's idx files: set TFF_PMC_DATA_DIR to their folder")
    return leaf_data.load("mnist", partition=request.param, seed=15)


def test_real_mnist(full):
    train, test = full.train_examples, full.test_examples
    assert train.sizes.tolist() == [600] * 100
    assert test.sizes.tolist() == [100] * 100
    assert np.bincount(train.y).tolist() == MNIST_COUNTS
    assert (full.num_classes, full.element_shape) == (10, (28, 28))
    assert (train.x.dtype, train.x.max(), train.x.min()) == (np.uint8, 255, 0)
    assert np.mean(train.x == full.pixel_convention.background) > 0.75
    # The test set is in file order: it begins 7, 2, 1, 0, 4.
    assert test.y[:5].tolist() == [7, 2, 1, 0, 4]
    assert all(len(np.unique(test.client(k)["y"])) >= 8 for k in range(100))


def test_real_mnist_uses_every_training_image_once(full, mnist_names, as_idx):
    folder = full.origin.folder
    x = idx.read(idx.find(folder, mnist_names["x_train"]), (60000, 28, 28))
    assert hashlib.md5(as_idx(x)).hexdigest() == "6bbc9ace898e44ae57da46a324031adb"
    y = idx.read(idx.find(folder, mnist_names["y_train"]), (60000,))

    def rows(images, labels):
        flat = images.reshape(60000, -1)
        digests = [
            hashlib.md5(a.tobytes()).hexdigest() + str(b) for a, b in zip(flat, labels)
        ]
        return sorted(digests)

    assert rows(full.train_examples.x, full.train_examples.y) == rows(x, y)


def test_real_mnist_labels_per_client(full):
    train = full.train_examples
    found = [len(np.unique(train.client(k)["y"])) for k in range(100)]
    if full.options["partition"] == "iid":
        assert set(found) == {10}
    else:
        # Seed 15 has a client with four; the paper says two at most.
        assert set(found) == {1, 2, 3, 4}
        shards = train.y.reshape(200, 300)
        assert sum(len(np.unique(shard)) > 1 for shard in shards) == 9
