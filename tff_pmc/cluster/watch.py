"""Notices who is there in a cluster and does not answer.

What is stopped, or cut off, keeps its connections: calls wait for it for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Any, Optional

from absl import logging

TIMEOUTS = (TimeoutError, asyncio.TimeoutError)
"""What Dask raises when time is over; one class only from Python 3.11 on."""

_LOOK_SECONDS = 5
_RESTART_SECONDS = 10  # A nanny takes 4 before it kills what does not end.
_CLOSE_SECONDS = 5


class Watch:
    """Looks after a client's scheduler and workers, in a thread of its own.

    A worker gives the scheduler a sign of life every second or so, also while it
    computes, so that the length of its work does not matter. Who is silent for too long
    loses its connections: it is from then on like one that died.
    """

    def __init__(self, client: Any, seconds: float) -> None:
        """Begins to look; who does not answer for so many seconds is lost."""
        self.lost = ""  # What is wrong with the scheduler.
        self._client, self._seconds = client, seconds
        self._pause = min(_LOOK_SECONDS, seconds / 4)
        self._closed = threading.Event()
        threading.Thread(target=self._look, name="cluster_watch", daemon=True).start()

    def close(self) -> None:
        """Ends."""
        self._closed.set()

    def _look(self) -> None:
        signs: dict[str, Any] = {}
        silent: dict[str, float] = {}
        scheduler, before = 0.0, time.monotonic()
        while not self._closed.wait(self._pause):
            found = self._signs()
            # More has passed where this process was stopped itself, and heard nobody.
            passed = min(time.monotonic() - before, 2 * self._pause)
            before = time.monotonic()
            if found is None:
                scheduler += passed
                if scheduler > self._seconds:
                    return self._give_up()
                continue
            scheduler = 0.0
            silent = {
                worker: silent.get(worker, 0.0) + passed
                if signs.get(worker) == sign
                else 0.0
                for worker, sign in found.items()
            }
            signs = found
            for worker in [
                w for w, seconds in silent.items() if seconds > self._seconds
            ]:
                self._leave_out(worker)
                del silent[worker]

    def _signs(self) -> Optional[dict[str, Any]]:
        """The last sign of each worker; None if the scheduler does not answer."""
        client = self._client
        try:
            found = client.sync(client.scheduler.identity, callback_timeout=self._pause)
        except TIMEOUTS:
            return None
        except Exception:  # The connection is closed, which the client sees, too.
            return {}
        return {worker: info["last_seen"] for worker, info in found["workers"].items()}

    def _leave_out(self, worker: str) -> None:
        logging.warning(
            "The worker %s did not answer for %g seconds (--cluster_timeout): it is "
            "left out, and its work goes elsewhere.",
            worker,
            self._seconds,
        )
        client = self._client
        with contextlib.suppress(Exception):
            # Its nanny kills it and starts another. If that does not answer, either,
            # the scheduler forgets both.
            client.sync(
                client.scheduler.restart_workers,
                callback_timeout=2 * _RESTART_SECONDS,
                workers=[worker],
                timeout=_RESTART_SECONDS,
                wait_for_workers=False,
                on_error="return",
                stimulus_id=f"silent-{time.time()}",
            )
        client.loop.add_callback(self._abort, worker)

    def _give_up(self) -> None:
        """Closes the client: where it reconnects it would wait for ever for a greeting.

        A system takes connections for a process that is stopped.
        """
        self.lost = f"the scheduler did not answer for {self._seconds:g} seconds"
        client = self._client
        with contextlib.suppress(Exception):
            client.loop.add_callback(self._abort, client.scheduler.addr)
            client.loop.add_callback(client.scheduler_comm.abort)
        with contextlib.suppress(Exception):
            client.sync(client._close, fast=True, callback_timeout=_CLOSE_SECONDS)

    def _abort(self, address: str) -> None:
        """Closes what was opened to an address, so that nothing waits for an answer."""
        pool = self._client.rpc
        for comms in (pool.available, pool.occupied):
            for comm in list(comms.get(address, ())):
                comm.abort()
