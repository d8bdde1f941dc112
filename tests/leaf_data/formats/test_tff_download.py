"""TFF's databases in its own cache, downloaded, or not to be had."""

from __future__ import annotations

import dataclasses
import io
import lzma
import os
import urllib.error
import urllib.request

import pytest

import leaf_data
from leaf_data.datasets import femnist

pytestmark = pytest.mark.usefixtures("empty_home")

NAME = "emnist_all.sqlite"


def _load(folder, **options):
    return leaf_data.load("femnist", folder, source="tff", **options)


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
    own = tmp_path / "home" / ".tff" / NAME
    found = _load(None)
    assert [origin.split("/")[-1] for origin in calls] == [NAME + ".lzma"]
    assert found.origin.source == "TFF's EMNIST (its download)"
    assert own.read_bytes() == data
    names = [p.name for p in sorted(own.parent.iterdir())]
    assert names == [NAME, "femnist_tff_cache"]
    assert _load(None).origin.source == "TFF's EMNIST (its cache)"
    # A folder for other data sets does not keep it from there.
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(tmp_path / "data"))
    assert _load(None).origin.source == "TFF's EMNIST (its cache)"
    assert len(calls) == 1
    _load(None, cache_dir=tmp_path / "caches")
    assert (tmp_path / "caches" / NAME).read_bytes() == data
    assert len(calls) == 2


def test_a_download_that_fails_is_one_line_and_leaves_nothing(
    tmp_path, monkeypatch, assert_refused
):
    def offline(folder):
        with open(os.path.join(folder, NAME), "w") as file:
            file.write("half")
        raise urllib.error.URLError("no route\nto host")

    changed = dataclasses.replace(femnist.DATABASE, download=offline)
    monkeypatch.setattr(femnist, "DATABASE", changed)
    # A folder that is given is never downloaded for.
    words = f"femnist: no {NAME} or {NAME}.lzma in {tmp_path} or {tmp_path / 'femnist'}"
    assert_refused(lambda: _load(tmp_path), words)
    assert not (tmp_path / "home" / ".tff").exists()
    hint = "(<urlopen error no route to host>): pass data_dir or set TFF_PMC_DATA_DIR"
    assert_refused(lambda: _load(None), f"femnist: TFF could not download {NAME}", hint)
    assert list((tmp_path / "home" / ".tff").iterdir()) == []
    monkeypatch.setenv("TFF_PMC_DATA_DIR", str(tmp_path))
    assert_refused(
        lambda: _load(None), f"lzma in {tmp_path} or", ", and TFF could not", hint
    )
