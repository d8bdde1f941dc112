"""The tasks of a cluster's workers on packs.

The scheduler also imports this module: TensorFlow is imported by the functions that
need it, and TFF by none.
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

from leaf_data.errors import DataError, one_line

MAX_CACHED_COMPUTATIONS = 8
"""The computations whose graphs stay imported in a worker."""

_PR_SET_PDEATHSIG = 1
_importing = threading.Lock()


class WorkerEnvironment(NamedTuple):
    """What a worker must have for the results of the driver."""

    threads: int
    tensorflow: str
    tff_pmc: str


class EnvironmentMismatchError(RuntimeError):
    """A worker that cannot give the results of the driver."""


def dask_setup(server: Any) -> None:
    """Prepares a scheduler or worker for which this module is a preload.

    The HTTP port that Dask opens in any case, without TLS, is closed. A worker in a
    process of this kind ends with its parent, even one that is stopped. It imports
    TensorFlow before it comes to the scheduler, for which it would else be silent.
    """
    import distributed

    server.http_server.stop()
    if isinstance(server, distributed.Worker):
        if multiprocessing.parent_process():
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _import_tensorflow()


def to_bytes(value: Any) -> bytes:
    """Serializes a value for Dask; a scheduler without TensorFlow does not read it."""
    from distributed.protocol import serialize_bytes

    content: bytes = serialize_bytes(value)
    return content


def from_bytes(content: bytes) -> Any:
    """Deserializes the value of these bytes."""
    from distributed.protocol import deserialize_bytes

    return deserialize_bytes(content)


def check_versions(terms: WorkerEnvironment) -> None:
    """Checks versions and sets the threads, before TensorFlow's first use."""
    tf = _import_tensorflow()
    here = WorkerEnvironment(terms.threads, f"tensorflow {tf.__version__}", _version())
    if here != terms:
        raise EnvironmentMismatchError(
            f"it has {' and '.join(here[1:])}, and the driver "
            f"{' and '.join(terms[1:])}: start it anew with the driver's"
        )
    threads = tf.config.threading
    if threads.get_intra_op_parallelism_threads() == terms.threads:
        return
    try:
        threads.set_intra_op_parallelism_threads(terms.threads)
    except RuntimeError as error:
        raise EnvironmentMismatchError(
            "it has begun TensorFlow with another number of threads than "
            f"{terms.threads}: start it anew, or give --cluster_threads"
        ) from error


def check_store(path: str, digest: str) -> None:
    """Opens a store, which stays open, or raises a `EnvironmentMismatchError`."""
    from tff_pmc.cluster import pack_encoding

    try:
        pack_encoding.open_cached_store(path, digest)
    except DataError as error:
        raise EnvironmentMismatchError(
            f"it needs the driver's store at the same path: {one_line(error)}"
        ) from error


def local_environment(threads: Optional[int]) -> WorkerEnvironment:
    """Returns this process's terms, with so many threads or, by default, all it has."""
    import tensorflow as tf

    own = tf.config.threading.get_intra_op_parallelism_threads()
    found = threads or own or len(os.sched_getaffinity(0))
    return WorkerEnvironment(found, f"tensorflow {tf.__version__}", _version())


def engine_record(spread: str, threads: int) -> dict[str, str]:
    """Returns what `run.json` reports of a run on a cluster."""
    return {"engine": "cluster", "spread": spread, "threads": str(threads)}


def _import_tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow

    return tensorflow


@functools.lru_cache(1)
def _version() -> str:
    """Returns the version of the package and of the code this process started with.

    A worker that waits for the next driver does not have what was edited since.
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
    """Returns the value, which then is on this worker, too."""
    return value


def sum_pack(
    terms: WorkerEnvironment, graphs: bytes, pack: Any, sent: Any, place: int
) -> list[Any]:
    """Computes the sum of one encoded pack as arrays; see `PackSums.sum_pack`."""
    check_versions(terms)
    import tensorflow as tf

    from tff_pmc.cluster import pack_encoding

    parts = from_bytes(pack) if isinstance(pack, bytes) else pack  # Of a store.
    tensors = list(map(pack_encoding.decode, parts))
    sent = [tf.constant(a) for a in sent]
    found = _import_sums(graphs).sum_pack(tensors, sent, place)
    return [tensor.numpy() for tensor in found]


def merge(
    terms: WorkerEnvironment, graphs: bytes, first: Any, second: Any
) -> list[Any]:
    """Merges two sums, arrays; see `PackSums.merge`."""
    check_versions(terms)
    import tensorflow as tf

    both = ([tf.constant(a) for a in part] for part in (first, second))
    return [tensor.numpy() for tensor in _import_sums(graphs).merge(*both)]


def _import_sums(graphs: bytes) -> Any:
    """Imports the sums of a computation's `PackGraphs` when they are first needed."""
    with _importing:  # A worker of several threads would import them in each.
        return _cached_sums(graphs)


@functools.lru_cache(MAX_CACHED_COMPUTATIONS)
def _cached_sums(graphs: bytes) -> Any:
    from tff_pmc.runtime.pack_sums import PackSums

    return PackSums(from_bytes(graphs), foreign=True)
