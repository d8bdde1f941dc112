"""The engines that run TFF's computations.

Everything here is imported when it is first used: a process that only sums packs
imports some of these modules without TFF.
"""

from __future__ import annotations

import contextlib
import importlib
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement

_PLACES = {
    "Runtime": "runtime",
    "WorkerDiedError": "worker",
    "WorkerEngine": "worker",
    "WorkerStartError": "worker",
    "WrongDataError": "values",
    "engine_versions": "runtime",
    "unused_gpu": "runtime",
}

__all__ = [*_PLACES, "ENGINES", "EngineError", "check_installed"]

ENGINES = {
    "local": "tff_pmc.runtime.local.LocalEngine",
    "worker": "tff_pmc.runtime.worker.WorkerEngine",
    "cluster": "tff_pmc.cluster.engine.ClusterEngine",
}
"""Where each engine is: this process, TFF's worker, the workers of Dask."""


class EngineError(RuntimeError):
    """An engine that could not be started, or ended while a computation needed it."""


def check_installed() -> None:
    """Checks that TensorFlow and TFF take the NumPy and the protobuf that are here.

    Another package may have replaced them: then the import ends in a traceback.

    Raises:
        EngineError: they do not; one line names the release and the remedy.
    """
    for package in ("tensorflow", "tensorflow-cpu", "tensorflow-federated"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            for requirement in map(Requirement, metadata.requires(package) or ()):
                name = requirement.name
                if name not in ("numpy", "protobuf"):
                    continue
                found = metadata.version(name)
                if found not in requirement.specifier:
                    raise EngineError(
                        f"{name} {found} is installed, which {package} does not take: "
                        "`make venv`, or pip install --no-deps -r requirements.txt, "
                        'puts the pinned release back; docs/install.md, "More '
                        'packages", says how to add others without replacing it'
                    )


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_installed()
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
