"""Base classes of image data sets without clients, and how these are partitioned."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from declared_settings import (
    AT_LEAST_0,
    FROM_0_TO_1,
    Needs,
    Range,
    SettingError,
    setting,
)
from leaf_data import partition
from leaf_data.dataset import Dataset
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.pixels import WHITE_ON_BLACK, PixelConvention

_NUM_CLIENTS, _NUM_CLASSES = 100, 10  # Clients where no other number is set.
# A separate stream: wrong labels do not change which client has which image.
_MISLABEL_STREAM = 1907

LabeledImages = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]
"""Images and labels."""


@dataclasses.dataclass(frozen=True)
class DealtDataset(Dataset):
    """A data set without clients: its examples are dealt to clients, or drawn."""

    num_clients: int = setting(
        0,
        "The number of clients that the images are dealt to; of cifar10 3 or 4, each "
        "with a batch of CIFAR-10; of synthetic the number that are drawn. 0 is 100, "
        "of synthetic 30, and of cifar10 4, or both where an experiment has runs of "
        "both.",
        within=AT_LEAST_0,
        omit_default=True,
    )

    @property
    def note(self) -> str:
        """The number of clients, where it is set."""
        return f"{self.num_clients} clients" if self.num_clients else ""


@dataclasses.dataclass(frozen=True)
class Partitioned(DealtDataset):
    """A data set whose examples are dealt to `num_clients` clients, by default 100.

    Labels, sizes and wrong labels can be varied independently, so that their effects
    can be separated. The test images are always dealt equally and in order, with their
    true labels.
    """

    partition: str = setting(
        "iid",
        "How the training images are dealt to the clients: iid; noniid, which sorts "
        "them by label, cuts them into shards and gives each client two; or "
        "dirichlet, by which a client prefers some classes.",
        choices=("iid", "noniid", "dirichlet"),
    )
    dirichlet_alpha: float = setting(
        0.3,
        "With --partition=dirichlet, how alike the clients' classes are, for each "
        "class: of 0.1 most of a client's images are of one class or two, of 100 all "
        "classes are alike.",
        within=Range(lambda x: 0.01 <= x <= 1e6, "from 0.01 to 1000000"),
        omit_default=True,
        needs=Needs("--partition=dirichlet", lambda on: on.partition == "dirichlet"),
    )
    client_sizes: str = setting(
        "equal",
        "How many training images the clients have: equal, or power_law, by which "
        "sizes fall as 1 / rank.",
        choices=("equal", "power_law"),
        omit_default=True,
    )
    wrong_clients: float = setting(
        0.0,
        "The part of the clients that have wrong training labels, drawn at random.",
        within=FROM_0_TO_1,
        omit_default=True,
    )
    wrong_labels: float = setting(
        0.5,
        "With --wrong_clients, the part of such a client's labels that is wrong.",
        within=FROM_0_TO_1,
        omit_default=True,
        needs=Needs("--wrong_clients", lambda on: on.wrong_clients > 0),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.client_sizes != "equal" and self.partition == "noniid":
            raise SettingError(
                f"--client_sizes={self.client_sizes}: the shards of --partition=noniid "
                "are equal; use iid or dirichlet"
            )

    def options(self) -> dict[str, Any]:
        """Returns the settings that affect the partition, by name."""
        options = super().options()
        unused = {
            "num_clients": not self.num_clients,
            "dirichlet_alpha": self.partition != "dirichlet",
            "client_sizes": self.client_sizes == "equal",
            "wrong_clients": not self.wrong_clients,
            "wrong_labels": not self.wrong_clients,
        }
        return {name: value for name, value in options.items() if not unused.get(name)}

    def _build_federation(
        self,
        name: str,
        train: LabeledImages,
        test: LabeledImages,
        origin: Origin,
        pixels: PixelConvention = WHITE_ON_BLACK,
    ) -> FederatedDataset:
        """Deals images to clients; client i gets the i-th run of the test images."""
        (x, y), count = train, self.num_clients or _NUM_CLIENTS
        if count > len(test[1]):
            raise DataError(
                f"{name}: num_clients={count} is too many: each client needs a test "
                f"image, and there are {len(test[1])}"
            )
        parts = self._parts(y, count)
        if self.wrong_clients:
            random = partition.random_state(self.seed, _MISLABEL_STREAM)
            chosen = random.permutation(count)
            y = y.copy()
            for client in chosen[: round(self.wrong_clients * count)]:
                rows = parts[client]
                y[rows] = partition.mislabel(
                    y[rows], self.wrong_labels, _NUM_CLASSES, random
                )
        test_parts = np.array_split(np.arange(len(test[1])), count)
        ids = [f"client_{index:03d}" for index in range(count)]
        return FederatedDataset(
            name,
            Examples.from_parts(x, y, parts, ids),
            Examples.from_parts(*test, test_parts, ids),
            num_classes=_NUM_CLASSES,
            pixel_convention=pixels,
            origin=origin,
            options=self.options(),
        )

    def _parts(self, labels: npt.NDArray[Any], count: int) -> list[npt.NDArray[Any]]:
        """Returns the rows of each client's training images."""
        if self.partition == "noniid":
            return partition.sorted_shards(labels, count, self.seed)
        # Equal, within one.
        sizes = (len(labels) + np.arange(count, 0, -1) - 1) // count
        if self.client_sizes == "power_law":
            sizes = partition.power_law(len(labels), count, self.seed)
        if self.partition == "dirichlet":
            alpha = self.dirichlet_alpha
            return partition.dirichlet(labels, sizes, alpha, self.seed)
        return partition.iid(labels, sizes, self.seed)
