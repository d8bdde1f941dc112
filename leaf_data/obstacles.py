"""`obstacles`: photographs of three places, where the way is blocked or free.

What "Dual-Criterion Model Aggregation" (Zhang, Yu, Westerlund 2024) uses for its Table
V. Its pictures are not public: this reads a folder of whoever has them, and
`leaf_data.drawn_obstacles` draws a stand-in.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data import by_class, image_folder, partition, places
from leaf_data.celeba_images import DRAWING, PHOTOGRAPH
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import SERVER, FederatedDataset, Origin

PLACES = ("hospital", "simple_room", "warehouse")
"""The paper's three clients, and their folders' names."""

CLASSES = ("free", "blocked")
"""The names of the labels 0 and 1: what is to be detected is 1."""

SIDE = 64
DRAWN_PREFIX = "drawn_"
_TEST_SHARE, _SERVER_SHARE = 0.2, 0.1
_STREAM = 64


def load(
    data_dir: Union[str, os.PathLike[str], None] = None,
    *,
    seed: int = 0,
    cache_dir: Union[str, os.PathLike[str], None] = None,
) -> FederatedDataset:
    """Loads the obstacle pictures, a client a place.

    Without a `data_dir` the folder named by `TFF_PMC_DATA_DIR` counts. It and its
    subfolder `obstacles` are searched for the folders `hospital`, `simple_room` and
    `warehouse`, each with the folders `blocked` and `free` of .jpg or .png pictures.
    Whatever their size, they are resized to 64 x 64 (see `image_folder.read`).

    Of each place a random 20 % of each class are its test pictures, as the paper
    splits. Its Table III counts 510 test pictures, but all accuracies of its Table V
    are multiples of 1/416: how many it tested on is unclear, and the split here is of
    the pictures that are there. Of the others 10 % of each place and class, our
    choice, are the server's evaluation set, and the rest its training pictures.

    Args:
        data_dir: the folder.
        seed: of the split, 0 to 2**32 - 1.
        cache_dir: where to keep the decoded pictures, instead of beside the places'
            folders.

    Returns:
        The data set: x uint8 [64, 64, 3] RGB; y 1 = blocked, 0 = free; clients as in
        `PLACES`. It is named `drawn_obstacles` where a picture is one of
        `leaf_data.drawn_obstacles`.

    Raises:
        DataError: no data found, a folder or picture is missing or not what it should
            be (the message names it), or a place has too few pictures to split.
    """
    random = partition.random_state(seed, _STREAM)
    root = _find(places.folders("obstacles", data_dir))
    folders = [f"{place}/{name}" for place in PLACES for name in CLASSES]
    images = image_folder.read(
        "obstacles", root, folders, SIDE, resize=True, cache_dir=cache_dir
    )
    place, y = np.divmod(images.folder, len(CLASSES))
    train, test, server = [], [], []
    for number, name in enumerate(PLACES):
        rows = np.flatnonzero(place == number)
        test_rows, others = _split(rows, y, _TEST_SHARE, random)
        server_rows, train_rows = _split(others, y, _SERVER_SHARE, random)
        if not len(test_rows) or not len(server_rows):
            raise DataError(
                f"{os.path.join(root, name)}: its {len(rows)} pictures are too few to "
                "be split into training, evaluation and test pictures"
            )
        train.append(train_rows)
        test.append(test_rows)
        server.append(server_rows)

    def examples(parts: Sequence[npt.NDArray[Any]], ids: tuple[str, ...]) -> Examples:
        return Examples.from_parts(images.x, y, parts, ids)

    drawn = any(file.startswith(DRAWN_PREFIX) for file in images.files)
    files = (("/".join(PLACES), images.sha256),)
    return FederatedDataset(
        name="drawn_obstacles" if drawn else "obstacles",
        train_examples=examples(train, PLACES),
        test_examples=examples(test, PLACES),
        num_classes=len(CLASSES),
        pixel_convention=DRAWING if drawn else PHOTOGRAPH,
        origin=Origin(
            "drawn obstacles, no photographs" if drawn else "image folders", files, root
        ),
        options={"seed": int(seed)},
        server_examples=examples([np.concatenate(server)], (SERVER,)),
    )


def _find(folders: tuple[str, ...]) -> str:
    """The folder that holds the places."""
    for folder in folders:
        if any(os.path.isdir(os.path.join(folder, place)) for place in PLACES):
            return folder
    where = " or ".join(folders) or f"{places.ENVIRONMENT_VARIABLE}, which is not set"
    raise DataError(
        f"obstacles: no data in {where}: looked for {', '.join(PLACES)}, each with "
        "the folders blocked and free (the paper's pictures are not public; "
        "drawn_obstacles is a stand-in)"
    )


def _split(
    rows: npt.NDArray[Any],
    y: npt.NDArray[Any],
    fraction: float,
    random: np.random.RandomState,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    part, others = by_class.split(y[rows], fraction, random)
    return rows[part], rows[others]
