"""FEMNIST's real files of LEAF, which `TFF_PMC_DATA_DIR` has to name."""

from __future__ import annotations

import glob
import json
import os

import numpy as np
import pytest


@pytest.fixture(scope="module")
def real_folder():
    folder = os.environ.get("TFF_PMC_DATA_DIR")
    if folder:
        for sub in ("femnist/data", "data", "femnist", ""):
            if glob.glob(os.path.join(folder, sub, "train", "all_data_*_train_*.json")):
                return os.path.join(folder, sub)
    pytest.skip("needs LEAF's FEMNIST: set TFF_PMC_DATA_DIR to its folder")


@pytest.fixture(scope="module")
def real(real_folder, tmp_path_factory, toy):
    caches = tmp_path_factory.mktemp("caches")
    return toy.load(real_folder, cache_dir=caches), caches


def test_real_files_example_by_example(real, real_folder):
    data, _ = real
    seen = 0
    for part, examples in (
        ("train", data.train_examples),
        ("test", data.test_examples),
    ):
        for path in glob.glob(os.path.join(real_folder, part, "*.json")):
            with open(path) as file:
                document = json.load(file)
            for user, count in zip(document["users"], document["num_samples"]):
                own = examples.client(user)
                expected = document["user_data"][user]
                assert own["y"].tolist() == expected["y"] and count == len(own["y"])
                seen += count
                # Exact: LEAF divided bytes by 255.
                back = own["x"][:3].reshape(-1, 784) / 255
                assert back.tolist() == expected["x"][:3]
    assert seen == data.train_examples.num_examples + data.test_examples.num_examples
    # Row 0 is the top: letters stand in the middle and are taller than wide.
    ink = data.train_examples.x < 128
    assert np.mean(data.train_examples.x == 255) > 0.7
    assert ink.any(axis=2).sum() > ink.any(axis=1).sum()


def test_the_real_writers(real, real_folder):
    data, _ = real
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


def test_real_files_sampled(real, real_folder, toy):
    data, caches = real
    half = toy.load(real_folder, cache_dir=caches, sample_fraction=0.5, seed=1)
    assert 0.45 < half.train_examples.num_examples / data.train_examples.num_examples
    assert half.train_examples.num_examples < 0.55 * data.train_examples.num_examples
    assert set(half.client_ids) < set(data.client_ids)
