"""TFF's default context, which runs computations that are called without a `Runtime`.

Its worker is a process that runs any graph that is sent to its port.
"""

from __future__ import annotations

import atexit
from typing import Any, Optional

import tensorflow_federated as tff
from absl import logging


class _WarningContext(tff.framework.SyncContext):
    """Wraps TFF's default context to warn once of the port that it opens."""

    def __init__(self, inner: tff.framework.SyncContext) -> None:
        self._inner: Optional[tff.framework.SyncContext] = inner
        self._here: Optional[tff.framework.SyncContext] = None
        atexit.register(self._let_go)

    def invoke(self, comp: Any, arg: Any) -> Any:
        """Invokes `comp` as TFF does, but runs TensorFlow alone in this process."""
        from tff_pmc.runtime import local

        if local.is_tensorflow_alone(comp):
            self._here = self._here or local.LocalEngine().context
            return self._here.call(comp, arg)
        logging.log_first_n(
            logging.WARNING,
            "called outside of `with tff_pmc.Runtime():`: TFF's worker runs it, which "
            "listens on a port of every interface until this process ends",
            1,
        )
        return self._inner.invoke(comp, arg)

    def _let_go(self) -> None:
        """Frees TFF's context before the modules that its finalizer needs are gone."""
        self._inner = None


def warn_when_used() -> None:
    """Makes TFF's default context, if it is current, warn on its first use."""
    current = tff.framework.get_context_stack().current
    if type(current).__name__ == "SyncExecutionContext":  # Not exported.
        tff.framework.set_default_context(_WarningContext(current))
