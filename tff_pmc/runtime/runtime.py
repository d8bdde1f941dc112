"""`Runtime`: an engine for TFF's computations, and the TFF context that leads to it."""

from __future__ import annotations

import os
import pkgutil
import shutil
from typing import Any, ClassVar, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.runtime import ENGINES, tffs_context

tffs_context.warn_when_used()


class Runtime:
    """Runs every TFF computation that is called while it is installed.

    Attributes:
        engine: the engine, a `LocalEngine`, `WorkerEngine` or `ClusterEngine`.
        context: the context that `install` makes the default.

    Examples:
        >>> with tff_pmc.Runtime():
        ...     state = process.initialize()  # any TFF computation

    In a notebook, `tff_pmc.Runtime().install()` does the same until the kernel ends; a
    cell that is run again ends the engine that it installed before.
    """

    # The one that a call of `install` left in force: a cell that is run again has lost
    # its name, and could not close it.
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
            engine: `local` runs computations in this process; `worker` in TFF's
                worker, a separate process, which takes a second to start.
            private: put a worker into a separate network namespace; where that is
                forbidden a port is used and a warning logged.
            cluster: where the cluster is, as of `--cluster`, or all of its
                `ClusterOptions`; by default on this machine.

        Raises:
            ValueError: there is no such engine, or it has no cluster.
            SettingError: the cluster cannot be used; the message names the flag.
            WorkerStartError: the worker did not come up; its log is quoted.
        """
        if engine not in ENGINES:
            raise ValueError(
                f"engine must be one of {', '.join(ENGINES)}; got {engine}"
            )
        if cluster is not None and engine != "cluster":
            raise ValueError(f"cluster needs engine='cluster', got {engine}")
        options = {} if cluster is None else {"cluster": cluster}
        self.engine = pkgutil.resolve_name(ENGINES[engine])(private=private, **options)
        self.context = self.engine.context
        self._previous_context: Any = tff.framework.get_context_stack().current

    def install(self) -> Runtime:
        """Makes this the context of every TFF computation called from now on.

        One that was installed before, and is in force, is closed.
        """
        before = Runtime._installed
        if before is not None and before is not self and before._is_in_force():
            before.close()
        Runtime._installed = self
        return self.__enter__()

    def close(self) -> None:
        """Ends the engine; safe to call twice. The previous context returns."""
        if self._is_in_force():
            tff.framework.set_default_context(self._previous_context)
        if Runtime._installed is self:
            Runtime._installed = None
        self.engine.close()

    def __enter__(self) -> Runtime:
        if not self._is_in_force():
            self._previous_context = tff.framework.get_context_stack().current
            tff.framework.set_default_context(self.context)
        return self

    def _is_in_force(self) -> bool:
        return tff.framework.get_context_stack().current is self.context

    def __exit__(self, *unused: object) -> None:
        self.close()


def engine_versions() -> dict[str, Optional[str]]:
    """Returns the engine in force, its threads, and what a cluster spreads.

    These are for `run.json`. The engine is None for a context of TFF's own. Told, too,
    is what changes a run's numbers: that oneDNN may take less than float32 for the
    factors of its products (`TF_SET_ONEDNN_FPMATH_MODE`), and the GPU, with whether
    it may do the same (`NVIDIA_TF32_OVERRIDE=0` forbids it). It is that of this
    process, also where a cluster's workers run elsewhere; TFF's worker uses none.
    """
    context = tff.framework.get_context_stack().current
    found = {
        "engine": None,
        "threads": str(len(os.sched_getaffinity(0))),
        **getattr(context, "recorded", {}),
    }
    factors = os.environ.get("TF_SET_ONEDNN_FPMATH_MODE")
    if factors:
        found["onednn_fpmath_mode"] = factors
    return found if found["engine"] == "worker" else {**found, **_gpu()}


def unused_gpu() -> str:
    """Returns a line on a GPU that TensorFlow does not use; empty if there is none.

    Of a GPU that `CUDA_VISIBLE_DEVICES` hides there is no line.
    """
    there = os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if hidden or not there or tf.config.list_physical_devices("GPU"):
        return ""
    why = "tensorflow-cpu has no code for it: install tensorflow in its place"
    if tf.test.is_built_with_cuda():
        why = "TensorFlow does not find CUDA's libraries: install them"
    return f'This machine\'s GPU is not used. {why} (docs/install.md, "On a GPU")'


_TF32 = (8, 0)  # The least compute capability whose products can have TF32 factors.


def _gpu() -> dict[str, str]:
    """Returns the name of the GPU that is used, and its factors; nothing without one.

    Nothing here names a device, and TensorFlow places that on the first visible GPU.
    """
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return {}
    details = tf.config.experimental.get_device_details(gpus[0])
    rounded = (
        details.get("compute_capability", _TF32) >= _TF32
        and tf.config.experimental.tensor_float_32_execution_enabled()
        and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"
    )
    name = details.get("device_name", gpus[0].name)
    return {"gpu": name, "gpu_factors": "tf32" if rounded else "float32"}
