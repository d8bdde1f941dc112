"""What a cluster opens, and its end: that of the process, or of the scheduler."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from cli import ALONE, ROOT, long_run, run_alone
from open_files import child_processes, listening_addresses, open_targets


def assert_gone(processes, seconds=120):
    import psutil

    _, left = psutil.wait_procs(processes, timeout=seconds)
    assert not left


def speaks_tls(port):
    """Returns whether the server there answers only the greeting of TLS."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 10) as raw:
        try:
            with context.wrap_socket(raw) as stream:
                return stream.version() is not None
        except ssl.SSLError:
            return False


def assert_only_tls_on_loopback(processes, least):
    addresses = listening_addresses(processes)
    assert len(addresses) >= least
    assert {address for address, _ in addresses} == {"127.0.0.1"}
    assert [port for _, port in addresses if not speaks_tls(port)] == []


@pytest.mark.parametrize(
    ("name", "spread"),
    [
        pytest.param("SIGINT", "clients", marks=pytest.mark.slow),
        ("SIGTERM", "runs"),
        pytest.param("SIGKILL", "clients", marks=pytest.mark.slow),
    ],
)
def test_a_signal_leaves_no_process(tmp_path, name, spread):
    """An interrupt goes to all processes of the terminal, as Ctrl-C does.

    Who kills the driver may have stopped its workers before.
    """
    folder, number = tmp_path / "out", getattr(signal, name)
    flags = ("--cluster=local", "--cluster_workers=1", f"--spread={spread}")
    process = long_run(folder, *flags)
    workers = child_processes(process)
    # The scheduler's, and those of a worker and its nanny.
    assert_only_tls_on_loopback([process, *workers], least=3)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        for worker in workers if number == signal.SIGKILL else ():
            if "resource_tracker" not in " ".join(worker.cmdline()):
                worker.suspend()
        os.kill(process.pid, number)
    _, err = process.communicate(timeout=600)
    assert_gone(workers)
    if number == signal.SIGKILL:
        return
    assert process.returncode == 128 + number
    assert "interrupted" in err.splitlines()[-1]
    assert f"--output_dir={folder} --resume" in err.splitlines()[-1]
    assert "Traceback" not in err and "distributed" not in err


@pytest.mark.slow
def test_closing_is_quiet_and_leaves_no_process(tmp_path):
    done = run_alone(
        *ALONE,
        "--rounds=1",
        *("--cluster=local", "--spread=clients", f"--output_dir={tmp_path / 'out'}"),
    )
    assert done.returncode == 0, done.stderr
    assert "distributed" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


@pytest.fixture
def machines(tmp_path, certificates, request):
    """Starts scheduler and workers with the scripts; yields both and driver flags.

    The parameter `tcp` leaves out their TLS.
    """
    scheme = getattr(request, "param", "tls")
    here = tmp_path / "checkout"
    (here / "tls").mkdir(parents=True)
    (here / ".venv").symlink_to(sys.prefix)
    files = certificates()
    for flag, name in (("tls_ca_file", "ca.pem"), ("tls_cert", "member.pem"),
                       ("tls_key", "member.key")):  # fmt: skip
        shutil.copy(files[flag], here / "tls" / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    begun = []
    for name, *arguments in (
        ("scheduler.sh", "lo"),
        ("worker.sh", "lo", "127.0.0.1", "2"),
    ):
        script = (ROOT / "docs/examples/cluster" / name).read_text()
        if scheme == "tcp":
            script = re.sub(r"--tls-\S+ \S+|export \S+_ENCRYPTION=true", "", script)
            script = script.replace("--protocol tls", "").replace("tls://", "tcp://")
        (here / name).write_text(script.replace("8786", port))
        begun.append(
            subprocess.Popen(
                ["bash", name, *arguments],
                cwd=here,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stderr=subprocess.DEVNULL,
            )
        )
        deadline = time.monotonic() + 600
        while (
            len(listening_addresses([begun[0], *child_processes(begun[-1])]))
            < 2 * len(begun) - 1
        ):
            assert time.monotonic() < deadline and begun[-1].poll() is None
            time.sleep(0.1)
    secure = [f"--{flag}={path}" for flag, path in files.items()]
    address = f"--cluster={scheme}://127.0.0.1:{port}"
    yield begun, [address, *(secure if scheme == "tls" else ["--insecure_cluster"])]
    for process in begun:
        descendants = [*child_processes(process), process]
        for member in descendants:
            member.kill()
        process.wait()
        assert_gone(descendants[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["clients", "runs"])
@pytest.mark.parametrize(
    ("machines", "name"),
    [("tls", "SIGSTOP"), ("tls", "SIGKILL"), ("tcp", "SIGSTOP")],
    indirect=["machines"],
)
def test_the_scripts_open_only_tls_and_a_missing_scheduler_is_one_line(
    tmp_path, machines, name, spread
):
    (scheduler, workers), flags = machines
    flags = [*flags, f"--spread={spread}", "--cluster_timeout=3"]
    process = long_run(tmp_path / "out", *flags)
    all_of_it = [
        scheduler,
        workers,
        *child_processes(workers),
        process,
        *child_processes(process),
    ]
    if "tls" in flags[0]:
        assert_only_tls_on_loopback(all_of_it, least=5)
    os.kill(scheduler.pid, getattr(signal, name))
    _, err = process.communicate(timeout=600)
    assert process.returncode == 1, err
    last = err.splitlines()[-1]
    assert flags[0] in last and "--resume continues it" in last
    assert "Traceback" not in err and "distributed" not in err
    if name == "SIGSTOP":
        assert "the scheduler did not answer for 3 seconds" in last


@pytest.mark.slow
def test_a_run_whose_driver_was_killed_ends(tmp_path, machines):
    """A worker that continued would hold the lock of its folder."""
    (_, workers), flags = machines
    process = long_run(tmp_path / "out", *flags, "--spread=runs")
    lock = str(tmp_path / "out" / "DS" / ".lock")
    busy = [
        worker
        for worker in child_processes(workers)
        if lock in open_targets(worker.pid)
    ]
    assert len(busy) == 1
    process.kill()
    process.communicate(timeout=600)
    assert_gone(busy)
