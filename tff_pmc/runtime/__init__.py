"""What runs TFF's computations."""

from tff_pmc.runtime.runtime import Runtime, installed_engine
from tff_pmc.runtime.worker import WorkerDiedError, WorkerEngine, WorkerStartError

__all__ = [
    "Runtime",
    "WorkerDiedError",
    "WorkerEngine",
    "WorkerStartError",
    "installed_engine",
]
