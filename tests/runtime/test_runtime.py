"""The worker's promises: how it starts, listens, calls, fails and closes."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli import ROOT
from open_files import child_processes, listening_addresses

from tff_pmc._lazy import tf, tff


def ended(process):
    """Returns the output of a process that must succeed."""
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return out, err


def test_an_error_in_a_computation_is_not_reported_as_a_dead_worker(worker):
    @tff.tensorflow.computation(np.int32)
    def fails(n):
        with tf.control_dependencies([tf.debugging.Assert(n < 0, ["my message"])]):
            return tf.identity(n)

    with pytest.raises(Exception, match="my message"):
        fails(1)


def test_closing_a_runtime_ends_worker_and_context(start):
    """Runs in one process, because starting one imports TensorFlow.

    A state's model is read without a worker. A worker that cannot start is reported.
    Closed, a runtime leaves the context before it; of two that are installed one is
    left. TFF's own context, in which a call is warned of, ends its worker.
    """
    process = start("""
        import contextlib
        import tff_pmc
        import tff_pmc.runtime.worker as module

        made = tff_pmc.build_prioritized_fed_avg(
            tff_pmc.models.keras_simple_convnet(),
            client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
            local_epochs=1,
        )

        def children():
            own, found = f"/proc/{os.getpid()}/task", ""
            for thread in os.listdir(own):
                with contextlib.suppress(FileNotFoundError):  # It has just ended.
                    found += open(f"{own}/{thread}/children").read()
            return found.split()

        with tff_pmc.Runtime():
            state = made.initialize()
            there = made.get_model_weights(state)
        assert made.get_hparams(state)["finalizer"]["learning_rate"] == 1
        here = made.get_model_weights(made.set_model_weights(state, there))
        assert type(here) is type(there)
        for a, b in zip(here.trainable, there.trainable):
            assert type(a) is type(b) and (a == b).all()

        binary, module._worker_binary = module._worker_binary, lambda: "/bin/false"
        try:
            Runtime()
        except module.WorkerStartError as error:
            assert "the TFF worker did not start" in str(error)
            module._worker_binary = binary
        assert module._worker_binary is binary

        before = tff.framework.get_context_stack().current
        running = Runtime().install()
        with running:
            assert add([1]) == 1
        assert tff.framework.get_context_stack().current is before

        first = Runtime().install()  # The next cell takes its name.
        host = first.engine._host
        installed = Runtime().install()
        assert host.poll() is not None and installed.engine._host.poll() is None
        with Runtime() as running:
            assert installed.engine._host.poll() is None
        assert tff.framework.get_context_stack().current is installed.context
        assert add([1, 2]) == 3
        installed.close()
        assert tff.framework.get_context_stack().current is before

        assert not children()
        print("own context", file=sys.stderr)
        assert add([1, 2]) == 3
        print(*children())
    """)
    out, err = ended(process)
    before, after = err.split("own context")
    says = "called outside of `with tff_pmc.Runtime():`"
    assert says not in before and after.count(says) == 1
    (worker,) = out.split()
    assert not os.path.exists(f"/proc/{worker}")


def test_an_exception_leaves_no_process_of_an_open_runtime(
    start, read_report, assert_nothing_left
):
    process = start("report(Runtime().install())\nraise KeyError('mine')")
    left = read_report(process)
    assert process.wait(60) == 1, process.stderr.read()
    assert_nothing_left(*left)


@pytest.mark.parametrize(
    "name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow), "SIGKILL"]
)
def test_a_signal_during_a_call_leaves_no_process(
    name, start, read_report, assert_nothing_left
):
    process = start("""
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as threads:  # The thread that starts it ends.
            running = threads.submit(Runtime).result()
        with running:
            report(running)
            slow(10**9)
    """)
    left = read_report(process)
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(getattr(signal, name))
    try:
        assert process.wait(20) != 0
    finally:
        process.kill()
    assert_nothing_left(*left)


def test_a_worker_that_dies_during_a_call_ends_it_within_ten_seconds(
    start, read_report, assert_nothing_left
):
    """Later calls name it, too."""
    process = start("""
        import threading
        with Runtime() as running:
            worker = report(running)
            threading.Timer(1.5, os.kill, (worker, signal.SIGKILL)).start()
            begun = time.monotonic()
            for _ in range(2):
                try:
                    slow(10**9)
                except WorkerDiedError as error:
                    print("seconds", time.monotonic() - begun, error, flush=True)
    """)
    left = read_report(process)
    first, later = ended(process)[0].splitlines()
    assert 1.4 < float(re.search(r"seconds (\S+)", first).group(1)) < 11.5
    assert "ended by signal 9" in first and "ended by signal 9" in later
    assert_nothing_left(*left)


def namespaces_are_allowed():
    """The kernel lists the ports, not the code under test."""
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x50000000) != 0)"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_private_worker_opens_no_port_and_another_warns_of_its_port(
    start, read_report, assert_nothing_left
):
    kinds = (True, False) if namespaces_are_allowed() else (False,)
    process = start(
        f"""
        from absl import logging
        for private in {kinds}:
            with Runtime(private=private) as running:
                assert running.engine.private == private
                report(running)
                assert add([1, 2]) == 3
                sys.stdin.readline()
        """,
        stdin=subprocess.PIPE,
    )
    for private in kinds:
        host, worker, folder = read_report(process)
        with open(f"/proc/{worker}/environ") as file:  # Else its memory climbs.
            assert "MALLOC_ARENA_MAX=1" in file.read().split("\0")
        time.sleep(0.5)
        networks = [os.readlink(f"/proc/{pid}/ns/net") for pid in (host, "self")]
        assert (networks[0] != networks[1]) == private
        assert (
            bool(listening_addresses([process, *child_processes(process)])) != private
        )
        assert os.stat(folder).st_mode & 0o777 == 0o700
        process.stdin.write("\n")
        process.stdin.flush()
        assert_nothing_left(host, worker, folder)
    _, err = ended(process)
    assert err.count("listens on a port of this machine") == 1


def test_a_namespace_without_a_loopback_is_not_used():
    """Some machines grant the namespace and refuse its loopback."""
    code = (
        "from tff_pmc.runtime import worker_host\n"
        "def refuse(*_): raise PermissionError(1, 'no loopback here')\n"
        "worker_host.fcntl.ioctl = worker_host._LIBC.unshare = refuse\n"
        "print(worker_host.namespace_error())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "no loopback here" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("package", "version", "taken"),
    [
        *(("protobuf", "5.29.3", False), ("protobuf", "4.21.12", True)),
        *(("numpy", "2.0.1", False), ("numpy", "1.26.4", True)),
        ("numpy", "1.24.3", False),  # TensorFlow takes it, and TFF does not.
    ],
)
def test_a_replaced_package_raises_one_line(monkeypatch, package, version, taken):
    from tff_pmc import runtime

    real = runtime.metadata.version
    monkeypatch.setattr(
        runtime.metadata,
        "version",
        lambda name: version if name == package else real(name),
    )
    if taken:
        return runtime.check_installed()
    with pytest.raises(
        runtime.EngineError, match=rf"^{package} {version} .* `make venv`"
    ):
        runtime.check_installed()
    with pytest.raises(runtime.EngineError):
        runtime.Runtime()


@pytest.mark.parametrize(
    ("there", "visible", "seen", "built", "says"),
    [
        (
            True,
            None,
            [],
            False,
            "tensorflow-cpu has no code for it: install tensorflow",
        ),
        (True, None, [], True, "does not find CUDA's libraries"),
        (True, "0", [], True, "does not find CUDA's libraries"),
        (True, None, ["GPU:0"], True, ""),
        (True, "", [], True, ""),
        (True, "-1", [], False, ""),
        (False, None, [], False, ""),
    ],
)
def test_an_unused_gpu_is_reported_in_one_line(
    monkeypatch, there, visible, seen, built, says
):
    from tff_pmc.runtime import runtime

    exists = os.path.exists
    monkeypatch.setattr(
        os.path, "exists", lambda p: there if p == "/dev/nvidia0" else exists(p)
    )
    monkeypatch.setattr(runtime.shutil, "which", lambda name: None)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: seen)
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: built)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    line = runtime.unused_gpu()
    assert says in line and bool(line) == bool(says) and "\n" not in line
    if says:
        assert 'docs/install.md, "On a GPU"' in line
        assert "\n## On a GPU\n" in (ROOT / "docs" / "install.md").read_text()


@pytest.mark.parametrize(
    ("decided", "used", "seen", "says"),
    [
        (None, False, [], "TF_ENABLE_ONEDNN_OPTS=1 may train in half of the time"),
        ("0", False, [], ""),
        ("1", True, [], ""),
        (None, True, [], ""),
        (None, False, ["GPU:0"], ""),
    ],
)
def test_unused_onednn_is_reported_in_one_line(monkeypatch, decided, used, seen, says):
    from tff_pmc.runtime import runtime

    monkeypatch.setattr(runtime, "_uses_onednn", lambda: used)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: seen)
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    if decided is not None:
        monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", decided)
    line = runtime.unused_onednn()
    assert says in line and bool(line) == bool(says) and "\n" not in line
    if says:
        assert 'docs/performance.md, "oneDNN on older processors"' in line
        page = (ROOT / "docs" / "performance.md").read_text()
        assert "\n## oneDNN on older processors\n" in page


@pytest.mark.parametrize("decided", ["0", "1"])
def test_tensorflow_says_whether_it_uses_onednn(decided):
    """By the variable; this process has imported TensorFlow before."""
    code = "from tff_pmc.runtime import runtime; print(runtime._uses_onednn())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": decided},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(decided == "1")
