"""Files with the names of images: what Pillow is given, and what it is spared."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
from PIL import Image

from leaf_data.formats import image_folder


def _encoded(form, size=(20, 20), mode="RGB", **options):
    file = io.BytesIO()
    Image.new(mode, size, 77).save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("form", "suffix", "mode"), [("JPEG", ".png", "L"), ("PNG", ".jpg", "RGB")]
)
def test_the_content_decides_and_not_the_name(tmp_path, form, suffix, mode):
    path = tmp_path / ("a" + suffix)
    path.write_bytes(_encoded(form, mode=mode))
    image = image_folder.decode(str(path))
    assert image.mode == "RGB" and image.size == (20, 20)


@pytest.mark.parametrize("form", ["TIFF", "JPEG2000", "GIF", "BMP", "WEBP", "EPS"])
def test_other_forms_are_refused(tmp_path, form, assert_refused):
    path = tmp_path / "a.jpg"
    path.write_bytes(_encoded(form))
    words = f"{path}: cannot be decoded (it is no JPEG or PNG image)"
    assert_refused(lambda: image_folder.decode(str(path)), words)
    Image.open(path)  # Pillow by itself knows it.


def test_names_that_no_record_can_hold(tmp_path, assert_refused):
    try:
        with open(os.path.join(os.fsencode(tmp_path), b"a\xff.png"), "wb") as file:
            file.write(_encoded("PNG"))
    except OSError:
        pytest.skip("this file system has no such names")
    words = f"{tmp_path}: the image 'a\\udcff.png' has the control character U+DCFF"
    assert_refused(lambda: image_folder.find(str(tmp_path)), words)


def test_one_picture_in_two_forms_would_count_twice(tmp_path, assert_refused):
    for name in ("b.png", "b.JPG"):
        (tmp_path / name).write_bytes(_encoded("PNG"))
    assert_refused(
        lambda: image_folder.find(str(tmp_path)), tmp_path, "holds both b.JPG and b.png"
    )
    (tmp_path / "b.png").unlink()
    assert image_folder.find(str(tmp_path)) == {"b": "b.JPG"}


def test_what_a_cache_gives_is_what_was_decoded(tmp_path):
    (tmp_path / "cats").mkdir()
    for number in range(3):
        image = Image.new("RGB", (4, 4), (number, 0, 0))
        image.save(tmp_path / "cats" / f"{number}.png")
    first, again = (
        image_folder.read("toy", str(tmp_path), ["cats"], 4, None, resize=False)[0]
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.x, again.x)
    assert (first.files, first.sha256s) == (again.files, again.sha256s)
    assert first.x[:, 0, 0, 0].tolist() == [0, 1, 2] and len(set(first.sha256s)) == 3
    assert first.sha256 == again.sha256


def test_images_are_resized_whole_and_averaged():
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
