"""The federations of runs, loaded when they are asked for (no TensorFlow)."""

from __future__ import annotations

import os
from typing import Any, Optional

import leaf_data
from tff_pmc.settings import RunSettings


class Federations:
    """Loads the federation of a run; the last one is kept, as memory is limited.

    It travels to another process as the places it loads from, without what it holds.
    """

    def __init__(
        self, data_dir: str, cache_dir: str, table: leaf_data.ClientTable
    ) -> None:
        """Takes the folders, empty for the defaults, and the clients' attributes."""
        self.data_dir, self.cache_dir = data_dir, cache_dir
        self.table = table
        self._last: Optional[tuple[str, leaf_data.FederatedDataset]] = None

    def __call__(self, settings: RunSettings) -> leaf_data.FederatedDataset:
        """The federation of a run's settings.

        Raises:
            DataError: its files are missing or broken.
        """
        key = repr(settings.data)
        if self._last is None or self._last[0] != key:
            self._last = None  # Before the next one is loaded.
            data = settings.data.load(self.data_dir or None, self.cache_dir or None)
            if self.table.values:
                data = data.with_client_table(self.table)
            self._last = key, data
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        places = {
            name: os.path.abspath(getattr(self, name)) if getattr(self, name) else ""
            for name in ("data_dir", "cache_dir")
        }
        return {**self.__dict__, **places, "_last": None}
