"""`obstacles`: photographs of three places, where the way is blocked or free.

"Dual-Criterion Model Aggregation" (Zhang, Yu, Westerlund 2024) has such pictures for
its Table V and gives no address of them: this reads a folder of whoever has them.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from leaf_data import partition
from leaf_data.dataset import Dataset, register
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import SERVER, FederatedDataset, Origin
from leaf_data.formats import data_files, image_folder
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import PHOTOGRAPH

PLACES = ("hospital", "simple_room", "warehouse")  # The paper's three clients.
CLASSES = ("free", "blocked")  # What is to be detected has the label 1.
SIDE = 64  # The width and height of the pictures, in pixels.


@dataclasses.dataclass(frozen=True)
class Obstacles(Dataset):
    """The obstacle pictures, in which each place is a client.

    Of each place and class a random 20 % are its test pictures, of the others 10 % are
    the server's, and the rest its training pictures. Those shares are ours.
    """

    cached = True

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [64, 64, 3] RGB; y 1 = blocked, 0 = free.

        Each place has a folder with the folders `blocked` and `free` of pictures.
        """
        candidates = data_files.folders("obstacles", data_dir)
        root = data_files.find(
            "obstacles", candidates, os.path.join(PLACES[0], CLASSES[0])
        )
        folders = [f"{place}/{label}" for place in PLACES for label in CLASSES]
        x, sha256, of_folder = image_folder.read(
            "obstacles", root, folders, SIDE, cache_dir, resize=True
        )
        of_place, y = np.divmod(of_folder, len(CLASSES))
        random = partition.random_state(self.seed, 64)
        parts: list[list[Any]] = [[], [], []]
        train, test, server = parts
        for number, place in enumerate(PLACES):
            rows = np.flatnonzero(of_place == number)
            for share, part in ((0.2, test), (0.1, server)):
                drawn, rest = partition.split_classes(y[rows], share, random)
                if not len(drawn):
                    raise DataError(f"{root}: {place} has too few pictures to be split")
                part.append(rows[drawn])
                rows = rows[rest]
            train.append(rows)
        return FederatedDataset(
            "obstacles",
            Examples.from_parts(x, y, train, PLACES),
            Examples.from_parts(x, y, test, PLACES),
            num_classes=len(CLASSES),
            pixel_convention=PHOTOGRAPH,
            origin=Origin("image folders", (("images", sha256),), root),
            options=self.options(),
            class_names=CLASSES,
            server_examples=Examples.from_parts(
                x, y, [np.concatenate(server)], [SERVER]
            ),
        )


register("obstacles", Obstacles)
