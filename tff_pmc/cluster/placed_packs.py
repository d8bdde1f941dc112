"""The packs that are on the workers of a cluster, to be sent once."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tff_pmc.clients.stored_packs import Reference
from tff_pmc.cluster import tasks, travel
from tff_pmc.cluster.connection import ClusterConnection

REMEMBERED_BYTES = 2_000_000_000
"""The bytes of packs that stay on the workers after a call, all workers together."""


class HeldPack(NamedTuple):
    """A pack on a worker; what refers to a store is the pack itself, and no future."""

    future: Any
    worker: str
    num_bytes: int


class PacksOnWorkers:
    """Packs by a digest of what travels; the ones not used for longest go first."""

    def __init__(self, connection: ClusterConnection) -> None:
        self.connection = connection
        self.held: collections.OrderedDict[str, HeldPack] = collections.OrderedDict()

    def place(
        self, packs: Sequence[Sequence[Any]], workers: Sequence[str]
    ) -> Iterator[tuple[int, HeldPack]]:
        """Puts each worker's stretch of the packs there, unless it is there already.

        A sum is merged with its neighbour's. Each pack is given, by its number, as soon
        as it is there, the workers in turn: its task may begin while others are sent.
        """
        total, share = len(packs), len(workers)
        for number in sorted(range(total), key=lambda n: (n * share % total, n)):
            worker = workers[number * share // total]
            parts = list(map(travel.encoded, packs[number]))
            # References are not kept: they are as small as what would name them.
            if all(isinstance(part, Reference) for part in parts):
                yield number, HeldPack(tasks.to_bytes(parts), worker, 0)
                continue
            key = travel.digest(parts)
            if key not in self.held or self.held[key].worker != worker:
                future = self.connection.send(parts, worker)
                num_bytes = sum(map(travel.num_bytes, parts))
                self.held[key] = HeldPack(future, worker, num_bytes)
            self.held.move_to_end(key)
            yield number, self.held[key]

    def trim(self, limit: int = REMEMBERED_BYTES) -> None:
        """Forgets what is lost, and what was not used for longest beyond the limit."""
        for key, held in list(self.held.items()):
            if held.future.status != "finished":
                del self.held[key]
        total = sum(held.num_bytes for held in self.held.values())
        while total > limit:
            _, held = self.held.popitem(last=False)
            total -= held.num_bytes
