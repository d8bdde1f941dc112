"""The registry of models: names, settings, and what they build."""

import dataclasses
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

from leaf_data.declare import SettingError
from tff_pmc import models

NAMES = {
    "mnist_cnn",
    "femnist_cnn",
    "celeba_cnn",
    "celeba_reference_cnn",
    "keras_mnist_cnn",
    "keras_simple_convnet",
    "cifar_cnn",
    "obstacle_cnn",
}


def test_every_model_is_registered():
    assert set(models.MODELS) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_settings_build_what_the_function_builds(name):
    settings = models.MODELS[name].of_flags(
        {"model_seed": 3, "conv_activation": "none", "initializer": "glorot_normal"}
    )
    model = settings.build()
    same = getattr(models, name)(
        seed=3, conv_activation="none", initializer="glorot_normal"
    )
    for a, b in zip(model.initial_weights[0], same.initial_weights[0]):
        np.testing.assert_array_equal(a, b)
    assert tuple(model.input_spec[0].shape)[1:] == settings.element_shape


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_help_says_what_a_model_is_in_the_words_of_its_function(name):
    about, of_function = (
        inspect.getdoc(thing).splitlines()[0]
        for thing in (models.MODELS[name], getattr(models, name))
    )
    assert about == of_function
    assert re.search(r"CNN .*: [0-9,]+ parameters\.$", about)


def test_a_model_must_say_how_it_is_built():
    class Bare(models.ModelSettings):
        """A CNN of nothing."""

    with pytest.raises(TypeError, match="Bare has no `function` and no `build`"):
        Bare().build()


def test_two_models_share_one_declaration_of_dropout():
    owners = {
        declared.owner
        for name in ("keras_simple_convnet", "celeba_reference_cnn")
        for declared in models.MODELS[name].declared()
        if declared.flag == "dropout"
    }
    assert owners == {models.DroppingModelSettings}
    assert "dropout" not in models.MODELS["mnist_cnn"].flags()
    assert models.MODELS["celeba_reference_cnn"].flags()[-1] == "batch_norm"
    assert models.MODELS["keras_simple_convnet"](dropout=0.0).dropout == 0.0


def test_a_setting_out_of_range_is_named_by_its_flag():
    for changed, flag in (
        ({"seed": -1}, "--model_seed"),
        ({"conv_activation": "tanh"}, "--conv_activation"),
        ({"dropout": 1.0}, "--dropout"),
    ):
        with pytest.raises(SettingError, match=flag):
            models.MODELS["keras_simple_convnet"](**changed)


def test_a_model_of_ones_own_is_registered_by_its_class(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Constant(models.ModelSettings):
        title = "a model of this test"
        element_shape = (2,)

        def build(self):
            return self.seed

    monkeypatch.setattr(models.MODELS, "_things", dict(models.MODELS))
    models.MODELS.register("constant", Constant)
    assert models.MODELS["constant"].of_flags({"model_seed": 4}).build() == 4
    with pytest.raises(ValueError, match="model 'mnist_cnn' already"):
        models.MODELS.register("mnist_cnn", Constant)


def test_the_registry_is_read_without_tensorflow():
    code = """
import sys
from tff_pmc import models
assert len(models.MODELS) == 8 and models.MODELS["cifar_cnn"]().by_flag()
sys.exit("tensorflow" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
