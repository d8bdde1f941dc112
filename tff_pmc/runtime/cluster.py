"""The engine that spreads the clients of a round over the workers of a cluster.

The sum of packs is a tree that their number fixes, so results equal those of
`LocalEngine` with as many threads, to the bit.
"""

from __future__ import annotations

from typing import Union

from tff_pmc.runtime.cluster_connection import ClusterConnection
from tff_pmc.runtime.cluster_sums import ClusterSums
from tff_pmc.runtime.local import LocalEngine
from tff_pmc.runtime.pack_sums import PackGraphs
from tff_pmc.runtime.round_form import SumPacks
from tff_pmc.settings.cluster_options import LOCAL, ClusterOptions


class ClusterEngine(LocalEngine):
    """Runs computations in this process, and their clients on a cluster.

    Attributes:
        connection: the way to the workers.
        sums: what the workers were sent, and what came back.
    """

    def __init__(
        self, cluster: Union[str, ClusterOptions] = LOCAL, *, private: bool = True
    ) -> None:
        """Connects to the cluster; one on this machine is started (about 8 seconds).

        The errors are those of `ClusterConnection`; `private` is of `WorkerEngine`.
        """
        super().__init__(private=private)
        if isinstance(cluster, str):
            cluster = ClusterOptions(cluster)
        self.connection = ClusterConnection(cluster)
        self.sums = ClusterSums(self.connection)
        self.record("clients")

    def record(self, spread: str) -> None:
        """Says what is spread, `runs` or `clients`, for the versions in `run.json`."""
        self.context.recorded = cluster_record(spread, self.connection.terms.threads)

    def close(self) -> None:
        """Leaves the cluster, and ends one that was started here."""
        super().close()
        self.connection.close()

    def _sum_packs(self, graphs: PackGraphs) -> SumPacks:
        return self.sums.of(graphs)


def cluster_record(spread: str, threads: int) -> dict[str, str]:
    """What `run.json` says of a run on a cluster."""
    return {"engine": "cluster", "spread": spread, "threads": str(threads)}
