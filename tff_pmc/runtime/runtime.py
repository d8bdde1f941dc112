"""`Runtime`: an engine for TFF's computations, and its TFF context."""

from __future__ import annotations

import os
import pkgutil
import shutil
from typing import Any, ClassVar, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.runtime import ENGINES, default_context

default_context.warn_when_used()


class Runtime:
    """Runs every TFF computation that is called while it is installed.

    Attributes:
        engine: the engine, a `LocalEngine`, `WorkerEngine` or `ClusterEngine`.
        context: the context that `install` makes the default.

    Examples:
        >>> with tff_pmc.Runtime():
        ...     state = process.initialize()  # any TFF computation

    In a notebook, `tff_pmc.Runtime().install()` does the same until the kernel ends. A
    cell that is run again closes the engine that it installed before.
    """

    # The runtime that `install` installed last: a cell that is run again has lost the
    # name of it and could not close it.
    _installed: ClassVar[Optional[Runtime]] = None

    def __init__(
        self,
        engine: str = "local",
        *,
        private: bool = True,
        cluster: Any = None,
    ) -> None:
        """Starts the engine.

        Args:
            engine: where computations run: `local`, the default, in this process;
                `worker` in TFF's worker, a separate process, which takes a second to
                start; `cluster` on the workers of Dask.
            private: whether a worker runs in a separate network namespace, the default;
                where that is forbidden, it opens a port and logs a warning.
            cluster: the address of the cluster, as in `--cluster`, or its
                `ClusterOptions`; by default a cluster on this machine.

        Raises:
            ValueError: the engine is unknown, or `cluster` is given for another one.
            SettingError: the cluster cannot be used; the message names the flag.
            WorkerStartError: the worker did not start; the message quotes its log.
        """
        if engine not in ENGINES:
            raise ValueError(
                f"engine must be one of {', '.join(ENGINES)}; got {engine!r}"
            )
        if cluster is not None and engine != "cluster":
            raise ValueError(f"cluster needs engine='cluster'; got engine={engine!r}")
        options = {} if cluster is None else {"cluster": cluster}
        self.engine = pkgutil.resolve_name(ENGINES[engine])(private=private, **options)
        self.context = self.engine.context
        self._previous_context: Any = tff.framework.get_context_stack().current

    def install(self) -> Runtime:
        """Makes this the context of every TFF computation called from now on.

        Closes the runtime that was installed before, if it is current.
        """
        previous = Runtime._installed
        if previous is not None and previous is not self and previous._is_current():
            previous.close()
        Runtime._installed = self
        return self.__enter__()

    def close(self) -> None:
        """Closes the engine and restores the previous context; safe to call twice."""
        if self._is_current():
            tff.framework.set_default_context(self._previous_context)
        if Runtime._installed is self:
            Runtime._installed = None
        self.engine.close()

    def __enter__(self) -> Runtime:
        if not self._is_current():
            self._previous_context = tff.framework.get_context_stack().current
            tff.framework.set_default_context(self.context)
        return self

    def _is_current(self) -> bool:
        return tff.framework.get_context_stack().current is self.context

    def __exit__(self, *unused: object) -> None:
        self.close()


def engine_versions() -> dict[str, Optional[str]]:
    """Returns the current engine, its threads, and what a cluster spreads.

    `run.json` records them. The engine is None for a context of TFF's own. It also
    records what changes a run's numbers: whether oneDNN may round the factors of its
    products below float32 (`TF_SET_ONEDNN_FPMATH_MODE`), the GPU, and whether the GPU
    may do the same (`NVIDIA_TF32_OVERRIDE=0` forbids it). The GPU is that of this
    process, even if a cluster's workers run on other machines; TFF's worker uses none.
    """
    context = tff.framework.get_context_stack().current
    record = {
        "engine": None,
        "threads": str(len(os.sched_getaffinity(0))),
        **getattr(context, "recorded", {}),
    }
    factors = os.environ.get("TF_SET_ONEDNN_FPMATH_MODE")
    if factors:
        record["onednn_fpmath_mode"] = factors
    return record if record["engine"] == "worker" else {**record, **_gpu()}


def unused_gpu() -> str:
    """Returns a line about a GPU that TensorFlow does not use, or an empty text.

    The text is also empty for a GPU that `CUDA_VISIBLE_DEVICES` hides.
    """
    has_gpu = os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi")
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if is_hidden or not has_gpu or tf.config.list_physical_devices("GPU"):
        return ""
    cause = "tensorflow-cpu has no code for it: install tensorflow instead"
    if tf.test.is_built_with_cuda():
        cause = "TensorFlow does not find CUDA's libraries: install them"
    return f'This machine\'s GPU is not used. {cause} (docs/install.md, "On a GPU")'


def unused_onednn() -> str:
    """Returns a line about oneDNN if TensorFlow leaves it off, or an empty text.

    TensorFlow decides by the processor. The text is also empty on a GPU, and where
    `TF_ENABLE_ONEDNN_OPTS` has decided.
    """
    decided = "TF_ENABLE_ONEDNN_OPTS" in os.environ
    if decided or _uses_onednn() or tf.config.list_physical_devices("GPU"):
        return ""
    return (
        "TensorFlow leaves oneDNN off on this processor; TF_ENABLE_ONEDNN_OPTS=1 may "
        'train in half of the time (docs/performance.md, "oneDNN on older processors")'
    )


def _uses_onednn() -> bool:
    # TensorFlow has no public name for it.
    from tensorflow.python.util import _pywrap_util_port

    return bool(_pywrap_util_port.IsMklEnabled())


_MIN_TF32_CAPABILITY = (8, 0)  # From here on GPUs can round factors to TF32.


def _gpu() -> dict[str, str]:
    """Returns the GPU's name and the type of its factors; nothing without a GPU.

    The package names no device, so TensorFlow places work on the first visible GPU.
    """
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return {}
    details = tf.config.experimental.get_device_details(gpus[0])
    uses_tf32 = (
        details.get("compute_capability", _MIN_TF32_CAPABILITY) >= _MIN_TF32_CAPABILITY
        and tf.config.experimental.tensor_float_32_execution_enabled()
        and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"
    )
    name = details.get("device_name", gpus[0].name)
    return {"gpu": name, "gpu_factors": "tf32" if uses_tf32 else "float32"}
