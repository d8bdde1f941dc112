"""The TFF context that runs computations on a worker."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Callable

import grpc
import tensorflow_federated as tff

from tff_pmc.runtime import given_data

_MESSAGE_LIMIT = 2 * 1000 * 1000 * 1000  # TFF's own; gRPC cannot send 2 GiB.
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", _MESSAGE_LIMIT),
    ("grpc.max_send_message_length", _MESSAGE_LIMIT),
]
_POLL_SECONDS = 0.25


class WorkerContext(tff.framework.SyncContext):
    """Runs computations on a worker, and notices when it is gone."""

    def __init__(self, target: str, raise_if_dead: Callable[[], None]) -> None:
        """Takes the worker's gRPC target, and what raises once the worker has ended."""
        self._raise_if_dead = raise_if_dead
        channel = grpc.insecure_channel(target, _CHANNEL_OPTIONS)
        stub = tff.framework.RemoteExecutorGrpcStub(channel)

        def executor(cardinalities):
            executor = tff.framework.RemoteExecutor(stub)
            # The worker wants an entry for clients even when there is none.
            executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
            return executor

        self.inner = tff.framework.AsyncExecutionContext(
            executor_fn=tff.framework.ResourceManagingExecutorFactory(executor),
            compiler_fn=tff.backends.native.desugar_and_transform_to_native,
            transform_args=tff.tensorflow.transform_args,
            transform_result=tff.tensorflow.transform_result,
        )
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def stop(self) -> None:
        """Ends the thread that runs the calls, and what an interrupt left of them."""
        rest = asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop)
        concurrent.futures.wait([rest], _POLL_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)

    def invoke(self, comp, arg):
        """Invokes `comp`; TFF alone would retry for ever on a dead worker.

        Raises:
            WrongDataError: the argument is of another kind than the parameter.
            WorkerDiedError: the worker has ended.
        """
        given_data.check(comp, arg)
        call = asyncio.run_coroutine_threadsafe(
            self.inner.invoke(comp, arg), self._loop
        )
        try:
            while True:
                self._raise_if_dead()
                concurrent.futures.wait([call], _POLL_SECONDS)
                if call.done():
                    return call.result()
        finally:
            call.cancel()


async def _cancel_others() -> None:
    """Ends the loop's other tasks; a loop that ends before them complains of each."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)
