"""The packs that are on the workers of a cluster, to be sent once."""

from __future__ import annotations

import collections
import dataclasses
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from tff_pmc.runtime import pack_bytes
from tff_pmc.runtime.cluster_connection import ClusterConnection

REMEMBERED_BYTES = 2_000_000_000
"""The bytes of packs that stay on the workers after a call, all workers together."""

Tensors = Sequence[tf.Tensor]


@dataclasses.dataclass
class Traffic:
    """Bytes between this process and the workers, without Python's own.

    Attributes:
        packs: of packs, sent to one worker each.
        sent: of what the server sent, a copy for each worker; workers hand it on.
        graphs: of the computations' graphs, a copy for each worker.
        received: of the sums that came back, one for each call.
    """

    packs: int = 0
    sent: int = 0
    graphs: int = 0
    received: int = 0


class HeldPack(NamedTuple):
    """A pack on a worker."""

    future: Any
    worker: str
    num_bytes: int


class PacksOnWorkers:
    """Packs by a digest of what they are; the ones not used for longest go first."""

    def __init__(
        self,
        connection: ClusterConnection,
        traffic: Traffic,
        remembered_bytes: int = REMEMBERED_BYTES,
    ) -> None:
        """Takes the cluster, what counts, and how many bytes stay after a call."""
        self._connection = connection
        self._traffic = traffic
        self._remembered_bytes = remembered_bytes
        self._held: collections.OrderedDict[str, HeldPack] = collections.OrderedDict()
        # Digests by the identity of a pack's tensors: a pack that comes again as the
        # same objects, as evaluation packs do, is not looked at again.
        self._digests: dict[tuple[int, ...], str] = {}

    def place(
        self, packs: Sequence[Tensors], workers: Sequence[str]
    ) -> Iterator[HeldPack]:
        """Puts packs on workers, each where it is already or where there is least.

        Each is given as soon as it is there: its task may begin while others are sent.
        """
        loads = dict.fromkeys(workers, 0)
        found = [
            self._taken(self._digests.get(_identity(pack), ""), loads) for pack in packs
        ]
        for pack, held in zip(packs, found):
            yield held or self._put(pack, loads)

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

    def _taken(self, digest: str, loads: dict[str, int]) -> Optional[HeldPack]:
        held = self._held.get(digest)
        if held is None or held.worker not in loads:
            return None
        # Sent anew where it would be better placed: a worker that died comes back with
        # nothing, while another has all.
        if loads[held.worker] >= min(loads.values()) + held.num_bytes:
            return None
        self._held.move_to_end(digest)
        loads[held.worker] += held.num_bytes
        return held

    def _put(self, pack: Tensors, loads: dict[str, int]) -> HeldPack:
        parts = pack_bytes.encoded(pack)
        digest = pack_bytes.digest(parts)
        if not any(part.was_read for part in parts):
            self._remember(pack, digest)
        held = self._taken(digest, loads)
        if held is None:
            worker = min(loads, key=lambda one: loads[one])
            num_bytes = pack_bytes.num_bytes(parts)
            (future,) = self._connection.client.scatter(
                [parts], workers=[worker], hash=False
            )
            self._traffic.packs += num_bytes
            held = self._held[digest] = HeldPack(future, worker, num_bytes)
            loads[worker] += num_bytes
        return held

    def _remember(self, pack: Tensors, digest: str) -> None:
        identity = _identity(pack)
        self._digests[identity] = digest
        for tensor in pack:
            weakref.finalize(tensor, self._digests.pop, identity, None)


def _identity(pack: Tensors) -> tuple[int, ...]:
    return tuple(map(id, pack))
