"""The TFF worker process and the execution context that calls it.

TFF's native context starts a `worker_binary` that listens on every interface and
survives a crash of its parent; if it dies, the call that waits for it hangs.
`WorkerEngine` starts it differently:

- the worker is private: it runs in a separate network namespace, behind a unix socket
  in a folder that only the user can open (`worker_host.py`); if the machine forbids
  namespaces, a warning says that a port is open;
- worker, socket and folder end with the parent, however it ends;
- if the worker dies, the running call raises a `WorkerDiedError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent import futures
from concurrent.futures import Future
from typing import Any

import grpc
import tensorflow_federated as tff
from absl import logging

from tff_pmc.runtime import EngineError, values, worker_host
from tff_pmc.runtime.context import EngineContext

_MESSAGE_LIMIT = 2 * 1000 * 1000 * 1000  # TFF's limit; gRPC cannot send 2 GiB.
_CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", _MESSAGE_LIMIT),
    ("grpc.max_send_message_length", _MESSAGE_LIMIT),
]
# With glibc's per-thread arenas the worker's memory grows from round to round. One
# arena, which keeps the freed memory of models of some 25 MB, keeps it constant and
# saves the next model the page faults of new memory (docs/performance.md).
_WORKER_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**25),  # glibc's maximum.
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
    "TF_CPP_MIN_LOG_LEVEL": "1",
}


class WorkerContext(EngineContext):
    """Runs computations on a worker, and detects its death."""

    def __init__(self, target: str, death: Future[str]) -> None:
        super().__init__(engine="worker")
        self._death = death
        channel = grpc.insecure_channel(target, _CHANNEL_OPTIONS)
        stub = tff.framework.RemoteExecutorGrpcStub(channel)

        def executor(cardinalities):
            executor = tff.framework.RemoteExecutor(stub)
            # The worker needs an entry for clients even if there are none.
            executor.set_cardinalities({tff.CLIENTS: 0, **cardinalities})
            return executor

        self._inner = tff.framework.AsyncExecutionContext(
            executor_fn=tff.framework.ResourceManagingExecutorFactory(executor),
            compiler_fn=tff.backends.native.desugar_and_transform_to_native,
            transform_args=tff.tensorflow.transform_args,
            transform_result=tff.tensorflow.transform_result,
        )
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def stop(self) -> None:
        """Ends the thread that runs the calls."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _call(self, comp, arg):
        """Invokes `comp`; TFF itself would retry forever on a dead worker."""
        values.check_argument(comp, arg)
        call = asyncio.run_coroutine_threadsafe(
            self._inner.invoke(comp, arg), self._loop
        )
        try:
            futures.wait([call, self._death], return_when=futures.FIRST_COMPLETED)
            if self._death.done():
                raise WorkerDiedError(self._death.result())
            return call.result()
        finally:
            call.cancel()


class WorkerDiedError(EngineError):
    """Raised if the worker process ends while a computation needs it."""


class WorkerStartError(EngineError):
    """Raised if the worker process cannot be started."""


class WorkerEngine:
    """One worker process and the TFF context that runs computations on it.

    Attributes:
        private: whether other users of the machine cannot reach the worker.
        context: the context to install in TFF.
    """

    def __init__(self, *, private: bool = True) -> None:
        """Starts the worker, or raises a `WorkerStartError` that quotes its log."""
        # Not in TMPDIR: the path of a unix socket has at most 107 characters.
        self._folder = tempfile.mkdtemp(prefix="tff_worker-", dir="/tmp")
        self._death: Future[str] = (
            Future()
        )  # Its result describes how the worker ended.
        self.context: Any = None
        self._host = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                worker_host.__file__,
                self._folder,
                str(int(private)),
                _worker_binary(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C at the terminal must reach only the parent.
            start_new_session=True,
            env={**os.environ, **_WORKER_ENVIRONMENT},
        )
        word, _, exposure = self._host.stdout.readline().strip().partition(" ")
        if word != "ready":
            message = f"the TFF worker did not start: {self._last_words()}"
            self.close()
            raise WorkerStartError(message)
        self.private = not exposure
        if exposure:
            logging.warning(
                "The TFF worker listens on a port of this machine, open to its other "
                "users, because there is no private network namespace (%s).",
                exposure,
            )
        threading.Thread(target=self._wait_for_death, daemon=True).start()
        target = f"unix:{self._folder}/worker.sock"
        self.context = WorkerContext(target, self._death)

    def _wait_for_death(self) -> None:
        _, _, code = self._host.stdout.readline().strip().partition(" ")
        how = f"ended with exit code {code}" if code else "ended"
        if code.startswith("-"):
            how = f"was ended by signal {code[1:]}"
        with contextlib.suppress(futures.InvalidStateError):  # It was closed.
            self._death.set_result(
                f"the TFF worker {how} (out of memory?); {self._last_words()}"
            )

    def _last_words(self) -> str:
        log = pathlib.Path(self._folder, "worker.log")
        lines = log.read_text(errors="replace").split("\n") if log.exists() else []
        last = next(filter(str.strip, reversed(lines)), "")
        return f"its log ends: {last.strip()[:500]}" if last else "its log is empty"

    def close(self) -> None:
        """Ends the worker; safe to call twice."""
        with contextlib.suppress(futures.InvalidStateError):  # It has died.
            self._death.set_result("the TFF worker was closed")
        if self.context is not None:
            self.context.stop()
        self._host.stdin.close()
        try:
            self._host.wait(5)
        except subprocess.TimeoutExpired:
            self._host.kill()
            self._host.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _worker_binary() -> str:
    return os.path.join(os.path.dirname(tff.__file__), "data", "worker_binary")
