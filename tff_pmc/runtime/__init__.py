"""The private worker process that runs TFF's computations."""

from tff_pmc.runtime.worker import Runtime, WorkerDiedError, WorkerStartError

__all__ = ["Runtime", "WorkerDiedError", "WorkerStartError"]
