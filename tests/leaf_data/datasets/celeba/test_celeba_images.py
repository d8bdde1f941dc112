"""CelebA's images: how they are resized, and those that are corrupt."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from leaf_data.formats import image_folder

pytestmark = pytest.mark.usefixtures("no_download")


def test_images_are_resized_whole_and_averaged(tmp_path):
    wide = np.zeros((128, 256, 3), np.uint8)
    wide[:, 128:, 0] = 200  # The right half is red,
    wide[64:, :, 2] = 100  # the lower half blue,
    wide[::2, :, 1] = 255  # and every other line green.
    found = image_folder.resized(Image.fromarray(wide), 64).astype(int)
    assert found.shape == (64, 64, 3)
    for (row, column), red, blue in (
        ((10, 10), 0, 0),
        ((10, 53), 200, 0),
        ((53, 10), 0, 100),
        ((53, 53), 200, 100),
    ):
        assert found[row, column, 0] == red
        assert found[row, column, 2] == blue
    assert abs(found[..., 1] - 127.5).max() < 20  # Nearest would be 0 or 255.
    # What has no three channels becomes RGB.
    gray = image_folder.resized(Image.new("L", (30, 20), 77), 64)
    assert gray.shape == (64, 64, 3) and (gray == 77).all()


def test_corrupt_images_are_named(raw, assert_refused, toy, noise):
    path = raw / "img_align_celeba" / "000007.png"
    for content in (b"", b"text", path.read_bytes()[:60]):
        path.write_bytes(content)
        assert_refused(lambda: toy.load(raw), f"{path}: cannot be decoded (")
    path.unlink()
    image = Image.fromarray(noise)
    image.save(path.with_suffix(".jpg"))
    cut = path.with_suffix(".jpg").read_bytes()[:900]
    path.with_suffix(".jpg").write_bytes(cut)
    assert_refused(
        lambda: toy.load(raw), f"{path.with_suffix('.jpg')}: cannot be decoded ("
    )
    assert not list((raw / "celeba_cache").glob("*.npz"))
