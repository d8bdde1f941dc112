"""`mnist_adafed`: who has which images in AdaFed's simulations; the server's set."""

from __future__ import annotations

import collections
import csv
import os
import pathlib

import numpy as np
import pytest
from small_data import assert_refused

import leaf_data
from leaf_data import Examples, adafed, by_class, mnist, partition
from leaf_data.federated import WHITE_ON_BLACK, FederatedDataset, Origin
from leaf_data.mislabel import mislabel

ROOT = pathlib.Path(__file__).resolve().parent.parent
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


# ------------------------------------------------------------ simulations


@pytest.mark.parametrize("num_clients", [6, 8])
def test_simulation_1_has_two_digits_a_client(digits, num_clients):
    data = leaf_data.load("mnist_adafed", num_clients=num_clients)
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (0, 1), (2, 3), (4, 5)]
    for k, pair in enumerate(pairs[:num_clients]):
        expected = [0] * 10
        for digit in pair:
            expected[digit] = 5421 if digit == 5 else 5500
        assert _counts(data.train_examples, k) == expected
    _check_training(data, digits)
    total = 65921 if num_clients == 6 else 87842
    assert f"train: {total} examples, 10921-11000 a client" in data.describe()
    assert data.client_ids == tuple(f"client_{k + 1}" for k in range(num_clients))
    first, last = (_places(data.train_examples.client(k)) for k in (0, 5))
    assert set(first) != set(last)  # Each has drawn its own.
    assert data.options == {
        "simulation": "1",
        "num_clients": num_clients,
        "server_set": "reported",
        "seed": 0,
    }


def test_simulation_2_is_table_1(digits):
    data = leaf_data.load("mnist_adafed", simulation="2")
    with open(ROOT / "results/paper/adafed_table1.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        client, digit = int(row["client"]) - 1, int(row["class"])
        assert adafed.TABLE_1[client][digit] == int(row["value"])
        assert _counts(data.train_examples, client)[digit] == int(row["value"])
    assert data.train_examples.num_examples == 10110
    _check_training(data, digits)
    everyone = np.ascontiguousarray(data.train_examples.x).view(np.uint32)
    assert len(np.unique(everyone)) == 10110  # No image is with two clients.


def test_simulation_3_mislabels_the_adversaries(digits):
    data = leaf_data.load("mnist_adafed", simulation="3", mislabeled_fraction=0.5)
    train = data.train_examples
    assert train.sizes.tolist() == [7500] * 8
    everyone = np.ascontiguousarray(train.x).view(np.uint32)
    assert len(np.unique(everyone)) == 60000
    wrong = [
        np.count_nonzero(digits["y_train"][_places(client)] != client["y"])
        for client in map(train.client, range(8))
    ]
    assert wrong == [0] * 6 + [3750] * 2
    np.testing.assert_array_equal(
        data.client_table.of(data.client_ids).values["adversary"], [0] * 6 + [1] * 2
    )
    # IID: of each digit about a tenth.
    assert all(min(_counts(train, k)) > 500 for k in range(6))


def test_simulation_3_deals_the_same_images_however_many_labels_are_wrong(digits):
    def load(**options):
        return leaf_data.load(
            "mnist_adafed", simulation="3", images_per_client=20, **options
        )

    right, wrong = load(num_adversaries=3), load(mislabeled_fraction=1.0)
    np.testing.assert_array_equal(right.train_examples.x, wrong.train_examples.x)
    same = right.train_examples.y == wrong.train_examples.y
    assert same.tolist() == [True] * 120 + [False] * 40
    assert right.client_table.values["adversary"].tolist() == [0] * 5 + [1] * 3
    assert wrong.train_examples.y.max() < 10
    assert wrong.options["images_per_client"] == 20
    np.testing.assert_array_equal(right.test_examples.y, wrong.test_examples.y)


@pytest.mark.parametrize("simulation", ["1", "2", "3"])
def test_the_seed_decides_everything(digits, simulation):
    def load(seed):
        data = leaf_data.load(
            "mnist_adafed",
            simulation=simulation,
            mislabeled_fraction=0.5 if simulation == "3" else 0.0,
            server_set="apart",
            seed=seed,
        )
        parts = (data.train_examples, data.test_examples, data.server_examples)
        return [part.x.tobytes() + part.y.tobytes() for part in parts]

    first, again, other = load(3), load(3), load(4)
    assert first == again
    assert all(a != b for a, b in zip(first, other))


# ---------------------------------------------------------------- test sets


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


# ------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"simulation": "4"}, "no simulation '4': there are 1, 2, 3"),
        ({"simulation": 1}, "no simulation 1: there are 1, 2, 3"),
        ({"server_set": "own"}, "no server_set 'own': there are reported, apart"),
        (
            {"num_clients": 7},
            "simulation 1 has 6 or 8 clients, num_clients cannot be 7",
        ),
        ({"simulation": "2", "num_clients": 8}, "simulation 2 has 6 clients"),
        ({"simulation": "3", "num_clients": 6}, "simulation 3 has 8 clients"),
        ({"num_adversaries": 1}, "num_adversaries is of simulation 3, not of 1"),
        (
            {"simulation": "2", "mislabeled_fraction": 0.5},
            "mislabeled_fraction is of simulation 3, not of 2",
        ),
        (
            {"simulation": "3", "mislabeled_fraction": 1.5},
            "mislabeled_fraction has to be from 0 to 1, not 1.5",
        ),
        (
            {"simulation": "3", "num_adversaries": 9},
            "num_adversaries has to be an integer from 0 to 8, not 9",
        ),
        (
            {"simulation": "3", "images_per_client": 7501},
            "images_per_client has to be an integer from 1 to 7500, not 7501",
        ),
        ({"seed": -1}, "seed has to be an integer"),
    ],
)
def test_options_that_cannot_be(digits, options, message):
    assert_refused(lambda: leaf_data.load("mnist_adafed", **options), message)


# ------------------------------------------------- the draws, the server's set


def test_a_part_of_every_class():
    y = np.repeat([0, 1, 3], [10, 4, 6])
    part, others = by_class.split(y, 0.5, partition.random_state(1))
    assert collections.Counter(y[part].tolist()) == {0: 5, 1: 2, 3: 3}
    assert sorted([*part, *others]) == list(range(20))
    assert part.tolist() == sorted(part) and others.tolist() == sorted(others)
    again, _ = by_class.split(y, 0.5, partition.random_state(2))
    assert again.tolist() != part.tolist()
    everything, nothing = by_class.split(y, 1, partition.random_state(1))
    assert (len(everything), len(nothing)) == (20, 0)
    assert_refused(lambda: by_class.split(y, 1.1, partition.random_state(1)), "not 1.1")


def test_classes_that_take_turns():
    y = np.tile([2, 0, 1], 10)
    order = by_class.mixed(y, partition.random_state(1))
    assert sorted(order) == list(range(30))
    for start in range(0, 30, 5):
        counts = np.bincount(y[order[start : start + 5]], minlength=3)
        assert sorted(counts.tolist()) == [1, 2, 2]
    other = by_class.mixed(y, partition.random_state(2))
    assert order.tolist() != other.tolist()


def test_wrong_labels_are_wrong_and_of_every_kind():
    y = np.repeat(np.arange(4), 50)
    given = y.copy()
    wrong = mislabel(y, 1.0, 4, partition.random_state(0))
    np.testing.assert_array_equal(y, given)
    assert wrong.dtype == np.int32 and not np.any(wrong == y)
    for label in range(4):
        assert set(wrong[y == label]) == set(range(4)) - {label}
    half = mislabel(y, 0.5, 4, partition.random_state(0))
    assert np.count_nonzero(half != y) == 100
    np.testing.assert_array_equal(mislabel(y, 0, 4, partition.random_state(0)), y)


def _toy(**changes):
    x = np.zeros((4, 2), np.uint8)
    y = np.array([0, 1, 2, 0], np.int32)
    both = Examples(x, y, np.array([0, 2, 4]), ("a", "b"))
    fields = {
        "name": "toy",
        "train_examples": both,
        "test_examples": both,
        "num_classes": 3,
        "pixel_convention": WHITE_ON_BLACK,
        "origin": Origin("a test", (), ""),
        "options": {},
        "server_examples": Examples(x, y, np.array([0, 4]), ("server",)),
    }
    return FederatedDataset(**{**fields, **changes})


def test_the_servers_examples_are_described_and_kept():
    data = _toy()
    assert "server: 4 examples" in data.describe().splitlines()
    assert "server" not in _toy(server_examples=None).describe()
    kept, _ = data.hold_out(0.5)
    assert kept.server_examples is data.server_examples


@pytest.mark.parametrize(
    ("x", "label", "client", "message"),
    [
        (np.zeros((1, 2), np.uint8), 0, "a", "the server's one client is 'server'"),
        (np.zeros((1, 3), np.uint8), 0, "server", "server images (3,)"),
        (np.zeros((1, 2), np.uint8), 3, "server", "toy: server has label 3"),
    ],
)
def test_server_examples_that_do_not_fit(x, label, client, message):
    examples = Examples(x, np.array([label], np.int32), np.array([0, 1]), (client,))
    assert_refused(lambda: _toy(server_examples=examples), message)


# ---------------------------------------------------------------- real MNIST


def test_real_mnist_in_every_simulation():
    folder = os.environ.get("TFF_PMC_DATA_DIR")
    if not folder or not any(
        os.path.isfile(os.path.join(folder, sub, "train-images-idx3-ubyte.gz"))
        for sub in ("", "mnist")
    ):
        pytest.skip("needs MNIST's idx files: set TFF_PMC_DATA_DIR to their folder")
    totals = {"1": 65921, "2": 10110, "3": 60000}
    for simulation, total in totals.items():
        data = leaf_data.load("mnist_adafed", simulation=simulation)
        assert data.train_examples.num_examples == total
        assert np.bincount(data.server_examples.y).tolist() == TEST_COUNTS
        assert data.element_shape == (28, 28)
