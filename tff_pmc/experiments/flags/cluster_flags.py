"""The engine that the flags ask for, and its cluster (no TensorFlow)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from leaf_data.declare import SettingError
from tff_pmc.experiments.flags.command import LR_SEARCH, Command
from tff_pmc.settings.cluster_options import LOCAL, ClusterOptions

_FLAGS = (
    "cluster",
    "tls_ca_file",
    "tls_cert",
    "tls_key",
    "insecure_cluster",
    "cluster_threads",
    "spread",
)


def cluster_of(command: Command, given: Mapping[str, Any]) -> Optional[ClusterOptions]:
    """The cluster that runs TFF's computations; None if another engine does.

    Args:
        command: the call's flags.
        given: values by flag, as `flag_definitions.given` gives them.

    Raises:
        SettingError: flags contradict each other, or the cluster cannot be used as it
            is named; nothing has been asked of it yet.
    """
    asked = [flag for flag in _FLAGS if flag in given]
    if command.engine != "cluster":
        if not asked:
            return None
        if "engine" in given or not command.cluster:
            raise SettingError(
                f"--{asked[0]} goes with --engine=cluster, not with "
                f"--engine={command.engine}"
            )
    if command.experiment == LR_SEARCH and command.spread == "runs":
        raise SettingError(
            f"--spread=runs does not go with --experiment={LR_SEARCH}, whose runs end "
            "when they reach the target: take --spread=clients"
        )
    options = ClusterOptions(
        address=command.cluster or LOCAL,
        tls_ca_file=command.tls_ca_file,
        tls_cert=command.tls_cert,
        tls_key=command.tls_key,
        insecure=command.insecure_cluster,
        threads=command.cluster_threads,
        spread=command.spread,
    )
    options.check()
    return options


def spread_of(spread: str, num_runs: int, num_workers: int) -> str:
    """What is spread, `runs` or `clients`, where `--spread` may leave it open.

    Args:
        spread: as `--spread` has it.
        num_runs: the runs of the call, under all seeds.
        num_workers: the workers of the cluster.
    """
    if spread != "auto":
        return spread
    return "runs" if num_runs >= max(2, num_workers) else "clients"
