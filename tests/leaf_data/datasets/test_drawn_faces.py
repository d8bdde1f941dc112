"""`drawn_faces`: what the drawings say of themselves, and what can be seen on them."""

import numpy as np
import pytest

import leaf_data
from leaf_data.datasets import drawn_faces

pytestmark = pytest.mark.usefixtures("empty_home")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """240 drawings or so of 12 people."""
    folder = tmp_path_factory.mktemp("drawn")
    drawn_faces.write(str(folder), 12, 20, seed=1)
    return folder


def test_drawn_faces_say_what_they_are_and_are_the_same_again(drawn, tmp_path):
    data = leaf_data.load("celeba", drawn, cache_dir=tmp_path)
    assert data.name == "drawn_faces"
    assert "drawn faces, no photographs" in data.describe()
    assert "pixels: drawing, no photograph" in data.describe()
    drawn_faces.write(str(tmp_path), 12, 20, seed=1)
    paths = [path for path in drawn.rglob("*") if path.is_file()]
    assert len(paths) > 100
    for path in paths:
        other = tmp_path / path.relative_to(drawn)
        assert path.suffix == ".txt" or path.name.startswith("drawn_")
        assert other.read_bytes() == path.read_bytes()
    drawn_faces.write(str(tmp_path), 12, 20, seed=2)
    assert other.read_bytes() != path.read_bytes()


def test_drawn_clients_differ(drawn):
    files = ("list_attr_celeba.txt", "identity_CelebA.txt")
    lines = [(drawn / name).read_text().splitlines() for name in files]
    attributes = [line.split() for line in lines[0][2:]]
    identities = [line.split()[1] for line in lines[1]]
    sizes = np.unique(identities, return_counts=True)[1]
    assert len(sizes) == 12
    assert sizes.min() >= 10 and sizes.max() <= 30 and len(set(sizes)) > 4
    smiles = {}
    for identity, (_, _, smiling) in zip(identities, attributes):
        smiles.setdefault(identity, []).append(smiling == "1")
    rates = [np.mean(values) for values in smiles.values()]
    assert max(rates) - min(rates) > 0.3


def _pixels(examples):
    return examples.x.reshape(examples.num_examples, -1) / 255.0


def test_a_linear_classifier_sees_the_smile():
    data = leaf_data.load("drawn_faces", num_identities=30, images_per_identity=16)
    train, test = data.train_examples, data.test_examples
    x, mean = _pixels(train), _pixels(train).mean(axis=0)
    kernel = (x - mean) @ (x - mean).T + 50 * np.eye(len(x))
    weights = (x - mean).T @ np.linalg.solve(kernel, train.y - train.y.mean())
    predicted = (_pixels(test) - mean) @ weights + train.y.mean() > 0.5
    majority = max(test.y.mean(), 1 - test.y.mean())
    assert np.mean(predicted == test.y) > majority + 0.1


def test_blurred_drawings_are_blurred():
    data = leaf_data.load("drawn_faces", num_identities=20, images_per_identity=12)
    x, sharp = data.train_examples.x, data.train_examples.attributes["sharp"]
    edges = np.abs(np.diff(x.astype(float), axis=2)).max(axis=(1, 2, 3))
    assert 0 < sharp.mean() < 1
    assert np.median(edges[sharp == 1]) > 1.5 * np.median(edges[sharp == 0])


def test_the_registered_stand_in():
    own = dict(num_identities=6, images_per_identity=10)
    data, again = (leaf_data.load("drawn_faces", **own) for _ in range(2))
    assert data.element_shape == (64, 64, 3)
    assert data.options == {"client_rule": "paper", **own, "seed": 0}
    assert data.origin.folder == ""
    np.testing.assert_array_equal(data.test_examples.x, again.test_examples.x)
    assert data.origin == again.origin
