"""The data sets on real files, which `TFF_PMC_DATA_DIR` has to name."""

import glob
import json
import os

import numpy as np
import pytest

import leaf_data
from leaf_data.datasets import celeba_clients
from leaf_data.formats import celeba_lists

MNIST_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


def _folder(*names):
    """The first folder of the data that has such a file."""
    folder = os.environ.get("TFF_PMC_DATA_DIR", "nowhere")
    for name in names:
        if glob.glob(os.path.join(folder, name)):
            return folder
    pytest.skip(f"needs {names[0]} in the folder that TFF_PMC_DATA_DIR names")


def _mnist():
    name = "train-images-idx3-ubyte.gz"
    return _folder(f"mnist/{name}", name)


@pytest.fixture(scope="module", params=["iid", "noniid"])
def full(request):
    return leaf_data.load("mnist", _mnist(), partition=request.param, seed=15)


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
    numbers = {len(np.unique(train.client(k)["y"])) for k in range(100)}
    # Seed 15 has a client with four; the paper says two at most.
    assert numbers == ({10} if full.options["partition"] == "iid" else {1, 2, 3, 4})


@pytest.mark.slow  # 60,000 images are decoded.
def test_real_cifar10(tmp_path):
    folder = _folder("cifar10")
    data = leaf_data.load("cifar10", folder, cache_dir=tmp_path, image_fraction=0.01)
    assert data.train_examples.sizes.tolist() == [100] * 4
    assert np.bincount(data.train_examples.y).tolist() == [40] * 10
    assert data.test_examples.sizes.tolist() == [25] * 4
    assert np.bincount(data.server_examples.y).tolist() == [10] * 10


@pytest.fixture(scope="module")
def writers():
    sub = "femnist/data/train"
    return os.path.dirname(os.path.join(_folder(sub), sub))


@pytest.fixture(scope="module")
def real(writers, tmp_path_factory):
    caches = tmp_path_factory.mktemp("caches")
    return leaf_data.load("femnist", writers, cache_dir=caches)


def test_real_files_example_by_example(real, writers):
    data = real
    seen = 0
    for part, examples in (
        ("train", data.train_examples),
        ("test", data.test_examples),
    ):
        for path in glob.glob(os.path.join(writers, part, "*.json")):
            with open(path) as file:
                document = json.load(file)
            for user, count in zip(document["users"], document["num_samples"]):
                arrays = examples.client(user)
                expected = document["user_data"][user]
                assert arrays["y"].tolist() == expected["y"] and count == len(
                    arrays["y"]
                )
                seen += count
                # Exact: LEAF divided bytes by 255.
                back = arrays["x"][:3].reshape(-1, 784) / 255
                assert back.tolist() == expected["x"][:3]
    assert seen == data.train_examples.num_examples + data.test_examples.num_examples
    # Row 0 is the top: letters stand in the middle and are taller than wide.
    ink = data.train_examples.x < 128
    assert np.mean(data.train_examples.x == 255) > 0.7
    assert ink.any(axis=2).sum() > ink.any(axis=1).sum()


def test_the_real_writers(real, writers):
    data = real
    if data.train_examples.num_clients != 105:
        pytest.skip("other writers than those of the counts below")
    assert data.train_examples.num_examples == 14708
    assert data.test_examples.num_examples == 1685
    assert (data.train_examples.sizes.min(), data.train_examples.sizes.max()) == (
        4,
        165,
    )
    assert data.client_ids[:2] == ("f3313_11", "f3137_47")
    assert set(data.train_examples.y) == set(range(62))
    # What the module says of LEAF: one image of every writer is there twice.
    for client in data.client_ids:
        images = [
            image.tobytes()
            for examples in (data.train_examples, data.test_examples)
            for image in examples.client(client)["x"]
        ]
        assert len(images) - len(set(images)) == 1


def test_real_photos(tmp_path):
    faces = _folder("celeba/data/raw/img_align_celeba")
    data = leaf_data.load(
        "celeba", faces, client_rule="reference_code", cache_dir=tmp_path
    )
    assert data.name == "celeba"
    train, test = data.train_examples, data.test_examples
    assert train.x.shape[1:] == (64, 64, 3)
    total = train.num_examples + test.num_examples
    if total < 96417:
        words = f"{total:,} of the 96,417 images"
        assert words in data.describe()
        assert "of 4,168 clients left" in data.describe()
    assert 0.3 < train.y.mean() < 0.7
    assert 0.8 < train.attributes["sharp"].mean() < 1
    folder = os.path.join(faces, "celeba", "data", "raw", "img_align_celeba")
    if len(os.listdir(folder)) == 5898:
        assert train.num_clients == 121
        assert (train.num_examples, test.num_examples) == (2130, 529)
    # Faces: brighter in the middle than black, and not all the same.
    assert 40 < train.x.mean() < 200 and train.x.std() > 30


def test_celeba_has_the_clients_of_the_two_rules():
    folder = _folder(f"celeba/data/raw/{celeba_lists.IDENTITIES}")
    raw = os.path.join(folder, "celeba", "data", "raw")
    photos = celeba_lists.rows_by_identity(celeba_lists.read_raw(raw))
    if len(photos) != 10177:
        pytest.skip("needs CelebA's complete identity file")
    clients = celeba_clients.reference_code(photos, 0)
    assert len(clients) == 4168
    assert sum(len(train) for train, _ in clients.values()) == 77098
    assert sum(len(test) for _, test in clients.values()) == 19319
    clients = celeba_clients.paper(photos, 0)
    total = sum(len(train) + len(test) for train, test in clients.values())
    # Half of 202,599, without what the 834 identities below 5 photos had of it.
    assert 99_500 < total <= 101_299
    assert 4_500 < len(clients) < 4_850
    train = sum(len(train) for train, _ in clients.values())
    assert 0.77 < train / total < 0.80  # int(0.8 n) is below 0.8 n.


def test_real_shakespeare(tmp_path):
    """Examples of three roles, by the letters of the file."""
    folder = _folder("shakespeare/data/train/*.json")
    data = leaf_data.load("shakespeare", folder, cache_dir=tmp_path)
    pattern = os.path.join(folder, "shakespeare", "data", "{}", "*.json")
    for part, examples in (
        ("train", data.train_examples),
        ("test", data.test_examples),
    ):
        (path,) = glob.glob(pattern.format(part))
        with open(path) as file:
            document = json.load(file)
        assert list(examples.client_ids) == document["users"]
        for user in document["users"][::30]:
            arrays, expected = examples.client(user), document["user_data"][user]
            texts = [data.vocabulary.decode(x) for x in arrays["x"][:50]]
            assert texts == expected["x"][:50] and len(arrays["y"]) == len(
                expected["y"]
            )
            assert data.vocabulary.decode(arrays["y"]) == "".join(expected["y"])
    if data.train_examples.num_clients == 66:
        assert data.train_examples.num_examples == 277_787
        assert data.test_examples.num_examples == 60_241
