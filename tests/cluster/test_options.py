"""Who may talk to a cluster, and what the others are told in one line."""

import dataclasses
import functools
import pathlib
import socket
import subprocess

import pytest

from tff_pmc.cluster.options import ClusterOptions, ClusterSettingError

ROOT = pathlib.Path(__file__).resolve().parents[2]
TCP, TLS = "tcp://127.0.0.1:8786", "tls://127.0.0.1:8786"


@pytest.fixture
def refused(assert_one_line):
    """Checks that a call raises one line that contains these parts."""
    return functools.partial(assert_one_line, ClusterSettingError)


@pytest.mark.parametrize(
    ("address", "options", "says"),
    [
        ("here", {}, "--cluster must be local, tls://HOST:PORT or tcp://HOST:PORT"),
        ("tls://host", {}, "--cluster must be"),
        ("tcp://:8786", {}, "--cluster must be"),
        ("http://host:1", {}, "--cluster must be"),
        ("tls://h:1/x", {}, "--cluster must be"),
        (TCP, {}, "--insecure_cluster"),
        ("tcp://192.0.2.1:1", {}, "--insecure_cluster"),
        (TCP, {"insecure": True}, None),
        (TCP, {"insecure": True, "tls_key": "x"}, "--tls_key only applies to"),
        ("local", {"tls_cert": "x"}, "--tls_cert only applies to"),
        ("local", {"workers": 3}, None),
        (TCP, {"insecure": True, "workers": 3}, "--cluster_workers only applies to"),
        (TLS, {"tls_ca_file": ""}, "--tls_ca_file= is not a file"),
        (TLS, {"tls_cert": "/none.pem"}, "--tls_cert=/none.pem is not a file"),
        (TLS, {"tls_key": "/"}, "--tls_key=/ is not a file"),
        (TLS, {}, None),
    ],
)
def test_options_are_checked_before_anything_starts(
    refused, certificates, address, options, says
):
    if address == TLS:
        options = {**certificates(), **options}
    check = ClusterOptions(address, **options).check
    check() if says is None else refused(check, says)


def test_without_dask_one_line_says_how_to_install_it(monkeypatch, refused):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    refused(ClusterOptions().check, "pip install 'tff-pmc[cluster]'")


@pytest.mark.parametrize("who", ["other", "cert", "key", "text", "tcp", "nobody"])
def test_tls_mismatches_raise_one_line(
    dask_cluster, certificates, refused, monkeypatch, tmp_path, who
):
    """Another authority, another certificate or key, no TLS, and no server."""
    from tff_pmc.cluster import connection

    monkeypatch.setattr(connection, "_CONNECT_SECONDS", 1)
    other = certificates()
    (tmp_path / "text").write_text("no certificate")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    tcp = dask_cluster.address.replace("tls", "tcp")
    changed = {
        "other": other,
        "cert": {name: other[name] for name in ("tls_cert", "tls_key")},
        "key": {"tls_key": other["tls_key"]},
        "text": {"tls_ca_file": str(tmp_path / "text")},
        "nobody": {"address": f"tls://127.0.0.1:{port}"},
        "tcp": {"address": tcp, "insecure": True, **dict.fromkeys(other, "")},
    }[who]
    options = dataclasses.replace(dask_cluster, **changed)
    refused(
        lambda: connection.ClusterConnection(options),
        f"--cluster={options.address}: no compatible Dask scheduler answered",
        *(f"--{flag}={path}" for flag, path in options.files.items() if path),
    )


@pytest.mark.parametrize(("workers", "expected"), [(None, 3), (2, 2)])
def test_the_number_of_workers_is_dasks_count_or_the_option(
    monkeypatch, refused, workers, expected
):
    """If they do not start, one line names possible causes."""
    distributed = pytest.importorskip("distributed")
    from tff_pmc.cluster import local_cluster

    calls = {}

    class Empty:
        def __init__(self, **options):
            calls.update(options)

        def scale(self, number):
            calls["scale"] = number

        def wait_for_workers(self, number, seconds):
            raise TimeoutError

        def close(self, timeout):
            calls["closed"] = True

    monkeypatch.setattr(distributed, "LocalCluster", Empty)
    monkeypatch.setattr("dask.system.CPU_COUNT", 3)
    monkeypatch.setattr("distributed.system.MEMORY_LIMIT", 5)
    says = ("did not start", "/dev/shm", 'under `if __name__ == "__main__":`')
    refused(lambda: local_cluster.start(workers), *says)
    assert (calls["scale"], calls["memory_limit"], calls["closed"]) == (
        expected,
        5,
        True,
    )
    assert (calls["host"], calls["protocol"]) == ("127.0.0.1", "tls://")
    assert calls["security"] is True


def test_only_its_user_can_read_the_scripts_files(tmp_path):
    """Whatever the umask: who may write into the folder may put a key there."""
    script = ROOT / "docs/examples/cluster/certificates.sh"
    subprocess.run(
        ["bash", "-c", 'umask 000; bash "$1"', "bash", script],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    paths = [tmp_path / "tls", *(tmp_path / "tls").iterdir()]
    assert {"ca.key", "ca.pem", "member.key", "member.pem"} <= {p.name for p in paths}
    assert [path for path in paths if path.stat().st_mode & 0o077] == []
