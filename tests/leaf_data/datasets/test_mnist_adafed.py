"""`mnist_adafed`: who has which images in AdaFed's simulations; the server's set."""

import csv

import numpy as np
import pytest
from made_up import ROOT

import leaf_data
from leaf_data import Origin, partition
from leaf_data.datasets import mnist, mnist_adafed

TRAIN_COUNTS = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST_COUNTS = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def _numbered(count):
    """Images of one row of four pixels that spell their place in the file."""
    return np.arange(count, dtype=np.uint32).view(np.uint8).reshape(count, 1, 4)


def _places(examples):
    return np.ascontiguousarray(examples["x"]).view(np.uint32).ravel()


@pytest.fixture
def digits(monkeypatch):
    """MNIST with its labels' counts, shuffled, and images that are their number."""
    random = np.random.default_rng(5)
    arrays = {"x_train": _numbered(60000), "x_test": _numbered(10000)}
    for part, counts in (("train", TRAIN_COUNTS), ("test", TEST_COUNTS)):
        y = np.repeat(np.arange(10, dtype=np.uint8), counts)
        arrays[f"y_{part}"] = random.permutation(y)
    origin = Origin("numbers", (), "")
    monkeypatch.setattr(mnist, "read", lambda data_dir: (arrays, origin))
    return arrays


def _counts(examples, k):
    return np.bincount(examples.client(k)["y"], minlength=10).tolist()


def _check_training(data, arrays):
    """Every image has its own label, and nobody has one that another has."""
    train = data.train_examples
    for k in range(train.num_clients):
        places = _places(train.client(k))
        np.testing.assert_array_equal(
            arrays["y_train"][places], train.client(k)["y"].astype(np.uint8)
        )
        assert np.any(np.diff(train.client(k)["y"][:100]))  # Not sorted by digit.
    everyone = np.ascontiguousarray(train.x).view(np.uint32)
    assert len(np.unique(everyone)) == train.num_examples


# What the first five clients have of each digit, two digits each, and the sixth. Read
# as 5,500 a class, MNIST has too few of 2, 4, 6, 8 and 9 for the sixth client's 500.
READINGS = {
    "a_client": [100, 5400, 2750, 2750, 5300, 200, *[2750] * 4, *[500] * 10],
    "a_class": [100, 5500, 5500, 5500, 5500, 200, *[5500] * 4]
    + [500, 500, 458, 500, 342, 500, 418, 500, 351, 449],
}


@pytest.mark.parametrize("reading", READINGS)
def test_simulation_1_by_hand(digits, reading):
    data = leaf_data.load("mnist_adafed", reading=reading)
    expected = np.zeros((6, 10), int)
    for k in range(5):
        expected[k, 2 * k : 2 * k + 2] = READINGS[reading][2 * k : 2 * k + 2]
    expected[5] = READINGS[reading][10:]
    assert [_counts(data.train_examples, k) for k in range(6)] == expected.tolist()
    _check_training(data, digits)
    assert data.client_ids == tuple(f"client_{k + 1}" for k in range(6))
    options = dict(simulation="1", reading=reading, server_set="reported", seed=0)
    assert data.options == options


def test_simulation_2_is_table_1(digits):
    data = leaf_data.load("mnist_adafed", simulation="2")
    with open(ROOT / "results/paper/adafed_table1.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        client, digit = int(row["client"]) - 1, int(row["class"])
        assert mnist_adafed.TABLE_1[client][digit] == int(row["value"])
        assert _counts(data.train_examples, client)[digit] == int(row["value"])
    assert data.train_examples.num_examples == 10110
    _check_training(data, digits)


@pytest.mark.parametrize("seed", [0, 6])
def test_simulation_3_is_simulation_2_and_two_adversaries(digits, seed):
    two = leaf_data.load("mnist_adafed", simulation="2", seed=seed).train_examples
    data = leaf_data.load("mnist_adafed", simulation="3", seed=seed)
    train = data.train_examples
    np.testing.assert_array_equal(train.x[: two.num_examples], two.x)
    np.testing.assert_array_equal(train.y[: two.num_examples], two.y)
    assert train.sizes.tolist() == [190, 1710, 1780, 1230, 2040, 3160, 1780, 1230]
    everyone = np.ascontiguousarray(train.x).view(np.uint32)
    assert len(np.unique(everyone)) == train.num_examples
    right = [digits["y_train"][_places(train.client(k))] for k in range(8)]
    # By their true labels the two have what clients 3 and 4 have.
    for adversary, honest in ((6, 2), (7, 3)):
        counts = np.bincount(right[adversary], minlength=10).tolist()
        assert counts == list(mnist_adafed.TABLE_1[honest])
    wrong = [
        np.count_nonzero(right[k] != train.client(k)["y"]) / len(right[k])
        for k in range(8)
    ]
    assert wrong == [0] * 6 + [0.5, 1.0]
    table = data.client_table.of(data.client_ids)
    np.testing.assert_array_equal(table.values["adversary"], [0] * 6 + [1] * 2)
    assert data.options == {"simulation": "3", "server_set": "reported", "seed": seed}


def test_the_seed_decides_everything(digits):
    def load(seed):
        options = {"simulation": "3", "server_set": "apart", "seed": seed}
        data = leaf_data.load("mnist_adafed", **options)
        parts = (data.train_examples, data.test_examples, data.server_examples)
        return [part.x.tobytes() + part.y.tobytes() for part in parts]

    first, again, other = load(3), load(3), load(4)
    assert first == again
    assert all(a != b for a, b in zip(first, other))


def test_the_test_images_are_cut_in_file_order(digits):
    data = leaf_data.load("mnist_adafed", simulation="2")
    test = data.test_examples
    np.testing.assert_array_equal(_places({"x": test.x}), np.arange(10000))
    np.testing.assert_array_equal(test.y, digits["y_test"])
    assert sorted(test.sizes.tolist()) == [1666, 1666, 1667, 1667, 1667, 1667]
    server = data.server_examples
    np.testing.assert_array_equal(server.x, test.x)
    np.testing.assert_array_equal(server.y, test.y)
    assert server.client_ids == ("server",)


def test_the_server_may_have_another_set_than_the_reports(digits):
    data = leaf_data.load("mnist_adafed", simulation="2", server_set="apart")
    test, server = data.test_examples, data.server_examples
    places_by_part = [_places({"x": part.x}) for part in (test, server)]
    assert sorted(np.concatenate(places_by_part)) == list(range(10000))
    for part, places in zip((test, server), places_by_part):
        np.testing.assert_array_equal(part.y, digits["y_test"][places])
        np.testing.assert_array_equal(places, np.sort(places))
        counts = np.bincount(part.y)
        assert np.abs(counts - np.array(TEST_COUNTS) / 2).max() <= 0.5
    # The clients' training examples do not depend on it.
    reported = leaf_data.load("mnist_adafed", simulation="2")
    np.testing.assert_array_equal(reported.train_examples.x, data.train_examples.x)


def test_wrong_labels_are_wrong_and_take_every_other_class():
    y = np.repeat(np.arange(4), 50)
    before = y.copy()
    wrong = partition.mislabel(y, 1.0, 4, partition.random_state(0))
    np.testing.assert_array_equal(y, before)
    assert wrong.dtype == np.int32 and not np.any(wrong == y)
    for label in range(4):
        assert set(wrong[y == label]) == set(range(4)) - {label}
    half = partition.mislabel(y, 0.5, 4, partition.random_state(0))
    assert np.count_nonzero(half != y) == 100
    np.testing.assert_array_equal(
        partition.mislabel(y, 0, 4, partition.random_state(0)), y
    )
