"""What goes wrong with a cluster while it is needed."""

from __future__ import annotations

import asyncio
import concurrent.futures

TIMEOUTS = (TimeoutError, asyncio.TimeoutError)
"""What Dask raises when time is over; one class only from Python 3.11 on."""

LOSSES = (
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    KeyError,
    OSError,
    *TIMEOUTS,
)
"""What Dask raises when data or a connection went with a worker."""


class ClusterError(RuntimeError):
    """The cluster, or every worker that tried, ended while a computation needed it."""
