"""`obstacles`: photographs of three places, where the way is blocked or free.

What "Dual-Criterion Model Aggregation" (Zhang, Yu, Westerlund 2024) uses for its Table
V. It gives no address of its pictures: this reads a folder of whoever has them, and
`leaf_data.datasets.drawn_obstacles` draws a stand-in.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.dataset import Dataset, register
from leaf_data.datasets.celeba_files import DRAWN_PREFIX
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import SERVER, FederatedDataset, Origin
from leaf_data.formats import data_files, image_folder
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import DRAWING, PHOTOGRAPH
from leaf_data.splits import partition

PLACES = ("hospital", "simple_room", "warehouse")  # The paper's three clients.
CLASSES = ("free", "blocked")  # What is to be detected has the label 1.
SIDE = 64  # The width and height of the pictures, in pixels.
# The folders of a split that is given, by the paper's words for its sets.
TRAINING, EVALUATION, VALIDATION = "training", "evaluation", "validation"
# The paper's Tables II and III: pictures, and the share that is blocked, percent.
PRINTED = {
    f"{TRAINING}/hospital": (272, 46),
    f"{TRAINING}/simple_room": (217, 48),
    f"{TRAINING}/warehouse": (397, 59),
    EVALUATION: (452, 47),
    VALIDATION: (510, 47),
}
_TEST_SHARE, _SERVER_SHARE = 0.2, 0.1
_STREAM, _CUT_STREAM = 64, 65

_Rows = list[npt.NDArray[Any]]
# The rows of each place's training and test pictures, and of the server's.
_Split = tuple[_Rows, _Rows, npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class Obstacles(Dataset):
    """The obstacle pictures, in which each place is a client.

    The paper has three sets: training pictures of each place (Table II), and of no
    place an evaluation set, which scores the clients' models, and a validation set,
    which is reported (Table III). Pictures in folders of these names are taken as they
    are: the evaluation set is the server's, the validation set is shuffled so that the
    classes take turns and cut into equal parts, one a client, and counts over all
    clients are counts over it. Where the numbers are not those of the two tables, the
    data set's source says so.

    Pictures in folders of the places alone are divided here: of each place and class a
    random 20 % are its test pictures, of the others 10 % the server's, and the rest
    its training pictures. Those shares are ours.

    All accuracies of the paper's Table V are multiples of 1/416, and its validation set
    has 510 pictures: how many it tested on is unclear.
    """

    cached = True

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [64, 64, 3] RGB; y 1 = blocked, 0 = free.

        It looks for the folders `training/PLACE`, `evaluation` and `validation`, a
        split that is given, or for `PLACE`, to be split here: hospital, simple_room and
        warehouse, each with the folders `blocked` and `free` of .jpg or .png pictures
        of any size. The data set is named `drawn_obstacles` where a picture is one of
        `leaf_data.datasets.drawn_obstacles`.
        """
        root, given = _find(data_files.folders("obstacles", data_dir))
        sets = tuple(PRINTED) if given else PLACES
        folders = [f"{name}/{label}" for name in sets for label in CLASSES]
        images, of_folder = image_folder.read(
            "obstacles", root, folders, SIDE, cache_dir, resize=True
        )
        of_set, y = np.divmod(of_folder, len(CLASSES))
        rows = [np.flatnonzero(of_set == number) for number in range(len(sets))]
        drawn = any(f"/{DRAWN_PREFIX}" in file for file in images.files)
        source = "drawn obstacles, no photographs" if drawn else "image folders"
        if given:
            split = _as_given(root, rows, y, self.seed)
            counts = [np.bincount(y[own], minlength=len(CLASSES)) for own in rows]
            source += f", split as given ({_against_the_paper(counts)})"
        else:
            split = _divided(root, rows, y, self.seed)
            source += ", split at random"
        _check_apart(root, split, images)
        train, test, server = split
        return FederatedDataset(
            "drawn_obstacles" if drawn else "obstacles",
            Examples.from_parts(images.x, y, train, PLACES),
            Examples.from_parts(images.x, y, test, PLACES),
            num_classes=len(CLASSES),
            pixel_convention=DRAWING if drawn else PHOTOGRAPH,
            origin=Origin(source, (("/".join(PLACES), images.sha256),), root),
            options=self.options(),
            server_examples=Examples.from_parts(images.x, y, [server], [SERVER]),
        )


register("obstacles", Obstacles)


def _find(folders: tuple[str, ...]) -> tuple[str, bool]:
    """Returns the first folder that holds pictures, and whether a split is given."""
    for folder in folders:
        if os.path.isdir(os.path.join(folder, TRAINING)):
            return folder, True
        if any(os.path.isdir(os.path.join(folder, place)) for place in PLACES):
            return folder, False
    words = (
        f"{TRAINING}, {EVALUATION} and {VALIDATION}, or for {', '.join(PLACES)}, each "
        "with the folders blocked and free (the paper gives no address of its "
        "pictures; drawn_obstacles is a stand-in)"
    )
    raise data_files.missing("obstacles", folders, words)


def _as_given(root: str, rows: _Rows, y: npt.NDArray[Any], seed: int) -> _Split:
    """The sets of the folders; the validation set is cut into the clients' parts."""
    *train, server, validation = rows
    if len(validation) < len(PLACES):
        raise DataError(f"{os.path.join(root, VALIDATION)}: has too few pictures")
    random = partition.random_state(seed, _CUT_STREAM)
    return train, partition.equal_parts(validation, y, len(PLACES), random), server


def _divided(root: str, rows: _Rows, y: npt.NDArray[Any], seed: int) -> _Split:
    """Test, evaluation and training pictures of each place, by class at random."""
    random = partition.random_state(seed, _STREAM)

    def cut(own: npt.NDArray[Any], share: float) -> _Rows:
        return [own[part] for part in partition.split_classes(y[own], share, random)]

    train, test, server = [], [], []
    for name, own in zip(PLACES, rows):
        for_test, others = cut(own, _TEST_SHARE)
        for_server, for_training = cut(others, _SERVER_SHARE)
        if not len(for_test) or not len(for_server):
            raise DataError(
                f"{os.path.join(root, name)}: its {len(own)} pictures are too few "
                "to be split into training, evaluation and test pictures"
            )
        train.append(for_training)
        test.append(for_test)
        server.append(for_server)
    return train, test, np.concatenate(server)


def _check_apart(root: str, split: _Split, images: image_folder.Images) -> None:
    """Refuses a picture that is, under two names, in two of the sets."""
    seen: dict[str, str] = {}  # The files of the sets before, by their digests.
    for rows in map(np.concatenate, (split[0], split[1], [split[2]])):
        own = {images.sha256s[row]: images.files[row] for row in rows}
        for digest in own.keys() & seen.keys():
            raise DataError(
                f"{root}: {seen[digest]} and {own[digest]} are one picture, which "
                "would be in two of the training, test and evaluation pictures"
            )
        seen.update(own)


def _against_the_paper(counts: _Rows) -> str:
    """Says whether free and blocked pictures are as many as in Tables II and III."""
    other = []
    for (name, (total, percent)), (free, blocked) in zip(PRINTED.items(), counts):
        share = 100 * blocked / (free + blocked)
        # Whole percents are printed.
        if free + blocked != total or abs(share - percent) > 0.5:
            other.append(
                f"{name} {free + blocked}, {share:.0f} % blocked, not {total}, "
                f"{percent} %"
            )
    if not other:
        return "the numbers of the paper's Tables II and III"
    return f"NOT the numbers of the paper's Tables II and III: {'; '.join(other)}"
