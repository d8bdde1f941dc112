"""`drawn_obstacles`: a stand-in for Dual's obstacle pictures; no photographs.

For tests, and for users without those pictures, of which Dual gives no address:
drawings of a corridor with something in the way or not, in three places that differ in
color and light. Results on them say nothing of the paper's. Every picture and data set
says what it is: the files' names begin with `drawn_`, and `obstacles` names what it
loads of them `drawn_obstacles`.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Mapping

import numpy as np
from PIL import Image, ImageDraw

from leaf_data.dataset import Dataset, register
from leaf_data.datasets import obstacles
from leaf_data.datasets.celeba_files import DRAWN_PREFIX
from leaf_data.datasets.drawn_faces import near
from leaf_data.errors import reading
from leaf_data.federated import FederatedDataset
from leaf_data.formats.data_files import Folder
from leaf_data.settings import Range, setting
from leaf_data.splits import partition

_SIDE = 96
# Of each place: colors of wall and floor, and how dark and light its pictures are.
_LOOKS = {
    "hospital": ((214, 226, 230), (160, 190, 196), (0.8, 1.1)),
    "simple_room": ((226, 208, 170), (150, 104, 66), (0.7, 1.1)),
    "warehouse": ((120, 118, 112), (86, 84, 84), (0.5, 1.2)),
}


@dataclasses.dataclass(frozen=True)
class DrawnObstacles(Dataset):
    """Drawn pictures, divided into clients as `obstacles` divides photographs."""

    reads_folder = False

    pictures: int = setting(
        60,
        "The number of pictures that are drawn of each place and class.",
        flag="drawn_pictures",
        within=Range(lambda n: n >= 10, "at least 10"),
    )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [64, 64, 3] RGB; y 1 = blocked, 0 = free."""
        with tempfile.TemporaryDirectory() as folder:
            write(folder, self.pictures, self.seed)
            data = obstacles.Obstacles(seed=self.seed).load(folder)
        origin = dataclasses.replace(data.origin, folder="")
        return dataclasses.replace(data, origin=origin, options=self.options())


register("drawn_obstacles", DrawnObstacles)


def write(folder: str, pictures: int = DrawnObstacles.pictures, seed: int = 0) -> None:
    """Draws pictures of each place and class, in the layout that `obstacles` reads."""
    DrawnObstacles.of_options(pictures=pictures, seed=seed)  # Checks them.
    write_sets(folder, dict.fromkeys(obstacles.PLACES, (pictures, pictures)), seed)


def write_sets(
    folder: str, counts: Mapping[str, tuple[int, int]], seed: int = 0
) -> None:
    """Draws sets of free and blocked pictures, by their path below a folder.

    Writes `SET/free/drawn_NNNN.png` and `SET/blocked/drawn_NNNN.png`, 96 x 96. A set
    whose path ends in a place's name is of that place; in another the places take
    turns. The same arguments give the same pictures.
    """
    with reading(folder, "cannot be written"):
        for number, (name, of_label) in enumerate(counts.items()):
            random = partition.random_state(seed, number)
            own = os.path.basename(name)
            looks = (own,) if own in obstacles.PLACES else obstacles.PLACES
            for label, pictures in zip(obstacles.CLASSES, of_label):
                path = os.path.join(folder, name, label)
                os.makedirs(path, exist_ok=True)
                for index in range(pictures):
                    place = looks[index % len(looks)]
                    picture = _draw(random, place, label == "blocked")
                    file = f"{DRAWN_PREFIX}{index:04d}.png"
                    picture.save(os.path.join(path, file), compress_level=1)


def printed_counts() -> dict[str, tuple[int, int]]:
    """Free and blocked pictures of the sets of the paper's Tables II and III."""
    counts = {}
    for name, (total, percent) in obstacles.PRINTED.items():
        blocked = round(total * percent / 100)
        counts[name] = total - blocked, blocked
    return counts


def _draw(random: np.random.RandomState, place: str, blocked: bool) -> Image.Image:
    """Draws a corridor along its floor; a free one may have a thing at its side."""
    wall, floor, (dark, light) = _LOOKS[place]
    image = Image.new("RGB", (_SIDE, _SIDE), near(random, wall, 16))
    pen = ImageDraw.Draw(image)
    horizon = random.uniform(0.35, 0.5) * _SIDE
    middle = random.uniform(0.42, 0.58) * _SIDE
    far = random.uniform(0.1, 0.18) * _SIDE
    corners = [(0, _SIDE), (middle - far, horizon), (middle + far, horizon)]
    pen.polygon([*corners, (_SIDE, _SIDE)], near(random, floor, 16))
    for end in (0, _SIDE):  # The edges between walls and ceiling.
        start = middle + (far if end else -far)
        pen.line([(start, 0.6 * horizon), (end, 0)], near(random, floor, 16), 2)
    if blocked or random.uniform() < 0.5:
        foot = random.uniform(0.7, 0.95) * _SIDE
        width = random.uniform(0.12, 0.3) * _SIDE
        height = random.uniform(0.7, 1.6) * width
        if blocked:
            center = middle + random.uniform(-0.12, 0.12) * _SIDE
        else:
            center = random.choice([0.02, 0.98]) * _SIDE
        box = (center - width / 2, foot - height, center + width / 2, foot)
        shape = pen.ellipse if random.uniform() < 0.3 else pen.rectangle
        shape(
            box, near(random, tuple(random.randint(30, 226, 3)), 16), outline=(25,) * 3
        )
    brightness = random.uniform(dark, light)
    noise = random.normal(0, 6, (_SIDE, _SIDE, 3))
    pixels = np.clip(brightness * np.asarray(image) + noise, 0, 255)
    return Image.fromarray(pixels.astype(np.uint8))
