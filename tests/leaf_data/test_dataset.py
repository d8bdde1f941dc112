"""`Dataset`: its notes in tables, its options, and options by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leaf_data
from leaf_data import SettingError
from leaf_data.datasets.celeba.celeba import Celeba
from leaf_data.datasets.cifar10 import Cifar10
from leaf_data.datasets.digits5k import Digits5k
from leaf_data.datasets.femnist.femnist import Femnist
from leaf_data.datasets.mnist import Mnist
from leaf_data.datasets.mnist_adafed import MnistAdafed


@pytest.mark.parametrize(
    ("dataset", "note"),
    [
        (Mnist(), ""),
        (Cifar10(), ""),
        (Cifar10(num_clients=4), "4 clients"),
        (Cifar10(num_clients=3), "3 clients"),
        (MnistAdafed(), ""),
        (MnistAdafed(reading="a_class"), "5,500 a class"),
        (MnistAdafed(simulation="3"), ""),
    ],
)
def test_the_note_of_a_row(dataset, note):
    assert dataset.note == note


def test_options_have_the_seed_last_and_plain_types():
    options = Femnist(sample_fraction=1, min_samples=np.int64(2)).options()
    assert json.dumps(options) == (
        '{"source": "leaf", "sample_fraction": 1.0, "min_samples": 2, "seed": 0}'
    )


def test_a_class_is_made_of_options_and_tells_of_flags():
    assert Digits5k.of_options(seed=4) == Digits5k(seed=4)
    with pytest.raises(SettingError, match="^--client_rule=reference_code needs --cel"):
        Celeba(client_rule="reference_code", source="leaf")


def test_a_setting_of_two_data_sets_is_declared_once():
    owners = [
        {declared.flag: declared.owner for declared in kind.declared()}["partition"]
        for kind in (Digits5k, Mnist)
    ]
    assert owners[0] is owners[1] and owners[0] not in (Digits5k, Mnist)


def test_a_data_set_that_cannot_be_loaded_yet():
    with pytest.raises(TypeError, match="abstract.* load"):
        leaf_data.Dataset()
