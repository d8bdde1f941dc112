"""The packs that are on the workers of a cluster, to be sent once."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tff_pmc.clients.stored_packs import Reference
from tff_pmc.cluster import pack_encoding, tasks
from tff_pmc.cluster.connection import ClusterConnection

CACHE_BYTES = 2_000_000_000
"""The bytes of packs that stay on the workers after a call, all workers together."""


class PlacedPack(NamedTuple):
    """A pack on a worker; what refers to a store is the pack itself, and no future."""

    future: Any
    worker: str
    num_bytes: int


class PacksOnWorkers:
    """Packs by a digest of what travels; the ones not used for longest go first."""

    def __init__(self, connection: ClusterConnection) -> None:
        self.connection = connection
        self.placed: collections.OrderedDict[str, PlacedPack] = (
            collections.OrderedDict()
        )

    def place(
        self, packs: Sequence[Sequence[Any]], workers: Sequence[str]
    ) -> Iterator[tuple[int, PlacedPack]]:
        """Puts each worker's stretch of the packs there, unless it is there already.

        A sum is merged with its neighbour's. Each pack is given, by its number, as soon
        as it is there, the workers in turn: its task may begin while others are sent.
        """
        total, share = len(packs), len(workers)
        for number in sorted(range(total), key=lambda n: (n * share % total, n)):
            worker = workers[number * share // total]
            parts = list(map(pack_encoding.encode, packs[number]))
            # References are not kept: they are as small as what would name them.
            if all(isinstance(part, Reference) for part in parts):
                yield number, PlacedPack(tasks.to_bytes(parts), worker, 0)
                continue
            key = pack_encoding.digest(parts)
            if key not in self.placed or self.placed[key].worker != worker:
                future = self.connection.send(parts, worker)
                num_bytes = sum(map(pack_encoding.num_bytes, parts))
                self.placed[key] = PlacedPack(future, worker, num_bytes)
            self.placed.move_to_end(key)
            yield number, self.placed[key]

    def trim(self, limit: int = CACHE_BYTES) -> None:
        """Forgets what is lost, and what was not used for longest beyond the limit."""
        for key, held in list(self.placed.items()):
            if held.future.status != "finished":
                del self.placed[key]
        total = sum(held.num_bytes for held in self.placed.values())
        while total > limit:
            _, held = self.placed.popitem(last=False)
            total -= held.num_bytes
