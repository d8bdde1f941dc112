"""The runtime's promises, each in a process of its own."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

PRELUDE = """
import os, signal, sys, time
# What a shell starts in the background inherits that interrupts are ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf, tensorflow_federated as tff
from tff_pmc.runtime import Runtime, WorkerDiedError
from tff_pmc.runtime.worker import _children

@tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
def add(x):
    return tff.federated_sum(x)

@tff.tensorflow.computation(np.int32)
def slow(n):
    return tf.while_loop(
        lambda i, _: i < n,
        lambda i, a: (i + 1, tf.linalg.matmul(a, a) * 1e-3),
        (0, tf.eye(500)),
    )[0]

def report(running):
    worker = _children(running._host.pid)[0]
    print("pids", running._host.pid, worker, running._folder, flush=True)
    return worker
"""


def start(body, **options):
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def read_report(process):
    """Host pid, worker pid and folder, as the child printed them."""
    for line in process.stdout:
        if line.startswith("pids"):
            _, host, worker, folder = line.split()
            return int(host), int(worker), folder
    raise AssertionError("no report: " + process.stderr.read())


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def assert_nothing_left(host, worker, folder):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not alive(host) and not alive(worker) and not os.path.exists(folder):
            return
        time.sleep(0.05)
    raise AssertionError(
        f"left: host {alive(host)}, worker {alive(worker)}, {os.path.exists(folder)}"
    )


def test_nothing_is_left_after_a_normal_end():
    process = start("""
        with Runtime() as running:
            report(running)
            assert add([1, 2, 3]) == 6
    """)
    left = read_report(process)
    assert process.wait(60) == 0, process.stderr.read()
    assert_nothing_left(*left)


def test_nothing_is_left_without_close_as_in_a_notebook():
    process = start("""
        report(Runtime().install())
        assert add([4]) == 4
    """)
    left = read_report(process)
    assert process.wait(60) == 0, process.stderr.read()
    assert_nothing_left(*left)


def test_nothing_is_left_after_an_exception():
    process = start("""
        running = Runtime().install()
        report(running)
        raise KeyError("mine")
    """)
    left = read_report(process)
    assert process.wait(60) == 1
    assert_nothing_left(*left)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_nothing_is_left_after_a_signal_in_mid_call(name):
    process = start("""
        with Runtime() as running:
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


def test_a_worker_that_dies_in_mid_call_ends_the_call_within_ten_seconds():
    process = start("""
        import threading
        with Runtime() as running:
            worker = report(running)
            threading.Timer(1.5, os.kill, (worker, signal.SIGKILL)).start()
            begun = time.monotonic()
            try:
                slow(10**9)
            except WorkerDiedError as error:
                print("seconds", time.monotonic() - begun, error, flush=True)
    """)
    left = read_report(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    seconds = float(re.search(r"seconds (\S+)", out).group(1))
    assert 1.4 < seconds < 11.5
    assert "ended by signal 9" in out
    assert_nothing_left(*left)


def test_a_dead_worker_is_named_in_later_calls_too():
    process = start("""
        with Runtime() as running:
            os.kill(report(running), signal.SIGKILL)
            time.sleep(1)
            for _ in range(2):
                try:
                    add([1])
                except WorkerDiedError:
                    print("refused", flush=True)
    """)
    out, err = process.communicate(timeout=60)
    assert out.count("refused") == 2, err


def namespaces_are_allowed():
    """Asked of the kernel, not of the code under test."""
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x50000000) != 0)"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


def listening_ports():
    """All TCP ports this machine listens on."""
    ports = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == "0A":
                    ports.add((name, fields[1].rsplit(":", 1)[1]))
    return ports


def test_a_private_worker_listens_nowhere(runtime):
    """The test's own worker is up: its namespace is not this machine's."""
    if not namespaces_are_allowed():
        pytest.skip("this machine forbids user namespaces")
    assert runtime.private
    mine = os.readlink("/proc/self/ns/net")
    assert os.readlink(f"/proc/{runtime._host.pid}/ns/net") != mine
    before = listening_ports()
    process = start(
        """
        with Runtime() as running:
            report(running)
            add([1])
            sys.stdin.read()
    """,
        stdin=subprocess.PIPE,
    )
    read_report(process)
    time.sleep(0.5)
    during = listening_ports()
    process.communicate("", timeout=60)
    assert during <= before


def test_the_socket_is_the_users_alone(runtime):
    folder = runtime._folder
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert os.stat(f"{folder}/worker.sock").st_mode & 0o777 == 0o600


def test_without_namespaces_it_falls_back_to_a_port_and_says_so():
    process = start("""
        from absl import logging
        with Runtime(private=False) as running:
            assert not running.private
            left = report(running)
            assert add([1, 2]) == 3
    """)
    left = read_report(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(re.findall("listens on a port of this machine", err)) == 1
    assert_nothing_left(*left)


def test_a_worker_that_cannot_start_is_reported():
    process = start("""
        import tff_pmc.runtime.worker as module
        module._worker_binary = lambda: "/bin/false"
        try:
            Runtime()
        except module.WorkerStartError as error:
            print("refused:", error, flush=True)
    """)
    out, err = process.communicate(timeout=60)
    assert "refused: the TFF worker did not start" in out, err


def test_an_error_in_a_computation_is_not_taken_for_a_dead_worker(runtime):
    import numpy as np
    import tensorflow as tf
    import tensorflow_federated as tff

    @tff.tensorflow.computation(np.int32)
    def fails(n):
        with tf.control_dependencies([tf.debugging.Assert(n < 0, ["my message"])]):
            return tf.identity(n)

    with pytest.raises(Exception, match="my message"):
        fails(1)


def test_a_namespace_without_a_loopback_falls_back_to_a_port():
    """Some machines grant the namespace and refuse what makes it useful."""
    process = start(
        """
        import re, tempfile, tff_pmc.runtime.worker as module
        path = os.path.join(os.path.dirname(module.__file__), "worker_host.py")
        refusing = tempfile.mktemp(suffix=".py")
        with open(path) as file, open(refusing, "w") as copy:
            text = file.read()
            assert text.count("        fcntl.ioctl(sock, _SIOCSIFFLAGS") == 1
            copy.write(text.replace(
                "        fcntl.ioctl(sock, _SIOCSIFFLAGS",
                "        raise PermissionError(1, 'no loopback here')\\n"
                "        fcntl.ioctl(sock, _SIOCSIFFLAGS"))
        popen = module.subprocess.Popen
        module.subprocess.Popen = lambda command, **options: popen(
            [refusing if a == path else a for a in command], **options)
        with Runtime() as running:
            assert not running.private
            assert add([1, 2]) == 3
        os.unlink(refusing)
        """
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "no loopback here" in err


def test_a_call_that_ends_between_two_polls_is_no_timeout(runtime):
    """The poll's own timeout must not be taken for the call's result."""
    import numpy as np
    import tensorflow_federated as tff

    import tff_pmc.runtime.worker_context as module

    @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
    def add(x):
        return tff.federated_sum(x)

    seconds, module._POLL_SECONDS = module._POLL_SECONDS, 1e-4
    try:
        assert [add([k, 1]) for k in range(50)] == [k + 1 for k in range(50)]
    finally:
        module._POLL_SECONDS = seconds


def test_installing_twice_and_closing_restores_the_context_before():
    process = start(
        """
        before = tff.framework.get_context_stack().current
        running = Runtime().install()
        with running:
            assert add([1]) == 1
        assert tff.framework.get_context_stack().current is before
        """
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def test_closing_ends_what_is_still_called():
    """Else the loop complains of it when the process ends, after an interrupt."""
    import asyncio

    from tff_pmc.runtime import Runtime

    runtime = Runtime()
    context = runtime.context
    call = asyncio.run_coroutine_threadsafe(asyncio.sleep(600), context._loop)
    runtime.close()
    assert call.cancelled()


def test_odd_temporary_folders_do_not_hang(tmp_path):
    folder = tmp_path / ("odd %#?" + "x" * 80)
    folder.mkdir()
    process = start(
        """
        with Runtime() as running:
            assert add([1, 2]) == 3
        """,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
