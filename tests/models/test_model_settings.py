"""The registry of models: names, settings, and what they build."""

import inspect
import re

import numpy as np
import pytest

from tff_pmc import models

CNNS = [name for name in models.__all__ if name.endswith(("_cnn", "_convnet"))]
OTHERS = ["bag_of_words", "reddit_lstm", "softmax_regression", "stacked_lstm"]
NAMES = sorted([*CNNS, *OTHERS])


@pytest.mark.parametrize("name", NAMES)
def test_settings_build_what_the_function_builds(name):
    activation = {"conv_activation": "none"} if name in CNNS else {}
    options = {**activation, "initializer": "glorot_normal"}
    settings = models.MODELS[name].from_flag_values({"model_seed": 3, **options})
    model, function = settings.build(), getattr(models, name)
    expected = function(seed=3, **options)
    for a, b in zip(model.initial_weights[0], expected.initial_weights[0]):
        np.testing.assert_array_equal(a, b)
    assert tuple(model.input_spec[0].shape)[1:] == settings.element_shape
    # The help says what it is in the words of its function.
    about = inspect.getdoc(settings).splitlines()[0]
    builds = inspect.getdoc(function).splitlines()[0]
    assert about.lower() == builds.removeprefix("Builds ").lower()
    parameters = re.search(r": ([0-9,]+) parameters\.$", about)
    if name in OTHERS:
        sizes = [array.size for array in model.initial_weights[0]]
        assert f"{sum(sizes):,}" == parameters[1]
    else:
        assert "CNN" in about


def test_every_model_is_registered():
    assert sorted(models.MODELS) == NAMES
    published = models.MODELS["keras_mnist_cnn"]()
    assert (published.pooled_dropout, published.dense_dropout) == (0.25, 0.5)


def test_a_model_must_define_how_it_is_built():
    class Bare(models.ModelSettings):
        """A CNN of nothing."""

    with pytest.raises(TypeError, match="Bare has neither a `function` nor a `build`"):
        Bare().build()
