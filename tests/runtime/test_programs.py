"""What a context gives to whom: references to TFF's programs, values to the others."""

import asyncio
import collections
import threading
import time

import pytest

from tff_pmc._lazy import tff

PROGRAMS = "tensorflow_federated.python.learning.programs"


@pytest.mark.parametrize(
    ("module", "is_program"),
    [
        (f"{PROGRAMS}.training_program_logic", True),
        ("__main__", False),
        # What a program calls back, a data source that measures for example.
        ("my_source", False),
    ],
)
def test_the_caller_decides_on_values_or_references(runtime, add, module, is_program):
    """All callers run in a coroutine, as a cell of a notebook does."""
    calls = "async def called(add): return add([1, 2, 3])"
    names = {"__name__": module}
    exec(calls, names)
    outer = {"__name__": f"{PROGRAMS}.other", "inner": names["called"]}
    exec("async def called(add): return await inner(add)", outer)

    async def program():
        result = await outer["called"](add)
        references = isinstance(result, tff.program.MaterializableValueReference)
        return references, await tff.program.materialize_value(result)

    assert asyncio.run(program()) == (is_program, 6)


def test_the_event_loop_continues_while_a_program_waits(add):
    """So states are saved while the next round is trained."""
    from tff_pmc.runtime.context import EngineContext

    saved = threading.Event()

    class Waiting(EngineContext):
        def _call(self, comp, arg):
            return saved.wait(20)

    names = {"__name__": f"{PROGRAMS}.training_program_logic"}
    exec("async def called(add): return add([1, 2])", names)

    async def program():
        result = await names["called"](add)
        asyncio.get_running_loop().call_soon(saved.set)
        return await tff.program.materialize_value(result)

    with tff.framework.get_context_stack().install(Waiting()):
        assert asyncio.run(program()) is True


def test_two_concurrent_calls_compile_once(monkeypatch, add):
    """Training and evaluation of a program call concurrently."""
    from tff_pmc.runtime.local import LocalEngine

    engine, compiled = LocalEngine(), []

    def compile_slowly(computation):
        compiled.append(computation)
        time.sleep(0.3)
        return lambda argument: sum(argument)

    monkeypatch.setattr(engine, "_compile", compile_slowly)
    monkeypatch.setattr(engine, "_cache", collections.OrderedDict())
    results = []
    calls = [
        threading.Thread(target=lambda: results.append(engine.run(add, [1, 2])))
        for _ in "12"
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert results == [3, 3] and len(compiled) == 1
