"""TFF's EMNIST database: read as TFF itself reads it, found, unpacked, downloaded."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import lzma
import os
import urllib.error
import urllib.request

import numpy as np
import pytest

import leaf_data
from leaf_data import DataError
from leaf_data.datasets.femnist import femnist
from leaf_data.formats import tff_database

pytestmark = pytest.mark.usefixtures("empty_home")


def _examples(example_proto):
    """(client, split, proto) in mixed order; "b" is in the test split alone."""
    generator = np.random.RandomState(0)
    rows = []
    for client, split, count in (
        ("c", "all_train", 4),
        ("a", "all_train", 3),
        ("c", "all_test", 2),
        ("b", "all_test", 1),
        ("a", "digits_only_train", 2),
    ):
        for _ in range(count):
            pixels = generator.randint(0, 256, 784) / 255
            label = [int(generator.randint(62))]
            proto = example_proto(pixels=pixels.tolist(), label=label)
            rows.append((client, split, proto))
    return [rows[k] for k in generator.permutation(len(rows))]


@pytest.fixture
def database(tmp_path, example_proto, write_tff_database):
    path = tmp_path / "data" / "emnist_all.sqlite"
    write_tff_database(path, _examples(example_proto))
    return path


def _load(folder, **options):
    return leaf_data.load("femnist", folder, source="tff", **options)


def _check_against_tff(data, path, tf):
    """Every client's examples as TFF's own reader gives them, in its order."""
    tff = pytest.importorskip("tensorflow_federated")
    spec = {
        "pixels": tf.io.FixedLenFeature((28, 28), tf.float32),
        "label": tf.io.FixedLenFeature((), tf.int64),
    }
    ids = set()
    for split, examples in (
        ("all_train", data.train_examples),
        ("all_test", data.test_examples),
    ):
        theirs = tff.simulation.datasets.SqlClientData(str(path), split)
        own = [c for c, n in zip(examples.client_ids, examples.sizes) if n]
        assert own == theirs.client_ids
        ids.update(own)
        for client in own:
            dataset = theirs.create_tf_dataset_for_client(client)
            parsed = [
                tf.io.parse_single_example(p, spec) for p in dataset.as_numpy_iterator()
            ]
            pixels = np.stack([example["pixels"].numpy() for example in parsed])
            found = examples.client(client)
            np.testing.assert_array_equal(found["x"] / np.float32(255), pixels)
            assert found["y"].tolist() == [int(e["label"]) for e in parsed]
    assert list(data.client_ids) == sorted(ids)


def test_it_is_read_as_tff_reads_it(database, tf):
    data = _load(database.parent)
    assert data.train_examples.sizes.tolist() == [3, 0, 4]
    assert data.test_examples.sizes.tolist() == [0, 1, 2]
    _check_against_tff(data, database, tf)
    assert data.pixel_convention.background == 255 and data.num_classes == 62
    digest = hashlib.sha256(database.read_bytes()).hexdigest()
    assert data.origin.source == "TFF's EMNIST"
    assert data.origin.files == (("emnist_all.sqlite", digest),)
    assert data.options["source"] == "tff"


def test_the_options_and_the_cache(database, monkeypatch):
    _load(database.parent)
    monkeypatch.setattr(tff_database, "read", None)  # From here on the cache.
    assert _load(database.parent, min_samples=4).client_ids == ("c",)
    sampled = _load(database.parent, sample_fraction=0.5, seed=2)
    sizes = sampled.train_examples.sizes + sampled.test_examples.sizes
    assert sizes.sum() == 5  # Half of 10.
    assert (database.parent / "femnist_tff_cache" / "femnist_tff.npz").is_file()


def test_the_packed_database(database, tf, assert_refused):
    packed = database.with_name("emnist_all.sqlite.lzma")
    data = lzma.compress(database.read_bytes(), lzma.FORMAT_ALONE)
    packed.parent.mkdir(exist_ok=True)
    moved = database.rename(database.parent.parent / "moved.sqlite")
    packed.write_bytes(data)
    found = _load(packed.parent)
    _check_against_tff(found, moved, tf)
    digest = hashlib.sha256(data).hexdigest()
    assert found.origin.files == (("emnist_all.sqlite.lzma", digest),)
    packed.write_bytes(data[:-100])
    assert_refused(lambda: _load(packed.parent), f"{packed}: ")
    packed.write_bytes(b"text")
    assert_refused(lambda: _load(packed.parent), f"{packed}: cannot be unpacked")


def test_its_cache_is_read_without_tensorflow(database, run_python):
    _load(database.parent)
    code = (
        "import sys, leaf_data\n"
        f"leaf_data.load('femnist', {str(database.parent)!r}, source='tff')\n"
        "sys.exit('tensorflow' in sys.modules)\n"
    )
    run_python(code)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda good: good[: len(good) // 2], "not TFF's EMNIST, or damaged"),
        (lambda good: b"text" * 999, "not TFF's EMNIST, or damaged"),
        (lambda good: b"", "no such table: client_metadata"),
    ],
    ids=["half", "text", "empty"],
)
def test_databases_that_are_damaged(database, change, message, assert_refused):
    database.write_bytes(change(database.read_bytes()))
    assert_refused(lambda: _load(database.parent), f"{database}: ", message)


def test_a_folder_that_is_given_is_never_downloaded_for(tmp_path):
    name, sub = "emnist_all.sqlite", tmp_path / "femnist"
    with pytest.raises(DataError) as error:
        _load(tmp_path)
    assert (
        str(error.value) == f"femnist: no {name} or {name}.lzma in {tmp_path} or {sub}"
    )


def test_tffs_own_cache_and_download(tmp_path, database, monkeypatch, tf):
    data = database.read_bytes()
    database.unlink()
    calls = []

    def opened(origin):
        calls.append(origin)
        stream = io.BytesIO(lzma.compress(data, lzma.FORMAT_ALONE))
        stream.headers = {"content-length": None}
        return stream

    monkeypatch.setattr(urllib.request, "urlopen", opened)
    own = tmp_path / "home" / ".tff" / "emnist_all.sqlite"
    found = _load(None)
    assert [origin.split("/")[-1] for origin in calls] == ["emnist_all.sqlite.lzma"]
    assert found.origin.source == "TFF's EMNIST (its download)"
    assert own.read_bytes() == data
    assert [p.name for p in sorted(own.parent.iterdir())] == [
        "emnist_all.sqlite",
        "femnist_tff_cache",
    ]
    assert _load(None).origin.source == "TFF's EMNIST (its cache)"
    # A folder for other data sets does not keep it from there.
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(tmp_path / "data"))
    assert _load(None).origin.source == "TFF's EMNIST (its cache)"
    assert len(calls) == 1
    _load(None, cache_dir=tmp_path / "caches")
    assert (tmp_path / "caches" / "emnist_all.sqlite").read_bytes() == data
    assert len(calls) == 2


def test_a_download_that_fails_is_one_line_and_leaves_nothing(
    tmp_path, monkeypatch, assert_refused
):
    def offline(folder):
        with open(os.path.join(folder, "emnist_all.sqlite"), "w") as file:
            file.write("half")
        raise urllib.error.URLError("no route\nto host")

    changed = dataclasses.replace(femnist.DATABASE, download=offline)
    monkeypatch.setattr(femnist, "DATABASE", changed)
    hint = "(<urlopen error no route to host>): pass data_dir or set TFF_PMC_DATA_DIR"
    assert_refused(
        lambda: _load(None),
        "femnist: TFF could not download emnist_all.sqlite",
        hint,
    )
    assert list((tmp_path / "home" / ".tff").iterdir()) == []
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(tmp_path))
    assert_refused(
        lambda: _load(None), f"lzma in {tmp_path} or", ", and TFF could not", hint
    )


def test_tffs_synthetic_digits_are_black_on_white_and_upright():
    tff = pytest.importorskip("tensorflow_federated")
    clients = tff.simulation.datasets.emnist.get_synthetic()
    dataset = clients.create_tf_dataset_for_client(clients.client_ids[0])
    images = {int(e["label"]): e["pixels"] for e in dataset.as_numpy_iterator()}
    assert all(np.mean(image == 1.0) > 0.7 for image in images.values())
    ink = images[7] < 0.5
    # A seven has its bar at the top, and is taller than wide.
    rows = np.flatnonzero(ink.any(axis=1))
    assert ink[rows[0] + 1].sum() > 2 * ink[rows[-1] - 1].sum()
    assert ink.any(axis=1).sum() > ink.any(axis=0).sum()
