"""Fixtures of the tests of `leaf_data`: an empty home folder."""

import pytest


@pytest.fixture
def empty_home(tmp_path, monkeypatch):
    """No data named by the environment, and a home without caches."""
    monkeypatch.delenv("TFF_PMC_DATA_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
