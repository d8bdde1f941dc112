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
from tff_pmc.runtime import lost_round_warnings

# The message of `check_not_negative` in TensorFlow's form: each part is in brackets.
_NEGATIVE = re.compile(r"the criterion [^\]\n]*:(\] \[[^\]\n]*)+\]")
# The message of `check_room`, in the same form.
_TOO_SMALL = re.compile(r"\w+=\d+ is too small: [^\]\n]*(\] \[\d+)\]")
# The message of TensorFlow's sparse cross entropy.
_LABEL = re.compile(r"label value of (-?\d+) which is outside .*?\[0, (\d+)\)")
_TFF = "tensorflow_federated"
_MAX_ELEMENTS = 100_000  # A dataset may be infinite.
_PROGRAMS = "tensorflow_federated.python.learning.programs"


class EngineContext(tff.program.FederatedContext):
    """Returns values to callers of a computation, and awaitables to TFF's programs.

    `tff.learning.programs.train_model` awaits its calls, so that it saves states and
    evaluates models while the next round is trained. All other callers need the values
    at once, also in a coroutine, such as each cell of a notebook.
    """

    def __init__(self, **recorded: str) -> None:
        """Creates the context; `engine_versions` reports the items of `recorded`."""
        self.recorded = recorded
        self._program = tff.program.NativeFederatedContext(_ThreadContext(self))

    def invoke(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp`; for a program of TFF it returns an awaitable."""
        called_by_program = _is_called_by_program()
        return (self._program.invoke if called_by_program else self.call)(comp, arg)

    def call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp` and waits for its value.

        Logs a warning if a round left the model unchanged, once for each reason.

        Raises:
            CriterionError: a criterion is negative; the message names the client.
            ValueError: a label is not a class of the model (the message names the
                client), or there are more clients than an argument of the
                computation's builder allows (the message names the argument).
        """
        try:
            result = self._call(comp, arg)
            lost_round_warnings.warn_if_lost(comp, getattr(result, "metrics", None))
            return result
        except Exception as error:
            if match := _NEGATIVE.search(str(error)):
                words = match[0].replace("] [", " ").rstrip("]")
                raise CriterionError(words) from error
            if match := _TOO_SMALL.search(str(error)):
                raise ValueError(match[0].replace("] [", " ").rstrip("]")) from error
            if match := _LABEL.search(str(error)):
                label, classes = map(int, match.groups())
                raise ValueError(
                    f"{_client_with_label(label, arg)} has label {label}, but there "
                    f"are {classes} classes"
                ) from error
            raise

    @abc.abstractmethod
    def _call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp` and waits for its value."""


def _client_with_label(label: int, arg: Any) -> str:
    """Describes the client whose data has this label, by its number or position."""
    parts = tf.nest.flatten(tff.structure.flatten(arg))
    datasets = (part for part in parts if isinstance(part, tf.data.Dataset))
    for index, dataset in enumerate(datasets):
        for element in dataset.take(_MAX_ELEMENTS):
            is_packed = isinstance(element, Mapping)
            labels = element.get("y", ()) if is_packed else element[-1]
            if any(tf.reduce_any(tf.equal(y, label)) for y in tf.nest.flatten(labels)):
                if is_packed and "client" in element:
                    return f"client {element['client']}"
                return f"the data set at index {index}"
    return "a client"


class _ThreadContext(tff.framework.AsyncContext):
    def __init__(self, context: EngineContext) -> None:
        self._context = context

    async def invoke(self, comp: tff.Computation, arg: Any) -> Any:
        if asyncio.iscoroutine(arg):
            arg = await arg
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._context.call, comp, arg)


def _is_called_by_program() -> bool:
    """Returns whether the nearest caller outside TFF's contexts is its program."""
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(_PROGRAMS) or not module.startswith(_TFF):
            return module.startswith(_PROGRAMS)
        frame = frame.f_back
    return False
