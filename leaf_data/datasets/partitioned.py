"""The setting of the data sets whose examples come without clients."""

from __future__ import annotations

import dataclasses

from leaf_data.dataset import Dataset
from leaf_data.settings import setting
from leaf_data.splits import partition as partitions


@dataclasses.dataclass(frozen=True)
class Partitioned(Dataset):
    """A data set whose examples come without clients and are dealt to 100 here.

    Attributes:
        partition: the name of the partition, see `splits.partition.by_name`.
    """

    partition: str = setting(
        "iid",
        "How the training images are dealt to the clients: iid, or noniid, which sorts "
        "them by label, cuts them into 200 shards and gives each client two.",
        choices=partitions.NAMES,
    )
