"""The clients' side of a round: packing, local training, and what clients measure.

`pack` and `pack_client_data` make the packs of clients that a process takes, and
`with_attributes` adds what is known of a client to its dataset of batches;
`data_source` draws cohorts for a program of TFF. Each is imported when it is first
used: a process that only reads packs does without TFF.
"""

import importlib
from typing import Any

_PLACES = {
    "data_source": "cohort_source",
    "pack": "packing",
    "pack_client_data": "packing",
    "with_attributes": "dataset_training",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
