"""The engine that spreads the clients of a round over the workers of a cluster.

The sum of packs is a tree that their number fixes, so results equal those of
`LocalEngine` with as many threads, to the bit.
"""

from __future__ import annotations

from typing import Union

from tff_pmc.runtime.cluster_connection import ClusterConnection
from tff_pmc.runtime.cluster_packs import REMEMBERED_BYTES
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
        self,
        cluster: Union[str, ClusterOptions] = LOCAL,
        *,
        private: bool = True,
        remembered_bytes: int = REMEMBERED_BYTES,
    ) -> None:
        """Connects to the cluster; one on this machine is started (about 8 seconds).

        The errors are those of `ClusterConnection`; `remembered_bytes` of packs stay on
        the workers after a call, so that packs that come again are not sent again.
        """
        super().__init__(private=private)
        if isinstance(cluster, str):
            cluster = ClusterOptions(cluster)
        self.connection = ClusterConnection(cluster)
        self.sums = ClusterSums(self.connection, remembered_bytes)
        self.record("clients")

    @property
    def bytes_sent(self) -> int:
        """The bytes of tensors and graphs that went to workers so far."""
        traffic = self.sums.traffic
        return traffic.packs + traffic.sent + traffic.graphs

    @property
    def bytes_received(self) -> int:
        """The bytes of sums that came back so far."""
        return self.sums.traffic.received

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
