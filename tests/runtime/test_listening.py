"""Where a worker listens: nowhere, or on a port where the machine allows no more."""

import contextlib
import os
import re
import subprocess
import sys
import time

import pytest


def namespaces_are_allowed():
    """Asked of the kernel, not of the code under test."""
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x50000000) != 0)"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


def listening_ports(pid):
    """The TCP ports of this machine on which a process or one it began listens."""
    psutil = pytest.importorskip("psutil")
    process = psutil.Process(pid)
    sockets = set()
    for member in [process, *process.children(recursive=True)]:
        for name in os.listdir(f"/proc/{member.pid}/fd"):
            with contextlib.suppress(OSError):
                sockets.add(os.readlink(f"/proc/{member.pid}/fd/{name}"))
    ports = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}") as file:
            for line in list(file)[1:]:
                fields = line.split()
                if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                    ports.add((name, fields[1].rsplit(":", 1)[1]))
    return ports


def test_a_private_worker_listens_nowhere(worker, start, read_report):
    """The test's own worker is up: its namespace is not this machine's."""
    if not namespaces_are_allowed():
        pytest.skip("this machine forbids user namespaces")
    assert worker.engine.private
    mine = os.readlink("/proc/self/ns/net")
    assert os.readlink(f"/proc/{worker.engine._host.pid}/ns/net") != mine
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
    during = listening_ports(process.pid)
    process.communicate("", timeout=60)
    assert not during


def test_the_socket_is_the_users_alone(worker):
    folder = worker.engine._folder
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert os.stat(f"{folder}/worker.sock").st_mode & 0o777 == 0o600


def test_without_namespaces_it_falls_back_to_a_port_and_says_so(
    start, read_report, assert_nothing_left
):
    process = start("""
        from absl import logging
        with Runtime(private=False) as running:
            assert not running.engine.private
            left = report(running)
            assert add([1, 2]) == 3
    """)
    left = read_report(process)
    assert listening_ports(process.pid)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(re.findall("listens on a port of this machine", err)) == 1
    assert_nothing_left(*left)


@pytest.mark.slow
def test_a_namespace_without_a_loopback_falls_back_to_a_port(start):
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
            assert not running.engine.private
            assert add([1, 2]) == 3
        os.unlink(refusing)
        """
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "no loopback here" in err
