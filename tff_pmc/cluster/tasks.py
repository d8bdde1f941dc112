"""The tasks of a cluster's workers on packs.

The scheduler imports this module, too: functions that need TensorFlow import it, and
none imports TFF.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import multiprocessing
import os
import pathlib
import signal
import threading
from typing import Any, NamedTuple, Optional

from leaf_data.errors import DataError, error_summary

MAX_CACHED_COMPUTATIONS = 8
"""The number of computations whose graphs stay imported in a worker."""

_PR_SET_PDEATHSIG = 1
_importing = threading.Lock()


class WorkerEnvironment(NamedTuple):
    """The versions and threads with which a worker reproduces the driver's results."""

    threads: int
    tensorflow: str
    tff_pmc: str


class EnvironmentMismatchError(RuntimeError):
    """Raised if a worker cannot reproduce the results of the driver."""


def dask_setup(server: Any) -> None:
    """Prepares a scheduler or worker that preloads this module.

    Closes the HTTP port that Dask always opens without TLS. A worker that
    multiprocessing started ends with its parent, even if it is stopped. It imports
    TensorFlow before it connects, because it cannot answer the scheduler meanwhile.
    """
    import distributed

    server.http_server.stop()
    if isinstance(server, distributed.Worker):
        if multiprocessing.parent_process():
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _import_tensorflow()


def to_bytes(value: Any) -> bytes:
    """Serializes a value, so that a scheduler without TensorFlow need not read it."""
    from distributed.protocol import serialize_bytes

    content: bytes = serialize_bytes(value)
    return content


def from_bytes(content: bytes) -> Any:
    """Deserializes the value of these bytes."""
    from distributed.protocol import deserialize_bytes

    return deserialize_bytes(content)


def check_versions(environment: WorkerEnvironment) -> None:
    """Checks versions and sets the threads, before the first use of TensorFlow.

    Raises:
        EnvironmentMismatchError: they differ from the driver's, or TensorFlow has
            started with another number of threads.
    """
    tf = _import_tensorflow()
    local = WorkerEnvironment(
        environment.threads, f"tensorflow {tf.__version__}", _version()
    )
    if local != environment:
        raise EnvironmentMismatchError(
            f"it runs {' and '.join(local[1:])}, but the driver runs "
            f"{' and '.join(environment[1:])}: restart it with the driver's versions"
        )
    threads = tf.config.threading
    if threads.get_intra_op_parallelism_threads() == environment.threads:
        return
    try:
        threads.set_intra_op_parallelism_threads(environment.threads)
    except RuntimeError as error:
        raise EnvironmentMismatchError(
            "it started TensorFlow with another number of threads than "
            f"{environment.threads}: restart it, or set --cluster_threads"
        ) from error


def check_store(path: str, digest: str) -> None:
    """Opens a store, which stays open, or raises an `EnvironmentMismatchError`."""
    from tff_pmc.cluster import pack_encoding

    try:
        pack_encoding.open_cached_store(path, digest)
    except DataError as error:
        raise EnvironmentMismatchError(
            f"it needs the driver's store at the same path: {error_summary(error)}"
        ) from error


def local_environment(threads: Optional[int]) -> WorkerEnvironment:
    """Returns this process's environment; `threads` None is all that it uses."""
    import tensorflow as tf

    configured = tf.config.threading.get_intra_op_parallelism_threads()
    num_threads = threads or configured or len(os.sched_getaffinity(0))
    return WorkerEnvironment(num_threads, f"tensorflow {tf.__version__}", _version())


def engine_record(spread: str, threads: int) -> dict[str, str]:
    """Returns the entries of `run.json` for a run on a cluster."""
    return {"engine": "cluster", "spread": spread, "threads": str(threads)}


def _import_tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow

    return tensorflow


@functools.lru_cache(1)
def _version() -> str:
    """Returns the version of the package, and of the code that this process runs.

    A worker that waits for the next driver does not run code that was edited since.
    """
    import leaf_data
    import tff_pmc

    digest = hashlib.sha256()
    for package in (leaf_data, tff_pmc):
        folder = pathlib.Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return f"tff_pmc {tff_pmc.__version__} ({digest.hexdigest()[:12]})"


def keep(value: Any) -> Any:
    """Returns the value, of which this worker then has a copy."""
    return value


def sum_pack(
    environment: WorkerEnvironment, graphs: bytes, pack: Any, message: Any, index: int
) -> list[Any]:
    """Computes the sum of one encoded pack as arrays; see `PackSums.sum_pack`."""
    check_versions(environment)
    import tensorflow as tf

    from tff_pmc.cluster import pack_encoding

    parts = (
        from_bytes(pack) if isinstance(pack, bytes) else pack
    )  # Bytes refer to a store.
    tensors = list(map(pack_encoding.decode, parts))
    message = [tf.constant(a) for a in message]
    total = _import_sums(graphs).sum_pack(tensors, message, index)
    return [tensor.numpy() for tensor in total]


def merge(
    environment: WorkerEnvironment, graphs: bytes, first: Any, second: Any
) -> list[Any]:
    """Merges two sums, arrays; see `PackSums.merge`."""
    check_versions(environment)
    import tensorflow as tf

    operands = ([tf.constant(a) for a in part] for part in (first, second))
    return [tensor.numpy() for tensor in _import_sums(graphs).merge(*operands)]


def _import_sums(graphs: bytes) -> Any:
    """Returns the `PackSums` of a computation's serialized `PackGraphs`."""
    with _importing:  # A worker with several threads would import them several times.
        return _cached_sums(graphs)


@functools.lru_cache(MAX_CACHED_COMPUTATIONS)
def _cached_sums(graphs: bytes) -> Any:
    from tff_pmc.runtime.pack_sums import PackSums

    return PackSums(from_bytes(graphs), foreign=True)
