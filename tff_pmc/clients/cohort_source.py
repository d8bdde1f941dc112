"""The cohorts of the command as a data source for a program of TFF, resumable."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Callable, ClassVar, Optional, Union

import numpy as np
import tensorflow_federated as tff
from typing_extensions import Unpack

import leaf_data
from leaf_data.client_ids import ClientNumber
from tff_pmc.clients.packing import PackingOptions, pack
from tff_pmc.selections import CohortSampler


def data_source(
    clients: Union[leaf_data.Examples, tff.simulation.datasets.ClientData],
    *,
    seed: int = 0,
    **packing: Unpack[PackingOptions],
) -> tff.program.FederatedDataSource:
    """Wraps the clients of a federation for `tff.learning.programs.train_model`.

    A cohort is a pure function of the seed and of how many were drawn before: it is
    that of `run_experiments.py` with this `--cohort_seed` in the same round. A program
    that resumes draws what it would have drawn. TFF's `DatasetDataSource` draws
    without a seed, saves all data with each round's state, and ends over datasets of
    `TestClientData` with "cannot pickle 'Graph' object".

    Args:
        clients: `Examples`, of which packs are made, of clients that have examples; or
            a `ClientData`, whose datasets are given as they are: preprocess them.
        seed: what the cohorts are drawn from, 0 or more.
        **packing: of `Examples`, the options of `pack`.

    Returns:
        The data source. `select(k)` of its iterators gives k different clients, and
        without k all of them; a `ValueError` reports that there are fewer. So does an
        iterator that was saved of other clients or with another seed.

    Raises:
        ValueError: the seed is negative, or no client has examples.
        TypeError: `clients` is neither, or a `ClientData` is to be packed.

    Examples:
        >>> source = data_source(data.train_examples, seed=3)
        >>> source.iterator().select(10)  # As tff_pmc.pack makes them.
    """
    if isinstance(clients, leaf_data.Examples):

        def pack_cohort(places: Any) -> list[Any]:
            return pack(clients, [ClientNumber(k) for k in places], **packing)

        return _CohortSource(clients.client_ids, clients.sizes, seed, pack_cohort)
    if not isinstance(clients, tff.simulation.datasets.ClientData):
        raise TypeError(
            "clients must be leaf_data.Examples or a ClientData, got a "
            f"{type(clients).__name__}"
        )
    if packing:
        raise TypeError(
            f"{', '.join(packing)}: the clients of a ClientData are not packed; "
            "leaf_data.Examples are"
        )
    ids, create = clients.client_ids, clients.create_tf_dataset_for_client
    sizes = np.ones(len(ids), np.int64)  # Not known: whoever is there takes part.
    return _CohortSource(
        ids, sizes, seed, lambda places: [create(ids[k]) for k in places]
    )


class _CohortSource(tff.program.FederatedDataSource):
    """The clients of a federation, by their places in it, of which `data` is made."""

    def __init__(
        self, ids: Any, sizes: Any, seed: int, data: Callable[[Any], list[Any]]
    ) -> None:
        if seed < 0:
            raise ValueError(f"seed must be 0 or more, got {seed}")
        self._sampler, self._data = CohortSampler(sizes, seed), data
        if not len(self._sampler.trainable):
            raise ValueError("clients: no client has examples")
        names = hashlib.sha256("\n".join(ids).encode()).hexdigest()
        self.origin = {"seed": seed, "clients": len(ids), "sha256": names}
        # TFF makes a saved iterator again with nothing but its class.
        self._iterators = type("Cohorts", (_Cohorts,), {"source": self})
        (first,) = data(self._sampler.trainable[:1])
        element = tff.types.tensorflow_to_type(first.element_spec)
        self._type = tff.FederatedType(tff.SequenceType(element), tff.CLIENTS)

    @property
    def federated_type(self) -> tff.FederatedType:
        """The type of a cohort's data."""
        return self._type

    def iterator(self) -> tff.program.FederatedDataSourceIterator:
        """Begins with the first round's cohort."""
        return self._iterators(0)

    def cohort(self, round_num: int, size: Optional[int]) -> Any:
        """Returns the data of a round's clients."""
        most = len(self._sampler.trainable)
        size = most if size is None else size
        if not 1 <= size <= most:
            raise ValueError(f"a cohort has 1 to {most} clients here, not {size}")
        return self._data(self._sampler.draw(round_num, size).clients)


class _Cohorts(tff.program.FederatedDataSourceIterator):
    """Counts the rounds; all else is its source's, which copies share."""

    source: ClassVar[_CohortSource]

    def __init__(self, drawn: int) -> None:
        self._drawn = drawn

    def __deepcopy__(self, memo: Any) -> _Cohorts:
        return type(self)(self._drawn)

    @property
    def federated_type(self) -> tff.FederatedType:
        """The type of a cohort's data."""
        return self.source.federated_type

    def select(self, k: Optional[int] = None) -> Any:
        """Returns the next k clients' data, or all clients'."""
        cohort = self.source.cohort(self._drawn + 1, k)
        self._drawn += 1
        return cohort

    def to_bytes(self) -> bytes:
        """Returns what a program's state has of it: no data."""
        return json.dumps({"drawn": self._drawn, **self.source.origin}).encode()

    @classmethod
    def from_bytes(cls, buffer: bytes) -> _Cohorts:
        """Restores the iterator that was saved of this source, or of an equal one."""
        saved = json.loads(buffer)
        drawn = saved.pop("drawn")
        for name, here in cls.source.origin.items():
            if saved.get(name) != here:
                raise ValueError(
                    "the program was saved with another data source: its "
                    f"{name} was {saved.get(name)}, and is {here} here"
                )
        return cls(drawn)
