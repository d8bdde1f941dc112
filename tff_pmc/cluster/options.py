"""The options of a cluster: address and security (imports no TensorFlow, no Dask)."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
from typing import ClassVar

from declared_settings import ABOVE_0, AT_LEAST_1, SettingError, Settings, setting
from leaf_data.formats.data_files import expand_path
from tff_pmc.settings import flag_values

LOCAL = "local"
"""The address of a cluster that is started on this machine."""

_ADDRESS = re.compile(r"(tls|tcp)://[^/?#@]+:\d+")


class ClusterSettingError(SettingError):
    """Raised if a cluster cannot be used as set up; the message names the flag."""


@dataclasses.dataclass(frozen=True)
class ClusterOptions(Settings):
    """The options of the engine `cluster`; a local cluster ends with the engine."""

    title: ClassVar[str] = "Clusters (docs/scaling.md)"

    address: str = setting(
        LOCAL,
        "The cluster, which implies --engine=cluster: local, which starts "
        "--cluster_workers on this machine, or the address of a Dask scheduler, "
        "as tls://HOST:PORT.",
        flag="cluster",
    )
    workers: int = setting(
        None,
        "With --cluster=local, how many workers are started; by default one per core "
        "of this machine or container.",
        flag="cluster_workers",
        within=AT_LEAST_1,
    )
    tls_ca_file: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the certificate (PEM) of the authority that "
        "both sides trust.",
        parse=flag_values.parse_path,
    )
    tls_cert: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the certificate (PEM) of this side.",
        parse=flag_values.parse_path,
    )
    tls_key: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the key (PEM, no passphrase) of --tls_cert.",
        parse=flag_values.parse_path,
    )
    insecure: bool = setting(
        False,
        "Allow --cluster=tcp://HOST:PORT: whoever reaches such a cluster runs code on "
        "all of it.",
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
        "Seconds without an answer after which a cluster's scheduler counts as lost, "
        "and the run ends. With --cluster=local a silent worker is also lost after "
        "them, and others do its work (elsewhere Dask's worker-ttl).",
        flag="cluster_timeout",
        within=ABOVE_0,
    )
    spread: str = setting(
        "auto",
        "What a cluster distributes. runs: one worker computes each run; all machines "
        "must see the data and --output_dir. clients: the packs of each round "
        "(--num_packs, at least as many as workers). auto: runs, if there are at "
        "least two, and as many as workers; else clients.",
        choices=("auto", "runs", "clients"),
    )

    @property
    def files(self) -> dict[str, str]:
        """The paths of the three TLS files, by flag."""
        names = ("tls_ca_file", "tls_cert", "tls_key")
        return {name: expand_path(getattr(self, name)) for name in names}

    def check(self) -> None:
        """Raises a `ClusterSettingError` if the options cannot be used together."""
        if importlib.util.find_spec("distributed") is None:
            raise ClusterSettingError(
                "--engine=cluster needs Dask: pip install 'tff-pmc[cluster]' (`make "
                "venv` installs it)"
            )
        if self.address != LOCAL and not _ADDRESS.fullmatch(self.address):
            raise ClusterSettingError(
                f"--cluster must be {LOCAL}, tls://HOST:PORT or tcp://HOST:PORT; got "
                f"{self.address!r}"
            )
        if self.address != LOCAL and self.workers:
            raise ClusterSettingError(
                "--cluster_workers only applies to --cluster=local, not to "
                f"--cluster={self.address}: remove it"
            )
        with_tls = self.address.startswith("tls:")
        for flag, path in self.files.items():
            if path and not with_tls:
                raise ClusterSettingError(
                    f"--{flag} only applies to --cluster=tls://HOST:PORT, not to "
                    f"--cluster={self.address}: remove it"
                )
            if with_tls and not os.path.isfile(path):
                raise ClusterSettingError(
                    f"--cluster={self.address} needs the files --tls_ca_file, "
                    f"--tls_cert and --tls_key: --{flag}={path} is not a file"
                )
        if self.address.startswith("tcp:") and not self.insecure:
            raise ClusterSettingError(
                f"--cluster={self.address}: everybody who reaches a cluster without "
                "TLS can run code on it: use tls://HOST:PORT with --tls_ca_file, "
                "--tls_cert and --tls_key, or set --insecure_cluster"
            )

    def spreads_runs(self, num_runs: int, num_workers: int) -> bool:
        """Returns whether workers compute whole runs instead of a round's clients."""
        if self.spread != "auto":
            return self.spread == "runs"
        return num_runs >= max(2, num_workers)
