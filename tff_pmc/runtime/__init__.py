"""What runs TFF's computations.

Everything here is imported when it is first used: a machine of a cluster imports some
of these modules without TFF.
"""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "ClusterError": "cluster_connection",
    "Runtime": "runtime",
    "WorkerDiedError": "worker",
    "WorkerEngine": "worker",
    "WorkerStartError": "worker",
    "WrongDataError": "values",
    "engine_versions": "runtime",
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
