"""A resumable data source for TFF programs that draws the command's cohorts."""

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

    A cohort is a pure function of the seed and the round: it equals that of
    `run_experiments.py` with the same `--cohort_seed` in the same round, and a resumed
    program draws the same cohorts. TFF's `DatasetDataSource` draws without a seed,
    saves all data with each round's state, and fails for datasets of `TestClientData`
    with "cannot pickle 'Graph' object".

    Args:
        clients: `Examples`, whose clients with examples are drawn and packed; or a
            `ClientData`, whose datasets are passed on unchanged: preprocess them.
        seed: the seed of the cohorts, 0 or more.
        **packing: for `Examples` only, the options of `pack`.

    Returns:
        The data source. `select(k)` of its iterators returns the data of k different
        clients, and `select()` that of all clients. It raises a `ValueError` if there
        are fewer clients, and so does restoring an iterator that was saved with other
        clients or another seed.

    Raises:
        ValueError: the seed is negative, or no client has examples.
        TypeError: `clients` is neither of them, or options of packing are given for a
            `ClientData`.

    Examples:
        >>> source = data_source(data.train_examples, seed=3)
        >>> source.iterator().select(10)  # As tff_pmc.pack makes them.
    """
    if isinstance(clients, leaf_data.Examples):

        def pack_cohort(indices: Any) -> list[Any]:
            return pack(clients, [ClientNumber(k) for k in indices], **packing)

        return _CohortSource(clients.client_ids, clients.sizes, seed, pack_cohort)
    if not isinstance(clients, tff.simulation.datasets.ClientData):
        raise TypeError(
            "clients must be leaf_data.Examples or a ClientData, got a "
            f"{type(clients).__name__}"
        )
    if packing:
        raise TypeError(
            f"{', '.join(packing)}: a ClientData is not packed: remove the options of "
            "packing, or pass leaf_data.Examples"
        )
    ids, create = clients.client_ids, clients.create_tf_dataset_for_client
    sizes = np.ones(len(ids), np.int64)  # Unknown: every client may be drawn.
    return _CohortSource(
        ids, sizes, seed, lambda indices: [create(ids[k]) for k in indices]
    )


class _CohortSource(tff.program.FederatedDataSource):
    """Draws cohorts of client indices and converts them to data with `make_data`."""

    def __init__(
        self, ids: Any, sizes: Any, seed: int, make_data: Callable[[Any], list[Any]]
    ) -> None:
        if seed < 0:
            raise ValueError(f"seed must be 0 or more, got {seed}")
        self._sampler, self._data = CohortSampler(sizes, seed), make_data
        if not len(self._sampler.trainable):
            raise ValueError("clients: no client has examples")
        names = hashlib.sha256("\n".join(ids).encode()).hexdigest()
        self.origin = {"seed": seed, "clients": len(ids), "sha256": names}
        # TFF restores a saved iterator from its class alone.
        self._iterators = type("Cohorts", (_Cohorts,), {"source": self})
        (first,) = make_data(self._sampler.trainable[:1])
        element = tff.types.tensorflow_to_type(first.element_spec)
        self._type = tff.FederatedType(tff.SequenceType(element), tff.CLIENTS)

    @property
    def federated_type(self) -> tff.FederatedType:
        """The type of a cohort's data."""
        return self._type

    def iterator(self) -> tff.program.FederatedDataSourceIterator:
        """Returns an iterator that starts at the first round's cohort."""
        return self._iterators(0)

    def cohort(self, round_num: int, size: Optional[int]) -> Any:
        """Returns the data of a round's clients."""
        num_trainable = len(self._sampler.trainable)
        size = num_trainable if size is None else size
        if not 1 <= size <= num_trainable:
            raise ValueError(
                f"a cohort must have 1 to {num_trainable} clients, all that have "
                f"examples; got {size}"
            )
        return self._data(self._sampler.draw(round_num, size).clients)


class _Cohorts(tff.program.FederatedDataSourceIterator):
    """Counts the drawn cohorts; copies share the source, which holds the data."""

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
        """Returns the position and the origin of the cohorts, without their data."""
        return json.dumps({"drawn": self._drawn, **self.source.origin}).encode()

    @classmethod
    def from_bytes(cls, buffer: bytes) -> _Cohorts:
        """Restores an iterator that was saved from this source or an equal one."""
        saved = json.loads(buffer)
        drawn = saved.pop("drawn")
        for name, here in cls.source.origin.items():
            if saved.get(name) != here:
                raise ValueError(
                    "the program was saved with another data source: its "
                    f"{name} was {saved.get(name)}, and is {here} here; resume with "
                    "the same source"
                )
        return cls(drawn)
