from tff_pmc.runtime.runtime import (
    Runtime,
    engine_versions,
    unused_gpu,
    unused_onednn,
)
from tff_pmc.runtime.values import WrongDataError
from tff_pmc.runtime.worker import WorkerDiedError, WorkerEngine, WorkerStartError

__all__ = [
    "Runtime",
    "WorkerDiedError",
    "WorkerEngine",
    "WorkerStartError",
    "WrongDataError",
    "engine_versions",
    "unused_gpu",
    "unused_onednn",
    "ENGINES",
    "EngineError",
    "check_installed",
]

ENGINES: dict[str, str]

class EngineError(RuntimeError): ...

def check_installed() -> None: ...
