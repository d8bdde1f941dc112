"""Which cluster, and who may talk to it (no TensorFlow, no network)."""

from __future__ import annotations

import dataclasses
import importlib.util
import ipaddress
import socket
import ssl
import urllib.parse
from typing import ClassVar, NamedTuple, Optional

from leaf_data.declare import ABOVE_0, AT_LEAST_1, SettingError, Settings, setting
from leaf_data.formats import places
from tff_pmc.settings import flag_values

LOCAL = "local"
"""The address that stands for a cluster of this machine alone."""


class ClusterSettingError(SettingError):
    """A cluster that cannot be used as it is named; the message names the flag."""


class Place(NamedTuple):
    """Where a scheduler listens."""

    scheme: str  # `tls` or `tcp`.
    host: str
    port: int


@dataclasses.dataclass(frozen=True)
class ClusterOptions(Settings):
    """The options of the engine `cluster`; a local one ends with the engine."""

    title: ClassVar[str] = "Clusters (docs/scaling.md)"

    address: str = setting(
        LOCAL,
        "The cluster of --engine=cluster, which need not be given then: local, which "
        "starts a worker for each core of this machine, or where a Dask scheduler "
        "listens, as tls://HOST:PORT.",
        flag="cluster",
    )
    tls_ca_file: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the certificate (PEM) of the authority that "
        "both sides trust.",
        parse=flag_values.place,
    )
    tls_cert: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the certificate (PEM) of this side.",
        parse=flag_values.place,
    )
    tls_key: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the key (PEM, no passphrase) of --tls_cert.",
        parse=flag_values.place,
    )
    insecure: bool = setting(
        False,
        "Allow --cluster=tcp://HOST:PORT beyond this machine: whoever reaches such a "
        "cluster runs code on all of it.",
        flag="insecure_cluster",
    )
    threads: int = setting(
        None,
        "TensorFlow's threads within an operation, in each worker of a cluster; by "
        "default as many as this process would have, so that results are equal to the "
        "bit.",
        flag="cluster_threads",
        within=AT_LEAST_1,
    )
    timeout: float = setting(
        60.0,
        "Seconds without a sign of life after which a worker of a cluster is lost, and "
        "its work goes to others, or the scheduler, and the run ends.",
        flag="cluster_timeout",
        within=ABOVE_0,
    )
    spread: str = setting(
        "auto",
        "What a cluster shares out. runs: each run is made by one worker; data and "
        "--output_dir must be where all machines find them. clients: the packs of each "
        "round (--num_packs, at least as many as workers). auto: runs, if there are at "
        "least two, and as many as workers; else clients.",
        choices=("auto", "runs", "clients"),
    )

    @property
    def files(self) -> dict[str, str]:
        """The three files by flag."""
        names = ("tls_ca_file", "tls_cert", "tls_key")
        return {name: getattr(self, name) for name in names}

    def place(self) -> Optional[Place]:
        """Where the scheduler listens; None for a cluster of this machine."""
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
        """Refuses what cannot be used, before anything is started."""
        if importlib.util.find_spec("distributed") is None:
            raise ClusterSettingError(
                "--engine=cluster needs Dask: pip install 'tff-pmc[cluster]' (`make "
                "venv` has it)"
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

    def spreads_runs(self, num_runs: int, num_workers: int) -> bool:
        """Whether runs are spread, and not clients; `auto` leaves it open."""
        if self.spread != "auto":
            return self.spread == "runs"
        return num_runs >= max(2, num_workers)

    def ssl_context(self) -> ssl.SSLContext:
        """What checks the other side's certificate and shows ours.

        As with Dask's own, the authority decides and not the host's name.
        """
        for flag, path in self.files.items():
            if not path:
                raise ClusterSettingError(
                    f"--cluster={self.address} needs --tls_ca_file, --tls_cert and "
                    f"--tls_key: --{flag} is missing"
                )
            try:
                places.open_file(path).close()
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
