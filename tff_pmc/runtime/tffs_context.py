"""TFF's own context, which runs what is called where no `Runtime` is in force.

Its worker is a process that runs the graph of whoever reaches its port.
"""

from __future__ import annotations

import atexit
from typing import Any, Optional

import tensorflow_federated as tff
from absl import logging


class _Told(tff.framework.SyncContext):
    """Says once what TFF's own context opens, and leaves to it what needs an engine."""

    def __init__(self, own: tff.framework.SyncContext) -> None:
        self._own = own
        self._here: Optional[tff.framework.SyncContext] = None

    def invoke(self, comp: Any, arg: Any) -> Any:
        """Invokes `comp` as TFF does, but TensorFlow alone in this process."""
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
        return self._own.invoke(comp, arg)


class _NoContext(tff.framework.SyncContext):
    """Takes the place of TFF's own context when the process ends."""

    def invoke(self, comp: Any, arg: Any) -> Any:
        raise RuntimeError("the process ends: no computation runs any more")


def tell_when_used() -> None:
    """Lets TFF's own context, if it is in force now, say that it is used."""
    current = tff.framework.get_context_stack().current
    if type(current).__name__ == "SyncExecutionContext":  # Not exported.
        tff.framework.set_default_context(_Told(current))


@atexit.register
def _let_go() -> None:
    """Frees TFF's own context while the modules that its finalizer needs are there.

    Later its worker would stay, or a program that went well end in a traceback.
    """
    tff.framework.set_default_context(_NoContext())
