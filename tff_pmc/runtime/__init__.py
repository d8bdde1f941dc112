"""What runs TFF's computations.

Everything here is imported when it is first used: a process that only sums packs
imports some of these modules without TFF.
"""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "Runtime": "runtime",
    "WorkerDiedError": "worker",
    "WorkerEngine": "worker",
    "WorkerStartError": "worker",
    "WrongDataError": "values",
    "engine_versions": "runtime",
}

__all__ = [*_PLACES, "ENGINES", "EngineError"]

ENGINES = {
    "local": "tff_pmc.runtime.local.LocalEngine",
    "worker": "tff_pmc.runtime.worker.WorkerEngine",
    "cluster": "tff_pmc.cluster.engine.ClusterEngine",
}
"""Where each engine is: this process, TFF's own worker, the workers of Dask."""


class EngineError(RuntimeError):
    """An engine that could not be started, or ended while a computation needed it."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
