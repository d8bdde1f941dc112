"""The engine that the flags ask for, and its cluster (no TensorFlow)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import ClassVar, Optional

from leaf_data.settings import AT_LEAST_1, SettingError, Settings, setting
from tff_pmc.settings.cluster_options import (
    ENGINES,
    LOCAL,
    SPREADS,
    ClusterOptions,
)


@dataclasses.dataclass(frozen=True)
class EngineOptions(Settings):
    """What runs TFF's computations, and where."""

    title: ClassVar[str] = "Engines and clusters (docs/scaling.md)"

    engine: str = setting(
        "local",
        "What runs TFF's computations. local: this process, the fastest for one run on "
        "one machine. worker: TFF's own worker, a process of its own, to hold the "
        "others against it. cluster: the workers of Dask on this or on many machines, "
        "for many runs or large cohorts (docs/scaling.md).",
        choices=ENGINES,
    )
    cluster: str = setting(
        "",
        "The cluster of --engine=cluster, which need not be given then: local, which "
        "starts a worker for each core of this machine, or where a Dask scheduler "
        "listens, as tls://HOST:PORT. By default local.",
    )
    tls_ca_file: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the certificate (PEM) of the authority that "
        "both sides trust.",
    )
    tls_cert: str = setting(
        "", "With --cluster=tls://HOST:PORT, the certificate (PEM) of this side."
    )
    tls_key: str = setting(
        "",
        "With --cluster=tls://HOST:PORT, the key (PEM, no passphrase) of --tls_cert.",
    )
    insecure_cluster: bool = setting(
        False,
        "Allow --cluster=tcp://HOST:PORT beyond this machine: whoever reaches such a "
        "cluster runs code on all of it.",
    )
    cluster_threads: int = setting(
        None,
        "TensorFlow's threads within an operation, in each worker of a cluster; by "
        "default as many as this process would have, so that results are equal to the "
        "bit.",
        within=AT_LEAST_1,
    )
    spread: str = setting(
        "auto",
        "What a cluster shares out. runs: each run is made by one worker; data and "
        "--output_dir must be where all machines find them. clients: the packs of each "
        "round (--num_packs, at least as many as workers). auto: runs, if there are at "
        "least two, and as many as workers; else clients.",
        choices=SPREADS,
    )
    private_worker: bool = setting(
        True,
        "Run TFF's worker, where one is needed, in a network namespace of its own: "
        "nothing listens.",
    )

    def cluster_of(self, given: Collection[str]) -> Optional[ClusterOptions]:
        """The cluster that runs TFF's computations; None if another engine does."""
        if self.engine != "cluster":
            of_others = ("engine", "private_worker")
            asked = [
                f for f in EngineOptions.flags() if f in given and f not in of_others
            ]
            if not asked:
                return None
            if "engine" in given or not self.cluster:
                raise SettingError(
                    f"--{asked[0]} goes with --engine=cluster, not with "
                    f"--engine={self.engine}"
                )
        options = ClusterOptions(
            address=self.cluster or LOCAL,
            tls_ca_file=self.tls_ca_file,
            tls_cert=self.tls_cert,
            tls_key=self.tls_key,
            insecure=self.insecure_cluster,
            threads=self.cluster_threads,
            spread=self.spread,
        )
        options.check()
        return options


def spread_of(spread: str, num_runs: int, num_workers: int) -> str:
    """What is spread, `runs` or `clients`, where `--spread` may leave it open."""
    if spread != "auto":
        return spread
    return "runs" if num_runs >= max(2, num_workers) else "clients"
