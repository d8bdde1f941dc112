"""`drawn_obstacles`: a stand-in for Dual's obstacle pictures; no photographs.

For tests, and for users without those pictures, which are not public: drawings of a
corridor with something in the way or not, in three places that differ in color and
light. Results on them say nothing of the paper's. Every picture and data set says what
it is: the files' names begin with `drawn_`, and `obstacles.load` names what it loads of
them `drawn_obstacles`.
"""

from __future__ import annotations

import dataclasses
import operator
import os
import tempfile
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from leaf_data import obstacles, partition
from leaf_data.errors import DataError
from leaf_data.federated import FederatedDataset

_SIDE = 96
# Of each place: colors of wall and floor, and how dark and light its pictures are.
_LOOKS = {
    "hospital": ((214, 226, 230), (160, 190, 196), (0.8, 1.1)),
    "simple_room": ((226, 208, 170), (150, 104, 66), (0.7, 1.1)),
    "warehouse": ((120, 118, 112), (86, 84, 84), (0.5, 1.2)),
}


def load(
    data_dir: Any = None, *, pictures: int = 60, seed: int = 0
) -> FederatedDataset:
    """Draws the pictures and makes clients of them as `obstacles.load` does.

    Args:
        data_dir: not used.
        pictures: how many of each place and class, at least 10.
        seed: of the drawings and of the split, 0 to 2**32 - 1.

    Returns:
        The data set: x uint8 [64, 64, 3] RGB; y 1 = blocked, 0 = free.

    Raises:
        DataError: no such number or seed.
    """
    del data_dir
    with tempfile.TemporaryDirectory() as folder:
        write(folder, pictures, seed)
        data = obstacles.load(folder, seed=seed)
    return dataclasses.replace(
        data,
        origin=dataclasses.replace(data.origin, folder=""),
        options={"pictures": int(pictures), "seed": int(seed)},
    )


def write(folder: str, pictures: int = 60, seed: int = 0) -> None:
    """Draws pictures into a folder, in the layout that `obstacles.load` reads.

    Writes `PLACE/blocked/drawn_NNNN.png` and `PLACE/free/drawn_NNNN.png`, 96 x 96.
    Files of the same names are replaced.

    Args:
        folder: is made if it is not there.
        pictures: how many of each place and class, at least 10.
        seed: 0 to 2**32 - 1. The same arguments give the same pictures.

    Raises:
        DataError: no such number or seed, or the folder cannot be written.
    """
    _check(pictures)
    try:
        for number, place in enumerate(obstacles.PLACES):
            random = partition.random_state(seed, number)
            for name in obstacles.CLASSES:
                path = os.path.join(folder, place, name)
                os.makedirs(path, exist_ok=True)
                for index in range(pictures):
                    picture = _draw(random, place, name == "blocked")
                    file = f"{obstacles.DRAWN_PREFIX}{index:04d}.png"
                    picture.save(os.path.join(path, file), compress_level=1)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error})") from error


def _draw(random: np.random.RandomState, place: str, blocked: bool) -> Image.Image:
    """A corridor seen along its floor; a free one may have a thing at its side."""
    wall, floor, (dark, light) = _LOOKS[place]
    image = Image.new("RGB", (_SIDE, _SIDE), _near(random, wall))
    pen = ImageDraw.Draw(image)
    horizon = random.uniform(0.35, 0.5) * _SIDE
    middle = random.uniform(0.42, 0.58) * _SIDE
    far = random.uniform(0.1, 0.18) * _SIDE
    corners = [(0, _SIDE), (middle - far, horizon), (middle + far, horizon)]
    pen.polygon([*corners, (_SIDE, _SIDE)], _near(random, floor))
    for end in (0, _SIDE):  # The edges between walls and ceiling.
        start = middle + (far if end else -far)
        pen.line([(start, 0.6 * horizon), (end, 0)], _near(random, floor), 2)
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
        shape(box, _near(random, tuple(random.randint(30, 226, 3))), outline=(25,) * 3)
    brightness = random.uniform(dark, light)
    noise = random.normal(0, 6, (_SIDE, _SIDE, 3))
    pixels = np.clip(brightness * np.asarray(image) + noise, 0, 255)
    return Image.fromarray(pixels.astype(np.uint8))


def _near(random: np.random.RandomState, color: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(np.clip(color + random.randint(-16, 17, 3), 0, 255).tolist())


def _check(pictures: Any) -> None:
    try:
        value = operator.index(pictures)
    except TypeError:
        value = 0
    if value < 10:
        raise DataError(
            f"drawn_obstacles: pictures has to be an integer from 10, not {pictures!r}"
        )
