"""What runs TFF's computations: an engine, and the TFF context that leads to it."""

from __future__ import annotations

from typing import Any, Optional, Union

import tensorflow_federated as tff

from tff_pmc.runtime.local import LocalContext, LocalEngine
from tff_pmc.runtime.worker import WorkerEngine
from tff_pmc.runtime.worker_context import WorkerContext
from tff_pmc.settings.engine_names import ENGINES

_KINDS = dict(zip(ENGINES, (LocalEngine, WorkerEngine)))
_CONTEXTS = dict(zip((LocalContext, WorkerContext), ENGINES))


class Runtime:
    """Runs every TFF computation that is called while it is installed.

    Attributes:
        engine: the engine, a `LocalEngine` or a `WorkerEngine`.

    Example:
        >>> with tff_pmc.Runtime():
        ...     state = process.initialize()  # any TFF computation

    In a notebook, `tff_pmc.Runtime().install()` does the same until the kernel ends.
    """

    def __init__(self, engine: str = "local", *, private: bool = True) -> None:
        """Starts the engine.

        Args:
            engine: `local` runs computations in this process; `worker` in TFF's own
                worker, a process of its own, which takes a second to start.
            private: put a worker into a network namespace of its own; where that is
                forbidden a port is used and a warning logged.

        Raises:
            ValueError: there is no such engine.
            WorkerStartError: the worker did not come up; its log is quoted.
        """
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}: {engine}")
        self.engine: Union[LocalEngine, WorkerEngine] = _KINDS[engine](private=private)
        self._previous_context: Any = None

    @property
    def context(self) -> tff.framework.SyncContext:
        """The context that `install` makes the default."""
        return self.engine.context

    @property
    def async_context(self) -> tff.framework.AsyncContext:
        """The same engine for `tff.program.NativeFederatedContext`."""
        return self.engine.async_context

    def install(self) -> Runtime:
        """Makes this the context of every TFF computation called from now on."""
        current = tff.framework.get_context_stack().current
        if current is not self.context:
            self._previous_context = current
            tff.framework.set_default_context(self.context)
        return self

    def close(self) -> None:
        """Ends the engine; safe to call twice. The previous context returns."""
        if tff.framework.get_context_stack().current is self.context:
            tff.framework.set_default_context(self._previous_context)
        self.engine.close()

    def __enter__(self) -> Runtime:
        return self.install()

    def __exit__(self, *unused: object) -> None:
        self.close()


def installed_engine() -> Optional[str]:
    """The name of the engine that runs computations now; None for TFF's own context."""
    return _CONTEXTS.get(type(tff.framework.get_context_stack().current))
