"""`drawn_faces`: a stand-in for CelebA, drawn by this module; no photographs.

For tests, and for users without CelebA: cartoon faces that smile or do not, some
blurred, in CelebA's own layout. Each identity has its colors, the shape and the
place of its face, how many pictures there are of it, how often it smiles and how
often it is blurred, so that clients differ. Results on them say nothing of CelebA.
Every file and client says what it is: the files' names begin with `drawn_`, and a
data set made of them is named `drawn_faces`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leaf_data import celeba_clients, celeba_files, celeba_images, partition
from leaf_data.celeba_files import Photos
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin

if TYPE_CHECKING:
    from PIL import Image

# That of CelebA's aligned photos, which are 178 x 218.
_SIZE = (89, 109)
_SKINS = ((255, 224, 196), (236, 188, 150), (198, 134, 92), (141, 85, 54), (84, 52, 36))
_HAIRS = ((24, 20, 18), (86, 52, 30), (170, 120, 60), (222, 190, 120), (140, 140, 145))


def load(
    data_dir: Any = None,
    *,
    client_rule: str = "paper",
    num_identities: int = 80,
    images_per_identity: int = 20,
    seed: int = 0,
) -> FederatedDataset:
    """Draws the faces and makes clients of them as `celeba` does.

    With the defaults about 40 clients of 8 to 24 training images, in some seconds.

    Args:
        data_dir: not used.
        client_rule: "paper" or "reference_code", see `leaf_data.celeba_clients`.
        num_identities: how many people are drawn, of whom a rule keeps half.
        images_per_identity: how many drawings of each on average, from a half to
            one and a half times it.
        seed: of the drawings and of the client rule, 0 to 2**32 - 1.

    Returns:
        The data set: x uint8 [64, 64, 3] RGB, y 1 = smiling; attribute `sharp`.

    Raises:
        DataError: no such rule or seed, or too few faces for it.
    """
    del data_dir
    celeba_clients.check(client_rule)
    photos, images = draw(num_identities, images_per_identity, seed)
    clients = celeba_clients.by_name(client_rule, photos.by_identity(), seed)
    pixels = np.stack([celeba_images.to_pixels(image) for image in images])

    def examples(part: int) -> Examples:
        return Examples.from_parts(
            pixels,
            photos.smiling,
            [rows[part] for rows in clients.values()],
            clients,
            {"sharp": photos.sharp},
        )

    return FederatedDataset(
        name="drawn_faces",
        train_examples=examples(0),
        test_examples=examples(1),
        num_classes=2,
        pixel_convention=celeba_images.DRAWING,
        origin=celeba_images.drawn_origin(pixels),
        options={
            "client_rule": client_rule,
            "num_identities": num_identities,
            "images_per_identity": images_per_identity,
            "seed": int(seed),
        },
    )
