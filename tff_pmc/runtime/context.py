"""The contexts that an engine installs in TFF, for plain code and for programs."""

from __future__ import annotations

import abc
import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.criteria import CriterionError
from tff_pmc.runtime import lost_rounds

# The message of `check_not_negative` as TensorFlow shows it, each part in brackets.
_NEGATIVE = re.compile(r"the criterion [^\]\n]*:(\] \[[^\]\n]*)+\]")
# That of `check_room`.
_TOO_SMALL = re.compile(r"\w+=\d+ is too small: [^\]\n]*(\] \[\d+)\]")
# The message of TensorFlow's sparse cross entropy.
_LABEL = re.compile(r"label value of (-?\d+) which is outside .*?\[0, (\d+)\)")
_TFF = "tensorflow_federated"
_MOST_ELEMENTS = 100_000  # A data set may have no end.
_PROGRAMS = "tensorflow_federated.python.learning.programs"


class EngineContext(tff.program.FederatedContext):
    """Gives values to callers of a computation, and references to TFF's programs.

    `tff.learning.programs.train_model` awaits what it calls, so that states are saved
    and models evaluated while the next round is trained. All other callers want the
    values at once, also in a coroutine, as each cell of a notebook is.
    """

    def __init__(self, **recorded: str) -> None:
        """Takes what `engine_versions` reports of the engine."""
        self.recorded = recorded
        self._program = tff.program.NativeFederatedContext(_InThreads(self))

    def invoke(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp`, here or for a program of TFF."""
        called_by_program = _called_by_program()
        return (self._program.invoke if called_by_program else self.call)(comp, arg)

    def call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp` and waits.

        A criterion that is negative is a `CriterionError`, and a label that the model
        has no class for a `ValueError`; both name the client. More clients than an
        argument of the computation's builder allows are a `ValueError` that names it. A
        round that left the model as it was is warned of, once for each reason.
        """
        try:
            result = self._call(comp, arg)
            lost_rounds.warn(comp, getattr(result, "metrics", None))
            return result
        except Exception as error:
            if found := _NEGATIVE.search(str(error)):
                words = found[0].replace("] [", " ").rstrip("]")
                raise CriterionError(words) from error
            if found := _TOO_SMALL.search(str(error)):
                raise ValueError(found[0].replace("] [", " ").rstrip("]")) from error
            if found := _LABEL.search(str(error)):
                label, classes = map(int, found.groups())
                raise ValueError(
                    f"{_who_has(label, arg)} has label {label}, but there are "
                    f"{classes} classes"
                ) from error
            raise

    @abc.abstractmethod
    def _call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp` and waits for its value."""


def _who_has(label: int, arg: Any) -> str:
    """Names the client of a call's argument by the label, its number or its place."""
    parts = tf.nest.flatten(tff.structure.flatten(arg))
    clients = (part for part in parts if isinstance(part, tf.data.Dataset))
    for place, dataset in enumerate(clients):
        for element in dataset.take(_MOST_ELEMENTS):
            packed = isinstance(element, Mapping)
            labels = element.get("y", ()) if packed else element[-1]
            if any(tf.reduce_any(tf.equal(y, label)) for y in tf.nest.flatten(labels)):
                if packed and "client" in element:
                    return f"client {element['client']}"
                return f"the data set at place {place}"
    return "a client"


class _InThreads(tff.framework.AsyncContext):
    def __init__(self, context: EngineContext) -> None:
        self._context = context

    async def invoke(self, comp: tff.Computation, arg: Any) -> Any:
        if asyncio.iscoroutine(arg):
            arg = await arg
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._context.call, comp, arg)


def _called_by_program() -> bool:
    """Returns whether the nearest caller outside TFF's contexts is its program."""
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_PROGRAMS) or not module.startswith(_TFF):
            return module.startswith(_PROGRAMS)
        frame = frame.f_back
    return False
