"""The packs that are on the workers of a cluster, to be sent once, as what travels."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tff_pmc.clients.stored_packs import Reference
from tff_pmc.cluster import tasks, travel
from tff_pmc.cluster.connection import ClusterConnection

REMEMBERED_BYTES = 2_000_000_000
"""The bytes of packs that stay on the workers after a call, all workers together."""

Tensors = Sequence[tf.Tensor]


@dataclasses.dataclass
class Traffic:
    """Bytes between this process and the workers, without Python's own.

    `packs` go to one worker each; what the server `sent` and the computations' `graphs`
    to each worker; one sum is `received` in each call.
    """

    packs: int = 0
    sent: int = 0
    graphs: int = 0
    received: int = 0


class HeldPack(NamedTuple):
    """A pack on a worker; what refers to a store is the pack itself, and no future."""

    future: Any
    worker: str
    num_bytes: int


class PacksOnWorkers:
    """Packs by a digest of what travels; the ones not used for longest go first."""

    def __init__(self, connection: ClusterConnection) -> None:
        self.connection = connection
        self.traffic = Traffic()
        self._remembered_bytes = REMEMBERED_BYTES
        self._held: collections.OrderedDict[str, HeldPack] = collections.OrderedDict()

    def place(
        self, packs: Sequence[Tensors], workers: Sequence[str]
    ) -> Iterator[tuple[int, HeldPack]]:
        """Puts packs on workers, each where it is already, or neighbours together.

        A sum is merged with its neighbour's. Each pack is given, by its number, as soon
        as it is there: its task may begin while others are sent.
        """
        loads = dict.fromkeys(workers, 0)
        most = -(-len(packs) // len(workers))
        new = {}
        for number, pack in enumerate(packs):
            parts = list(map(travel.encoded, pack))
            # References are not kept: they are as small as what would name them.
            refers = all(isinstance(part, Reference) for part in parts)
            key = "" if refers else travel.digest(parts)
            held = self._held.get(key)
            # Sent anew where the worker has its share: one that died comes back with
            # nothing, while another has all.
            if held is None or loads.get(held.worker, most) >= most:
                new[number] = key, parts
            else:
                loads[held.worker] += 1
                self._held.move_to_end(key)
                yield number, held
        shares, waiting = _shares(len(new), loads), iter(list(new))
        stretches = [list(itertools.islice(waiting, n)) for n in shares.values()]
        for turn in itertools.zip_longest(*stretches):
            for worker, number in zip(shares, turn):
                if number is not None:
                    yield number, self._put(*new.pop(number), worker)

    def forget_lost(self) -> None:
        """Forgets the packs that no worker has any more."""
        there = self.connection.still_there(
            [held.future for held in self._held.values()]
        )
        for key, held in list(self._held.items()):
            if held.future.key not in there:
                del self._held[key]

    def trim(self) -> None:
        """Forgets the packs that were not used for longest, down to the limit."""
        total = sum(held.num_bytes for held in self._held.values())
        while total > self._remembered_bytes:
            _, held = self._held.popitem(last=False)
            total -= held.num_bytes

    def _put(self, key: str, parts: list[travel.Part], worker: str) -> HeldPack:
        num_bytes = sum(map(travel.num_bytes, parts))
        self.traffic.packs += num_bytes
        if not key:
            return HeldPack(tasks.to_bytes(parts), worker, num_bytes)
        (future,) = self.connection.client.scatter(
            [parts], workers=[worker], hash=False
        )
        self._held[key] = HeldPack(future, worker, num_bytes)
        self._held.move_to_end(key)
        return self._held[key]


def _shares(number: int, loads: Mapping[str, int]) -> dict[str, int]:
    """How many more packs each worker gets, so that all have about as many."""
    total = dict(loads)
    for _ in range(number):
        total[min(total, key=lambda worker: total[worker])] += 1
    return {worker: total[worker] - load for worker, load in loads.items()}
