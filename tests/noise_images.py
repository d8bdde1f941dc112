"""Images of noise in the layouts that `celeba` and `obstacles` read."""

import pathlib

import numpy as np
from PIL import Image


def write_celeba(folder, people, seed=0):
    """Writes 6 to 17 photos of each person, who smiles and is sharp now and then."""
    random, photos, folder = np.random.RandomState(seed), [], pathlib.Path(folder)
    for identity in range(1, people + 1):
        smiles, blurs = random.beta(2, 2), random.beta(0.5, 2)
        for _ in range(random.randint(6, 18)):
            marks = [random.uniform() < share for share in (blurs, smiles)]
            photos.append((identity, *(1 if mark else -1 for mark in marks)))
    (folder / "img_align_celeba").mkdir(parents=True)
    lines = {"identity_CelebA.txt": [], "list_attr_celeba.txt": [len(photos)]}
    lines["list_attr_celeba.txt"].append("Blurry Smiling")
    for number, place in enumerate(random.permutation(len(photos)), 1):
        identity, blurry, smiling = photos[place]
        name = f"{number:06d}.png"
        lines["identity_CelebA.txt"].append(f"{name} {identity}")
        lines["list_attr_celeba.txt"].append(f"{name} {blurry} {smiling}")
        _write(folder / "img_align_celeba" / name, random)
    for name, text in lines.items():
        (folder / name).write_text("".join(f"{line}\n" for line in text))


def write_obstacles(folder, pictures, seed=0):
    """Writes pictures of each place and class."""
    random = np.random.RandomState(seed)
    for place in ("hospital", "simple_room", "warehouse"):
        for label in ("free", "blocked"):
            path = pathlib.Path(folder, place, label)
            path.mkdir(parents=True)
            for number in range(pictures):
                _write(path / f"{number:04d}.png", random)


def _write(path, random):
    pixels = random.randint(0, 256, (22, 18, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path, compress_level=1)
