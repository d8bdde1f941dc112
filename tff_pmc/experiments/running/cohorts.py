"""The clients that take part in a round (no TensorFlow)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import leaf_data
from tff_pmc import criteria as criteria_lib
from tff_pmc.settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.systems.setup import Setup


def cohort(seed: int, round_num: int, num_clients: int, size: int) -> list[int]:
    """Chooses a round's clients: a pure function of (seed, round).

    They are `size` different indices in [0, num_clients), ascending.
    """
    generator = np.random.default_rng([seed, round_num])
    chosen = generator.choice(num_clients, size, replace=False)
    return sorted(int(k) for k in chosen)


def choose_cohort(
    settings: RunSettings, data: leaf_data.FederatedDataset, round_num: int
) -> list[int]:
    """The clients of a round, among those that have training examples."""
    able = np.flatnonzero(data.train_examples.sizes)
    size = settings.training.cohort_size(len(able), settings.dataset)
    chosen = cohort(settings.training.cohort_seed, round_num, len(able), size)
    return [int(able[place]) for place in chosen]


def pack_cohort(setup: Setup, chosen: Sequence[int]) -> list[Any]:
    """A cohort's packs; see `packing.pack`."""
    from tff_pmc.clients import packing

    settings, data = setup.settings, setup.data
    table = data.client_table.values
    alone = settings.system.one_client_per_pack
    return packing.pack(
        data.train_examples,
        chosen,
        num_packs=len(chosen) if alone else settings.training.num_packs,
        attributes={
            name: table[name] for name in settings.aggregation.client_attributes
        },
        example_attributes=criteria_lib.example_attributes(setup.criteria),
    )
