"""The dropout of Keras's two CNNs for digits."""

from __future__ import annotations

import numpy as np
import pytest

from tff_pmc import models


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(4).integers(0, 256, (200, 28, 28), dtype=np.uint8)


def scores(images, build, ones, seed=1, **dropouts):
    """The scores in training, with the weights of one layer all 1."""
    model = build(**dropouts)
    weights = list(model.initial_weights[0])
    weights[ones] = np.ones_like(weights[ones])
    if not model.has_own_training:
        return np.asarray(model.predict_on_batch((tuple(weights), ()), images, True))
    output, rest = model.forward_in_training(tuple(weights), (), images, [seed, 1])
    assert rest == ()
    return np.asarray(output)


def check_dropout(score):
    """What is kept grows, so that the mean stays; the seed decides what is kept."""
    whole, half = score(0.0), score(0.5)
    assert np.mean(half / whole) == pytest.approx(1, abs=0.05)
    assert np.std(half / whole) > 0.01
    np.testing.assert_array_equal(half, score(0.5))
    assert np.abs(half - score(0.5, seed=2)).max() > 0
    assert np.std(score(0.9) / whole) > 2 * np.std(half / whole)


def test_the_simple_one_drops_the_last_layers_inputs(images):
    """With all weights of the last layer 1 a score is the sum of its inputs."""
    build = models.keras_simple_convnet
    check_dropout(lambda share, **o: scores(images, build, 4, dropout=share, **o))


@pytest.mark.parametrize(
    ("name", "other", "ones"),
    [("pooled_dropout", "dense_dropout", 4), ("dense_dropout", "pooled_dropout", 6)],
)
def test_the_published_one_drops_at_two_places(images, name, other, ones):
    """Each by itself: with a layer's weights 1, a unit is the sum of its inputs."""
    build = models.keras_mnist_cnn
    check_dropout(
        lambda share, **o: scores(images, build, ones, **{name: share, other: 0.0}, **o)
    )


def test_the_published_one_has_the_examples_shares():
    settings = models.MODELS["keras_mnist_cnn"]()
    assert (settings.pooled_dropout, settings.dense_dropout) == (0.25, 0.5)


def test_the_two_places_drop_by_seeds_of_their_own(images):
    """Both with half of the units: their scores are not one drop's twice."""
    build = models.keras_mnist_cnn
    both = scores(images, build, 6, pooled_dropout=0.5, dense_dropout=0.5)
    for one in ({"pooled_dropout": 0.5}, {"dense_dropout": 0.5}):
        alone = {"pooled_dropout": 0.0, "dense_dropout": 0.0, **one}
        assert np.abs(both - scores(images, build, 6, **alone)).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "none"),
    [
        ("keras_mnist_cnn", {"pooled_dropout": 0.0, "dense_dropout": 0.0}),
        ("keras_simple_convnet", {"dropout": 0.0}),
    ],
)
def test_dropout_is_for_packed_clients(images, name, none):
    build = getattr(models, name)
    model = build()
    with pytest.raises(ValueError, match="which only packed clients do"):
        model.predict_on_batch(model.initial_weights, images, True)
    assert model.has_own_training
    assert not build(**none).has_own_training
    (first, *_) = none
    assert build(**{**none, first: 0.1}).has_own_training


@pytest.mark.parametrize("share", [-0.1, 1.0])
@pytest.mark.parametrize(
    ("name", "dropout"),
    [
        ("keras_mnist_cnn", "pooled_dropout"),
        ("keras_mnist_cnn", "dense_dropout"),
        ("keras_simple_convnet", "dropout"),
    ],
)
def test_a_dropout_that_cannot_be(name, dropout, share):
    with pytest.raises(ValueError, match=rf"{dropout} must be in \[0, 1\), got"):
        getattr(models, name)(**{dropout: share})
