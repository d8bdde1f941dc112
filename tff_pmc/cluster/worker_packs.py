"""The packs that workers of a cluster hold, so that each is sent once."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tff_pmc.clients.stored_packs import StoredPackReference
from tff_pmc.cluster import pack_encoding, tasks
from tff_pmc.cluster.connection import ClusterConnection

CACHE_BYTES = 2_000_000_000
"""The bytes of packs that all workers together keep after a call."""


class PlacedPack(NamedTuple):
    """A pack on a worker; for one of a store, `future` is the encoded pack itself."""

    future: Any
    worker: str
    num_bytes: int


class PacksOnWorkers:
    """The packs on workers by digest, least recently used first."""

    def __init__(self, connection: ClusterConnection) -> None:
        self.connection = connection
        self.placed: collections.OrderedDict[str, PlacedPack] = (
            collections.OrderedDict()
        )

    def place(
        self, packs: Sequence[Sequence[Any]], workers: Sequence[str]
    ) -> Iterator[tuple[int, PlacedPack]]:
        """Sends each worker its stretch of the packs, except those that it has.

        A stretch is consecutive, because each sum is merged with its neighbour's.
        Yields each pack with its index as soon as it is sent, one worker after another,
        so that its task may start while others are sent.
        """
        total, share = len(packs), len(workers)
        for index in sorted(range(total), key=lambda n: (n * share % total, n)):
            worker = workers[index * share // total]
            parts = list(map(pack_encoding.encode, packs[index]))
            # References are not kept: they are as small as their digests.
            if all(isinstance(part, StoredPackReference) for part in parts):
                yield index, PlacedPack(tasks.to_bytes(parts), worker, 0)
                continue
            key = pack_encoding.digest(parts)
            if key not in self.placed or self.placed[key].worker != worker:
                future = self.connection.send(parts, worker)
                num_bytes = sum(map(pack_encoding.num_bytes, parts))
                self.placed[key] = PlacedPack(future, worker, num_bytes)
            self.placed.move_to_end(key)
            yield index, self.placed[key]

    def trim(self, limit: int = CACHE_BYTES) -> None:
        """Drops lost packs, and the least recently used ones beyond the limit."""
        for key, pack in list(self.placed.items()):
            if pack.future.status != "finished":
                del self.placed[key]
        total = sum(pack.num_bytes for pack in self.placed.values())
        while total > limit:
            _, pack = self.placed.popitem(last=False)
            total -= pack.num_bytes
