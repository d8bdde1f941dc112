"""What an engine installs in TFF: a context for plain code and for TFF's programs."""

from __future__ import annotations

import abc
import asyncio
import re
import sys
from typing import Any

import tensorflow_federated as tff

from tff_pmc.criteria import CriterionError

# As `check_not_negative` has it and TensorFlow shows it, each part in brackets.
_NEGATIVE = re.compile(r"the criterion [^\]\n]*:(\] \[[^\]\n]*)+\]")
_TFF = "tensorflow_federated"
_PROGRAMS = "tensorflow_federated.python.learning.programs"


class EngineContext(tff.program.FederatedContext):
    """Gives values to who calls a computation, and references to TFF's programs.

    `tff.learning.programs.train_model` awaits what it calls, so that states are saved
    and models evaluated while the next round is trained. All other callers want the
    values at once, also in a coroutine, as each cell of a notebook is.
    """

    def __init__(self) -> None:
        self._program = tff.program.NativeFederatedContext(_InThreads(self))

    def invoke(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp`, here or for a program of TFF."""
        called_by_program = _called_by_program()
        return (self._program.invoke if called_by_program else self.call)(comp, arg)

    def call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp` and waits; a `CriterionError` for one that is negative."""
        try:
            return self._call(comp, arg)
        except Exception as error:
            found = _NEGATIVE.search(str(error))
            if found is None:
                raise
            words = found[0].replace("] [", " ").rstrip("]")
            raise CriterionError(words) from error

    @abc.abstractmethod
    def _call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp` and waits for its value."""


class _InThreads(tff.framework.AsyncContext):
    def __init__(self, context: EngineContext) -> None:
        self._context = context

    async def invoke(self, comp: tff.Computation, arg: Any) -> Any:
        if asyncio.iscoroutine(arg):
            arg = await arg
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._context.call, comp, arg)


def _called_by_program() -> bool:
    """Whether the nearest caller, TFF's way to a context left out, is its program."""
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_PROGRAMS) or not module.startswith(_TFF):
            return module.startswith(_PROGRAMS)
        frame = frame.f_back
    return False
