"""Who may talk to a cluster, and what is said to the others; no TensorFlow."""

import dataclasses
import functools
import os
import pathlib
import socket
import subprocess
import threading

import pytest

from tff_pmc.cluster import probe
from tff_pmc.cluster.options import ClusterOptions, ClusterSettingError

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def refused(assert_one_line):
    """Checks that a call is refused in one line that has these parts."""
    return functools.partial(assert_one_line, ClusterSettingError)


def test_an_address_is_local_or_a_schedulers_and_tcp_is_of_this_machine(refused):
    for address in (
        "here",
        "tls://host",
        "tcp://:8786",
        "http://host:1",
        "tls://h:1/x",
    ):
        refused(ClusterOptions(address).check, "--cluster must be", address)
    for host in ("192.0.2.1", "[2001:db8::1]", "host.invalid"):
        options = ClusterOptions(f"tcp://{host}:8786")
        refused(options.check, host, "--insecure_cluster")
        dataclasses.replace(options, insecure=True).check()
    for host in ("127.0.0.1", "localhost", "[::1]"):
        ClusterOptions(f"tcp://{host}:8786").check()


@pytest.mark.parametrize("flag", ["tls_ca_file", "tls_cert", "tls_key"])
def test_tls_needs_three_files(flag, tmp_path, certificates, refused):
    files = certificates()
    ClusterOptions("tls://host:1", **files).check()
    os.mkfifo(tmp_path / "pipe")
    for value, said in (
        ("", f"--{flag} is missing"),
        (str(tmp_path / "none.pem"), "No such file"),
        (str(tmp_path / "pipe"), "it is no regular file"),
    ):
        options = ClusterOptions("tls://host:1", **{**files, flag: value})
        refused(options.check, f"--{flag}", said)
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    options = ClusterOptions("tls://host:1", **{**files, flag: str(wrong)})
    refused(options.check, f"--{flag}={wrong}")


def test_a_key_of_another_certificate_is_refused(certificates, refused):
    files = {**certificates(), "tls_key": certificates()["tls_key"]}
    options = ClusterOptions("tls://host:1", **files)
    refused(options.check, "--tls_key", files["tls_key"])


def test_who_has_a_certificate_of_the_authority_is_let_in(dask_cluster):
    probe.check(dask_cluster)


def test_a_certificate_of_another_authority_is_refused(
    dask_cluster, certificates, refused
):
    """The scheduler refuses it, and this side a scheduler of another authority."""
    other = certificates()
    own = {name: other[name] for name in ("tls_cert", "tls_key")}
    options = dataclasses.replace(dask_cluster, **own)
    refused(
        lambda: probe.check(options),
        "refuses the certificate",
        f"--tls_cert={own['tls_cert']}",
    )
    options = dataclasses.replace(dask_cluster, **other)
    refused(
        lambda: probe.check(options),
        "not of the authority",
        f"--tls_ca_file={other['tls_ca_file']}",
    )


def test_without_tls_a_scheduler_with_it_does_not_answer(dask_cluster, refused):
    options = ClusterOptions(dask_cluster.address.replace("tls://", "tcp://"))
    refused(lambda: probe.check(options, 1), "no scheduler without TLS")


def test_an_address_where_nobody_listens_is_named(certificates, refused):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    options = ClusterOptions(f"tls://127.0.0.1:{port}", **certificates())
    said = (f"--cluster=tls://127.0.0.1:{port}", "no scheduler answers")
    refused(lambda: probe.check(options), *said)


@pytest.mark.parametrize(
    ("greeting", "says"),
    [
        (b"x", "without TLS (timed out)"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "without TLS (it does not speak as Dask does)"),
        (b"", "without TLS (the connection was closed)"),
        (None, "does not speak TLS"),  # It says nothing, and holds the connection.
    ],
)
def test_who_greets_otherwise_is_no_scheduler(certificates, refused, greeting, says):
    """And is waited for no longer than asked."""

    def greet():
        connection, _ = listener.accept()
        connection.sendall(greeting or b"")
        connection.close() if greeting == b"" else held.append(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        held = []
        threading.Thread(target=greet, daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        options = ClusterOptions(f"tcp://{address}")
        if greeting is None:
            options = ClusterOptions(f"tls://{address}", **certificates())
        refused(lambda: probe.check(options, 0.5), says)
        for connection in held:
            connection.close()


def test_without_dask_one_line_says_how_to_install_it(monkeypatch, refused):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    refused(ClusterOptions().check, "pip install 'tff-pmc[cluster]'")


def test_what_the_script_makes_is_of_one_user(tmp_path):
    """Whatever the umask: who may write into the folder may put a key there."""
    script = ROOT / "docs/examples/cluster/certificates.sh"
    subprocess.run(
        ["bash", "-c", 'umask 000; bash "$1"', "bash", script],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    made = [tmp_path / "tls", *(tmp_path / "tls").iterdir()]
    assert {"ca.key", "ca.pem", "member.key", "member.pem"} <= {p.name for p in made}
    assert [path for path in made if path.stat().st_mode & 0o077] == []
