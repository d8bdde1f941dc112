from tff_pmc.runtime.runtime import Runtime, engine_versions, unused_gpu
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
    "ENGINES",
    "EngineError",
    "check_installed",
]

ENGINES: dict[str, str]

class EngineError(RuntimeError): ...

def check_installed() -> None: ...
