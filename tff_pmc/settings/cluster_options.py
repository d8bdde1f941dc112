"""Which cluster, and who may talk to it (no TensorFlow, no network)."""

from __future__ import annotations

import dataclasses
import ipaddress
import socket
import ssl
import urllib.parse
from typing import NamedTuple, Optional

from leaf_data.settings import SettingError

ENGINES = ("local", "worker", "cluster")
"""`local` runs TFF's computations in this process, `worker` in TFF's own worker, and
`cluster` on the workers of Dask distributed."""

SPREADS = ("auto", "runs", "clients")
"""What is spread over a cluster: whole runs, or the clients of each round."""

LOCAL = "local"
"""The address that stands for a cluster of this machine alone."""


class ClusterSettingError(SettingError):
    """A cluster that cannot be used as it is named; the message names the flag."""


class Place(NamedTuple):
    """Where a scheduler listens.

    Attributes:
        scheme: `tls` or `tcp`.
        host: the host's name or address.
        port: the port.
    """

    scheme: str
    host: str
    port: int


@dataclasses.dataclass(frozen=True)
class ClusterOptions:
    """The options of the engine `cluster`, each with a flag of its own.

    Attributes:
        address: `local` for workers on this machine, which end with the engine, or
            where a scheduler listens: `tls://HOST:PORT` or `tcp://HOST:PORT`.
        tls_ca_file: the certificate of the authority that both sides trust, PEM.
        tls_cert: this side's certificate, PEM.
        tls_key: its key, PEM, without a passphrase.
        insecure: allow a `tcp://` address beyond this machine.
        threads: TensorFlow's threads within an operation, in each worker; by default
            as many as this process has.
        spread: what is spread: `clients` of a round, whole `runs`, or `auto`.
    """

    address: str = LOCAL
    tls_ca_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    insecure: bool = False
    threads: Optional[int] = None
    spread: str = "auto"

    @property
    def files(self) -> dict[str, str]:
        """The three files by flag."""
        names = ("tls_ca_file", "tls_cert", "tls_key")
        return {name: getattr(self, name) for name in names}

    def place(self) -> Optional[Place]:
        """Where the scheduler listens; None for a cluster of this machine.

        Raises:
            ClusterSettingError: the address is none.
        """
        if self.address == LOCAL:
            return None
        try:
            parts = urllib.parse.urlsplit(self.address)
            found = Place(parts.scheme, parts.hostname or "", parts.port or 0)
            rest = parts.path or parts.query or parts.fragment or parts.username
        except ValueError:
            found, rest = Place("", "", 0), ""
        if found.scheme not in ("tls", "tcp") or not all(found) or rest:
            raise ClusterSettingError(
                f"--cluster must be {LOCAL}, tls://HOST:PORT or tcp://HOST:PORT; got "
                f"{self.address!r}"
            )
        return found

    def check(self) -> None:
        """Refuses what cannot be used, before anything is started.

        Raises:
            ClusterSettingError: the address is none; it lies beyond this machine and
                has no TLS; a file is missing or cannot be loaded, or has no use.
        """
        if self.threads is not None and self.threads < 1:
            raise ClusterSettingError(
                f"--cluster_threads must be at least 1, got {self.threads}"
            )
        if self.spread not in SPREADS:
            raise ClusterSettingError(
                f"--spread must be one of {', '.join(SPREADS)}; got {self.spread!r}"
            )
        place = self.place()
        if place is not None and place.scheme == "tls":
            self.ssl_context()
            return
        for flag, path in self.files.items():
            if path:
                raise ClusterSettingError(
                    f"--{flag} goes with --cluster=tls://HOST:PORT, not with "
                    f"--cluster={self.address}"
                )
        if place is not None and not self.insecure and not _is_here(place.host):
            raise ClusterSettingError(
                f"--cluster={self.address} is no loopback address, and whoever reaches "
                "a cluster without TLS runs code on it: use tls://HOST:PORT with "
                "--tls_ca_file, --tls_cert and --tls_key, or say --insecure_cluster"
            )

    def ssl_context(self) -> ssl.SSLContext:
        """What checks the other side's certificate and shows ours.

        As with Dask's own, the authority decides and not the host's name.

        Raises:
            ClusterSettingError: a file is missing or cannot be loaded.
        """
        for flag, path in self.files.items():
            if not path:
                raise ClusterSettingError(
                    f"--cluster={self.address} needs --tls_ca_file, --tls_cert and "
                    f"--tls_key: --{flag} is missing"
                )
            try:
                with open(path, "rb"):
                    pass
            except OSError as error:
                raise ClusterSettingError(
                    f"--{flag}={path}: {error.strerror}"
                ) from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        try:
            context.load_verify_locations(self.tls_ca_file)
        except (ssl.SSLError, ValueError) as error:
            raise ClusterSettingError(
                f"--tls_ca_file={self.tls_ca_file} holds no certificate: {error}"
            ) from error
        try:
            # Without a passphrase given, one would be asked for on the terminal.
            context.load_cert_chain(self.tls_cert, self.tls_key, password=lambda: b"")
        except (ssl.SSLError, ValueError, OSError) as error:
            raise ClusterSettingError(
                f"--tls_cert={self.tls_cert} and --tls_key={self.tls_key} are no "
                f"certificate and its key: {error}"
            ) from error
        return context


def _is_here(host: str) -> bool:
    """Whether all addresses of a host are loopback addresses."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(
        ipaddress.ip_address(str(one).split("%")[0]).is_loopback for one in found
    )
