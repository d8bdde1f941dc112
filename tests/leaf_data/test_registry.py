"""Data sets by name: what there is, one from outside, options and their errors."""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap

import numpy as np
import pytest

import leaf_data
from leaf_data import registry

NAMES = (
    *("celeba", "cifar10", "digits5k", "drawn_faces", "drawn_obstacles", "femnist"),
    *("mnist", "mnist_adafed", "obstacles"),
)


@pytest.fixture
def restored(monkeypatch):
    """What a test registers is forgotten after it."""
    len(registry.DATASETS)  # The package's own are found first.
    things = dict(registry.DATASETS._things)
    monkeypatch.setattr(registry.DATASETS, "_things", things)


def test_all_data_sets_are_found():
    assert leaf_data.names() == NAMES
    for name in NAMES:
        kind = registry.DATASETS[name]
        assert issubclass(kind, leaf_data.Dataset)
        module = sys.modules[kind.__module__]
        assert f'register("{name}", {kind.__name__})' in inspect.getsource(module)


def test_a_flag_is_declared_once():
    owners = {}
    for kind in registry.DATASETS.values():
        for declared in kind.declared():
            assert declared.words.endswith(".")
            assert owners.setdefault(declared.flag, declared.owner) is declared.owner
    assert owners["partition_seed"] is leaf_data.Dataset


def test_the_data_sets_are_imported_when_one_is_asked_for(run_python):
    run_python(
        "import sys, leaf_data\n"
        "def imported(): return [m for m in sys.modules"
        " if m.startswith('leaf_data.datasets')]\n"
        "assert not imported(), imported()\n"
        "leaf_data.names()\n"
        "assert 'leaf_data.datasets.celeba.celeba' in imported()\n"
        "heavy = {'tensorflow', 'tensorflow_federated', 'pandas', 'mlxtend', 'keras'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )


def test_unknown_names_and_options(assert_refused):
    assert_refused(
        lambda: leaf_data.load("minst"),
        "no data set 'minst' (did you mean mnist?): there are ",
        *NAMES,
    )
    for name in ("digits5k", "mnist"):
        assert_refused(
            lambda name=name: leaf_data.load(name, sede=1),
            f"{name}: no option 'sede' (did you mean seed?): there are seed, partition",
        )
        assert_refused(
            lambda name=name: leaf_data.load(name, partition="non-iid"),
            f"{name}: partition must be one of iid, noniid; got 'non-iid'",
        )
        assert_refused(
            lambda name=name: leaf_data.load(name, seed=-1),
            f"{name}: seed must be in [0, 2^31), got -1",
        )
        assert_refused(
            lambda name=name: leaf_data.load(name, cache_dir="caches"),
            f"{name}: keeps no cache",
        )


@pytest.mark.parametrize("name", NAMES)
def test_only_those_that_keep_a_cache_take_a_folder_for_it(
    name, assert_refused, tmp_path
):
    cached = name in ("celeba", "cifar10", "femnist", "obstacles")
    assert registry.DATASETS[name].cached == cached
    assert_refused(
        lambda: leaf_data.load(name, tmp_path, cache_dir=tmp_path),
        f"{name}: ",
        " in " if cached else "keeps no cache, so it takes no cache_dir",
    )


def _example():
    """The data set that the documentation of `Dataset` shows, as a module's text."""
    _, _, rest = inspect.getdoc(leaf_data.Dataset).partition("    import dataclasses")
    code, _, _ = ("    import dataclasses" + rest).partition("\nThen `leaf_data.load(")
    return textwrap.dedent(code)


def test_a_data_set_of_a_module_from_outside(
    restored, tmp_path, monkeypatch, assert_refused
):
    (tmp_path / "toy_noise.py").write_text(_example())
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        importlib.import_module("toy_noise")
    finally:
        sys.modules.pop("toy_noise", None)
    assert "noise" in leaf_data.names()
    data = leaf_data.load("noise", images=5, seed=2)
    assert data.train_examples.sizes.tolist() == [5, 5, 5]
    assert list(data.options.items()) == [("images", 5), ("seed", 2)]
    again = leaf_data.load("noise", images=5, seed=2)
    np.testing.assert_array_equal(data.train_examples.x, again.train_examples.x)
    assert_refused(
        lambda: leaf_data.load("noise", images=0),
        "noise: images must be at least 1, got 0",
    )
    with pytest.raises(leaf_data.SettingError, match="^--noise_images must be at lea"):
        registry.DATASETS["noise"](images=0)


def test_a_name_that_is_taken(restored):
    class Mine(leaf_data.Dataset):
        pass

    with pytest.raises(ValueError, match="there is a data set 'mnist' already"):
        leaf_data.register("mnist", Mine)
