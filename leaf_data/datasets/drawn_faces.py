"""`drawn_faces`: a stand-in for CelebA, drawn by this module; no photographs.

For tests, and for users without CelebA: cartoon faces that smile or do not, some
blurred, in CelebA's own layout. Each identity has its colors, the shape and the
place of its face, how many pictures there are of it, how often it smiles and how
often it is blurred, so that clients differ. Results on them say nothing of CelebA.
Every image and data set says what it is: the files' names begin with `drawn_`, and
`celeba` names what it loads of them `drawn_faces`.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from leaf_data.dataset import register
from leaf_data.datasets import celeba
from leaf_data.datasets.celeba_clients import WithClientRule
from leaf_data.datasets.celeba_files import ATTRIBUTES, DRAWN_PREFIX, IDENTITIES, IMAGES
from leaf_data.errors import reading
from leaf_data.federated import FederatedDataset
from leaf_data.formats.data_files import Folder
from leaf_data.settings import AT_LEAST_1, Range, setting
from leaf_data.splits import partition

# Half of CelebA's aligned photos, which are 178 x 218.
_WIDTH, _HEIGHT = 89, 109
# Drawn larger and shrunk: Pillow's lines have no soft edges of their own.
_SCALE = 2
_SKINS = ((255, 224, 196), (236, 188, 150), (198, 134, 92), (141, 85, 54), (84, 52, 36))
_HAIRS = ((24, 20, 18), (86, 52, 30), (170, 120, 60), (222, 190, 120), (140, 140, 145))


@dataclasses.dataclass(frozen=True)
class DrawnFaces(WithClientRule):
    """Drawn faces, divided into clients as `celeba` divides photographs."""

    reads_folder = False

    num_identities: int = setting(
        80,
        "The number of people that are drawn, of whom a client rule keeps about half.",
        flag="drawn_identities",
        within=Range(lambda n: n >= 2, "at least 2"),
    )
    images_per_identity: int = setting(
        20,
        "The number of drawings of each person, on average.",
        flag="drawn_images_per_identity",
        within=AT_LEAST_1,
    )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set, as `celeba` has its own."""
        photographs = celeba.Celeba(client_rule=self.client_rule, seed=self.seed)
        with tempfile.TemporaryDirectory() as folder:
            write(folder, self.num_identities, self.images_per_identity, self.seed)
            data = photographs.load(folder)
        origin = dataclasses.replace(data.origin, folder="")
        return dataclasses.replace(data, origin=origin, options=self.options())


register("drawn_faces", DrawnFaces)


def write(
    folder: str,
    num_identities: int = DrawnFaces.num_identities,
    images_per_identity: int = DrawnFaces.images_per_identity,
    seed: int = 0,
) -> None:
    """Draws faces into a folder, in the layout of LEAF's `data/celeba/data/raw`.

    Images are `img_align_celeba/drawn_NNNNNN.png`, 89 x 109, of each identity between
    M // 2 and M + M // 2, at least 1. Files of the same names are replaced, and the
    same arguments give the same faces.
    """
    DrawnFaces.of_options(  # Checks them.
        num_identities=num_identities,
        images_per_identity=images_per_identity,
        seed=seed,
    )
    identities: list[str] = []
    attributes: list[str] = []
    with reading(folder, "cannot be written"):
        os.makedirs(os.path.join(folder, IMAGES), exist_ok=True)
        for identity in range(1, num_identities + 1):
            random = partition.random_state(seed, identity)
            half = images_per_identity // 2
            count = random.randint(max(1, half), images_per_identity + half + 1)
            person = _Person(random)
            for _ in range(count):
                name = f"{DRAWN_PREFIX}{len(identities) + 1:06d}.png"
                smiling = random.uniform() < person.smiles
                blurry = random.uniform() < person.blurs
                face = person.draw(random, smiling, blurry)
                face.save(os.path.join(folder, IMAGES, name), compress_level=1)
                identities.append(f"{name} {identity}\n")
                bits = (1 if bit else -1 for bit in (blurry, smiling))
                attributes.append(f"{name} {' '.join(f'{bit:2d}' for bit in bits)}\n")
        attributes.insert(0, f"{len(attributes)}\nBlurry Smiling\n")
        for name, lines in ((IDENTITIES, identities), (ATTRIBUTES, attributes)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.writelines(lines)


class _Person:
    """A person, as all of its drawings show it; lengths are parts of the width."""

    def __init__(self, random: np.random.RandomState) -> None:
        self.skin = near(random, _SKINS[random.randint(len(_SKINS))])
        self.hair = near(random, _HAIRS[random.randint(len(_HAIRS))])
        self.background = tuple(random.randint(40, 230, 3).tolist())
        # The face's place, across and down, and half of its width and height.
        self.center = random.uniform(0.46, 0.54), random.uniform(0.62, 0.70)
        self.radii = random.uniform(0.27, 0.33), random.uniform(0.36, 0.44)
        # The probabilities that a drawing smiles, and is blurred; the extremes of both
        # are rare, as for people.
        self.smiles = random.beta(2, 2)
        self.blurs = random.beta(0.5, 5)

    def draw(
        self, random: np.random.RandomState, smiling: bool, blurry: bool
    ) -> Image.Image:
        """Draws a picture; no two are alike in place, light and curve of the mouth."""
        unit = _SCALE * _WIDTH
        image = Image.new("RGB", (unit, _SCALE * _HEIGHT), self.background)
        pen = ImageDraw.Draw(image)
        x, y = (c + random.uniform(-0.02, 0.02) for c in self.center)
        across, down = self.radii

        def ellipse(at_x: float, at_y: float, width: float, height: float) -> Any:
            left, right = at_x - width, at_x + width
            return tuple(unit * v for v in (left, at_y - height, right, at_y + height))

        pen.ellipse(ellipse(x, y - 0.1, across + 0.06, down + 0.02), fill=self.hair)
        pen.ellipse(ellipse(x, y, across, down), fill=self.skin)
        for side in (-1, 1):
            eye = x + side * 0.42 * across, y - 0.22 * down
            pen.ellipse(ellipse(*eye, 0.055, 0.03), fill=(245, 245, 245))
            pen.ellipse(ellipse(*eye, 0.024, 0.028), fill=(40, 30, 30))
        shade = tuple(int(0.75 * value) for value in self.skin)
        pen.line(
            [(unit * x, unit * (y - 0.02)), (unit * x, unit * (y + 0.07))], shade, 4
        )
        # A smile's corners are above its middle; a straight or sad mouth's are not.
        bend = random.uniform(0.05, 0.11) if smiling else random.uniform(-0.05, 0.01)
        half = random.uniform(0.38, 0.48) * across
        curve = [
            (unit * (x + half * t), unit * (y + 0.5 * down + bend * (0.5 - t * t)))
            for t in np.linspace(-1, 1, 15)
        ]
        pen.line(curve, fill=(150, 40, 50), width=7, joint="curve")
        image = image.resize((_WIDTH, _HEIGHT), Image.Resampling.BOX)
        light = random.uniform(0.75, 1.15)
        image = image.point(lambda value: min(255, int(light * value)))
        if blurry:
            image = image.filter(ImageFilter.GaussianBlur(random.uniform(2, 3)))
        return image


def near(
    random: np.random.RandomState, color: tuple[int, ...], most: int = 12
) -> tuple[int, ...]:
    """Returns a color that differs by at most so much in red, green and blue."""
    return tuple(np.clip(color + random.randint(-most, most + 1, 3), 0, 255).tolist())
