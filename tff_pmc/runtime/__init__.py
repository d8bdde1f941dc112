"""The engines that run TFF's computations.

Modules are imported on first use: a process that only sums packs imports some of them
without TFF.
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
    "unused_onednn": "runtime",
}

__all__ = [*_PLACES, "ENGINES", "EngineError", "check_installed"]

ENGINES = {
    "local": "tff_pmc.runtime.local.LocalEngine",
    "worker": "tff_pmc.runtime.worker.WorkerEngine",
    "cluster": "tff_pmc.cluster.engine.ClusterEngine",
}
"""The class of each engine: in this process, in TFF's worker, on workers of Dask."""


class EngineError(RuntimeError):
    """Raised if an engine cannot start, or ends while a computation needs it."""


def check_installed() -> None:
    """Checks that the installed NumPy and protobuf meet the requirements of TF and TFF.

    Another package may have replaced them; then importing TFF would fail with a
    traceback.

    Raises:
        EngineError: one of them does not; the message names the release and the cure.
    """
    for package in ("tensorflow", "tensorflow-cpu", "tensorflow-federated"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            for requirement in map(Requirement, metadata.requires(package) or ()):
                name = requirement.name
                if name not in ("numpy", "protobuf"):
                    continue
                installed = metadata.version(name)
                if installed not in requirement.specifier:
                    raise EngineError(
                        f"{name} {installed} is installed, which {package} does not "
                        "support: `make venv`, or pip install --no-deps -r "
                        "requirements.txt, restores the pinned release; "
                        'docs/install.md, "More packages", says how to add packages '
                        "without replacing it"
                    )


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_installed()
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
