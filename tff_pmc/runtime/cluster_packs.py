"""The packs that are on the workers of a cluster, to be sent once."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tff_pmc.runtime import pack_bytes
from tff_pmc.runtime.cluster_connection import ClusterConnection

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
    """A pack on a worker."""

    digest: str
    future: Any
    worker: str
    num_bytes: int


class PacksOnWorkers:
    """Packs by a digest of what they are; the ones not used for longest go first."""

    def __init__(self, connection: ClusterConnection, traffic: Traffic) -> None:
        """Takes the cluster, and what counts the bytes that are sent."""
        self._connection = connection
        self._traffic = traffic
        self._remembered_bytes = REMEMBERED_BYTES
        self._held: collections.OrderedDict[str, HeldPack] = collections.OrderedDict()
        # Digests by the identity of a pack's tensors: a pack that comes again as the
        # same objects, as evaluation packs do, is not looked at again.
        self._digests: dict[tuple[int, ...], str] = {}

    def place(
        self, packs: Sequence[Tensors], workers: Sequence[str]
    ) -> Iterator[tuple[int, HeldPack]]:
        """Puts packs on workers, each where it is already, or neighbours together.

        A sum is merged with its neighbour's. Each pack is given, by its number, as soon
        as it is there: its task may begin while others are sent.
        """
        loads = dict.fromkeys(workers, 0)
        most = -(-len(packs) // len(workers))
        new = []
        for number, pack in enumerate(packs):
            held = self._held.get(self._digests.get(_identity(pack), ""))
            # Sent anew where the worker has its share: one that died comes back with
            # nothing, while another has all.
            if held is None or loads.get(held.worker, most) >= most:
                new.append(number)
            else:
                loads[held.worker] += 1
                yield number, self._used(held)
        shares = _shares(len(new), loads)
        ends = itertools.accumulate(shares.values())
        stretches = [new[end - n : end] for end, n in zip(ends, shares.values())]
        for turn in itertools.zip_longest(*stretches):
            for worker, number in zip(shares, turn):
                if number is not None:
                    yield number, self._put(packs[number], worker)

    def forget_lost(self) -> None:
        """Forgets the packs that no worker has any more."""
        there = self._connection.still_there(
            [held.future for held in self._held.values()]
        )
        for digest, held in list(self._held.items()):
            if held.future.key not in there:
                del self._held[digest]

    def trim(self) -> None:
        """Forgets the packs that were not used for longest, down to the limit."""
        total = sum(held.num_bytes for held in self._held.values())
        while total > self._remembered_bytes:
            _, held = self._held.popitem(last=False)
            total -= held.num_bytes

    def _used(self, held: HeldPack) -> HeldPack:
        self._held.move_to_end(held.digest)
        return held

    def _put(self, pack: Tensors, worker: str) -> HeldPack:
        parts = pack_bytes.encoded(pack)
        digest = pack_bytes.digest(parts)
        if not any(part.was_read for part in parts):
            self._remember(pack, digest)
        held = self._held.get(digest)
        if held is not None and held.worker == worker:
            return self._used(held)
        num_bytes = pack_bytes.num_bytes(parts)
        (future,) = self._connection.client.scatter(
            [parts], workers=[worker], hash=False
        )
        self._traffic.packs += num_bytes
        self._held[digest] = HeldPack(digest, future, worker, num_bytes)
        return self._used(self._held[digest])

    def _remember(self, pack: Tensors, digest: str) -> None:
        identity = _identity(pack)
        self._digests[identity] = digest
        for tensor in pack:
            weakref.finalize(tensor, self._digests.pop, identity, None)


def _identity(pack: Tensors) -> tuple[int, ...]:
    return tuple(map(id, pack))


def _shares(number: int, loads: Mapping[str, int]) -> dict[str, int]:
    """How many more packs each worker gets, so that all have about as many."""
    total = dict(loads)
    for _ in range(number):
        total[min(total, key=lambda worker: total[worker])] += 1
    return {worker: total[worker] - load for worker, load in loads.items()}
