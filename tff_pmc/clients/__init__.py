"""The clients' side of a round: packing, local training and measurements.

`pack` and `pack_client_data` build the packs of clients that a process takes,
`with_attributes` adds a client's attributes to its dataset of batches, and
`data_source` draws cohorts for a TFF program. Each is imported on first use, so that a
Python process that only reads packs does not import TFF.
"""

import importlib
from typing import Any

_MODULES = {
    "data_source": "cohort_source",
    "pack": "packing",
    "pack_client_data": "packing",
    "with_attributes": "dataset_training",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
