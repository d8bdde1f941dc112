"""`mnist_adafed`: who has which images in AdaFed's simulations; the server's set."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import leaf_data
from leaf_data import Origin
from leaf_data.datasets import mnist
from leaf_data.splits import adafed_simulations

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
    """Every image has its own label, and no client has one twice."""
    train = data.train_examples
    for k in range(train.num_clients):
        places = _places(train.client(k))
        assert len(set(places)) == len(places)
        np.testing.assert_array_equal(
            arrays["y_train"][places], train.client(k)["y"].astype(np.uint8)
        )
        assert np.any(np.diff(train.client(k)["y"][:100]))  # Not sorted by digit.


def _check_nobody_shares(data):
    everyone = np.ascontiguousarray(data.train_examples.x).view(np.uint32)
    assert len(np.unique(everyone)) == data.train_examples.num_examples


@pytest.mark.parametrize("reading", ["a_client", "a_class"])
def test_simulation_1_deals_what_its_reading_says(digits, reading):
    data = leaf_data.load("mnist_adafed", reading=reading)
    expected = adafed_simulations.simulation_1(reading, TRAIN_COUNTS)
    found = [tuple(_counts(data.train_examples, k)) for k in range(6)]
    assert found == list(expected)
    _check_training(data, digits)
    _check_nobody_shares(data)
    assert data.client_ids == tuple(f"client_{k + 1}" for k in range(6))
    assert data.options == {
        "simulation": "1",
        "reading": reading,
        "server_set": "reported",
        "seed": 0,
    }


def test_simulation_2_is_table_1(digits, root):
    data = leaf_data.load("mnist_adafed", simulation="2")
    with open(root / "results/paper/adafed_table1.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        client, digit = int(row["client"]) - 1, int(row["class"])
        assert adafed_simulations.TABLE_1[client][digit] == int(row["value"])
        assert _counts(data.train_examples, client)[digit] == int(row["value"])
    assert data.train_examples.num_examples == 10110
    _check_training(data, digits)
    _check_nobody_shares(data)


@pytest.mark.parametrize("seed", [0, 6])
def test_simulation_3_is_simulation_2_and_two_adversaries(digits, seed):
    two = leaf_data.load("mnist_adafed", simulation="2", seed=seed).train_examples
    data = leaf_data.load("mnist_adafed", simulation="3", seed=seed)
    train = data.train_examples
    np.testing.assert_array_equal(train.x[: two.num_examples], two.x)
    np.testing.assert_array_equal(train.y[: two.num_examples], two.y)
    assert train.sizes.tolist() == [*two.sizes.tolist(), 1780, 1230]
    _check_nobody_shares(data)
    right = [digits["y_train"][_places(train.client(k))] for k in range(8)]
    # By their true labels the two have what clients 3 and 4 have.
    for adversary, honest in ((6, 2), (7, 3)):
        counts = np.bincount(right[adversary], minlength=10).tolist()
        assert counts == list(adafed_simulations.TABLE_1[honest])
    wrong = [
        np.count_nonzero(right[k] != train.client(k)["y"]) / len(right[k])
        for k in range(8)
    ]
    assert wrong == [0] * 6 + [0.5, 1.0]
    table = data.client_table.of(data.client_ids)
    np.testing.assert_array_equal(table.values["adversary"], [0] * 6 + [1] * 2)
    assert data.options == {"simulation": "3", "server_set": "reported", "seed": seed}


@pytest.mark.parametrize("simulation", ["1", "2", "3"])
def test_the_seed_decides_everything(digits, simulation):
    def load(seed):
        data = leaf_data.load(
            "mnist_adafed",
            simulation=simulation,
            server_set="apart",
            seed=seed,
        )
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


def test_a_server_set_apart_from_the_one_that_reports(digits):
    data = leaf_data.load("mnist_adafed", simulation="2", server_set="apart")
    test, server = data.test_examples, data.server_examples
    both = [_places({"x": part.x}) for part in (test, server)]
    assert sorted(np.concatenate(both)) == list(range(10000))
    for part, places in zip((test, server), both):
        np.testing.assert_array_equal(part.y, digits["y_test"][places])
        np.testing.assert_array_equal(places, np.sort(places))
        counts = np.bincount(part.y)
        assert np.abs(counts - np.array(TEST_COUNTS) / 2).max() <= 0.5
    # The clients' training examples do not depend on it.
    reported = leaf_data.load("mnist_adafed", simulation="2")
    np.testing.assert_array_equal(reported.train_examples.x, data.train_examples.x)
