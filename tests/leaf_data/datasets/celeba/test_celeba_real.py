"""CelebA's real photos, which `TFF_PMC_DATA_DIR` has to name."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="module")
def real_folder():
    folder = os.environ.get("TFF_PMC_DATA_DIR")
    if not folder or not os.path.isdir(os.path.join(folder, "celeba", "data", "raw")):
        pytest.skip("needs CelebA: set TFF_PMC_DATA_DIR to its folder")
    return folder


@pytest.fixture(scope="module")
def caches(tmp_path_factory):
    return tmp_path_factory.mktemp("caches")


def test_real_photos(real_folder, caches, toy):
    data = toy.load(real_folder, client_rule="reference_code", cache_dir=caches)
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
    # Faces: brighter in the middle than black, and not all the same.
    assert 40 < train.x.mean() < 200 and train.x.std() > 30


def test_the_5898_real_photos(real_folder, caches, toy):
    folder = os.path.join(real_folder, "celeba", "data", "raw", "img_align_celeba")
    if len(os.listdir(folder)) != 5898:
        pytest.skip("other photos than those of the counts below")
    data = toy.load(real_folder, client_rule="reference_code", cache_dir=caches)
    assert data.train_examples.num_clients == 121
    assert data.train_examples.num_examples == 2130
    assert data.test_examples.num_examples == 529
